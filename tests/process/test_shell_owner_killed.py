"""`kill -9` of the program that runs the commands: the commands do not outlive it."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.support.processes import ESCAPES, Marked
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")

ROOT = Path(__file__).parents[2]


class Host:
    """Starts programs that run one shell command each, with everything already imported."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def start(self, workspace: Path, command: str) -> int:
        """Start one; returns its pid."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{workspace}\t{command}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@pytest.fixture(scope="module")
def marked() -> Marked:
    """A mark that the hosts and all that they start bear."""
    return Marked()


@pytest.fixture(scope="module")
def host(marked: Marked) -> Iterator[Host]:
    """One warm host for the whole module."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.shell_host"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=marked.environment,
    ) as process:
        yield Host(process)
        assert process.stdin is not None
        process.stdin.close()


def one_line(command: str) -> str:
    """Return a command as one line of bash."""
    quoted = command.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"eval $'{quoted}'"


@pytest.mark.parametrize("escape", ESCAPES)
async def test_a_tree_ends_with_its_killed_owner(
    escape: str, host: Host, marked: Marked, tmp_path: Path
) -> None:
    """Whatever the command's processes do to get away, two seconds later they are gone."""
    marked.watch(tmp_path)
    idle = marked.living()
    owner = host.start(tmp_path, one_line(ESCAPES[escape]))
    await wait_until(lambda: (tmp_path / "up").exists() and len(marked.living() - idle) >= 2)
    os.kill(owner, signal.SIGKILL)
    await wait_until(lambda: marked.living() == idle, seconds=2)


async def test_a_background_process_ends_with_its_killed_owner(
    host: Host, marked: Marked, tmp_path: Path
) -> None:
    """A server that a finished command left running does not outlive the agent either."""
    idle = marked.living()
    owner = host.start(tmp_path, "setsid sleep 300 & touch up")
    await wait_until((tmp_path / "up").exists)
    os.kill(owner, signal.SIGKILL)
    await wait_until(lambda: marked.living() == idle, seconds=2)


async def test_a_kill_at_any_moment_leaves_nothing(host: Host, marked: Marked, tmp_path: Path) -> None:
    """From before the warden's start to well after it: twenty moments, no survivor."""
    idle = marked.living()
    moments = random.Random(7)  # the moments differ anyway, with the machine's load
    for _ in range(20):
        owner = host.start(tmp_path, "setsid sleep 300 & sleep 300")
        await trio.sleep(moments.uniform(0, 0.08))  # a moment, not an order
        os.kill(owner, signal.SIGKILL)
        await wait_until(lambda: marked.living() == idle, seconds=2)
