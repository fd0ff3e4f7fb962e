"""Commands in a sandbox end as all others do: with their call, at their limit, and with a killed owner."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from odek.config.settings import ShellSettings
from odek.tools.shell import Shell
from odek.trust.secrets import Masker
from subagent.background import open_background
from tests.support.processes import ESCAPES, Marked, open_descriptors, zombie_children
from tests.support.sandboxes import BUBBLEWRAP, NEEDS_BUBBLEWRAP, bubblewrapped
from tests.support.tool_calls import call
from tests.support.waiting import LIMITS_SECONDS, wait_until

pytestmark = NEEDS_BUBBLEWRAP

ROOT = Path(__file__).parents[2]


@pytest.fixture
def marked(tmp_path: Path) -> Marked:
    """A mark that every command of the test bears."""
    marked = Marked()
    marked.watch(tmp_path / "work")
    return marked


@pytest.fixture
async def shell(marked: Marked, tmp_path: Path) -> AsyncIterator[Shell]:
    """The tool in an empty workspace, in a sandbox."""
    async with open_background() as background:
        launcher = bubblewrapped(tmp_path)
        environment = marked.environment
        yield Shell(tmp_path / "work", ShellSettings(), environment, background, Masker(), launcher)


@pytest.mark.parametrize(
    ("command", "content"),
    [
        ("echo out; echo err >&2", "out\nerr"),
        ("echo some; exit 7", "some\nexit status 7"),
        ("kill -KILL $$", "ended by signal SIGKILL (9)"),
        ("no-such-program", "bash: line 1: no-such-program: command not found\nexit status 127"),
        ("cat; exec 9>&1; echo open >&9", "open"),
    ],
)
async def test_the_result_is_that_of_the_command(shell: Shell, command: str, content: str) -> None:
    """Output and status come through the sandbox as they are."""
    assert (await call(shell, command=command)).content == content


async def test_a_command_ends_at_its_limit_with_all_that_it_started(
    shell: Shell, marked: Marked, tmp_path: Path
) -> None:
    """It gets the time to clean up that every command gets, and what is deaf to that is killed."""
    command = "trap 'touch cleaned' TERM; (trap '' TERM; sleep 300) & sleep 300 & wait; wait"

    cleaned = tmp_path / "work" / "cleaned"
    for limit_seconds in LIMITS_SECONDS:
        if not cleaned.exists():
            result = await call(shell, command=command, timeout_seconds=limit_seconds)
            assert result.content == f"timed out after {limit_seconds:g} s"
            await wait_until(lambda: not marked.living(), seconds=2)
    assert cleaned.exists()


async def test_what_a_command_leaves_running_lives_until_the_agent_ends(
    marked: Marked, tmp_path: Path
) -> None:
    """It is named, goes on in its sandbox, and ends with the agent."""
    async with open_background() as background:
        shell = Shell(
            tmp_path / "work",
            ShellSettings(),
            marked.environment,
            background,
            Masker(),
            bubblewrapped(tmp_path),
        )
        result = await call(shell, command="(while :; do date > beat; sleep 0.05; done) & echo started")
        beat = tmp_path / "work" / "beat"
        await wait_until(beat.exists)
        beat.unlink()
        await wait_until(beat.exists)

        assert result.content.startswith("started\nstill running in the background: pid ")
        assert "warden" not in result.content
        assert marked.living()
    await wait_until(lambda: not marked.living(), seconds=2)


async def test_a_cancelled_call_leaves_nothing(shell: Shell, marked: Marked) -> None:
    """Neither a process nor a zombie nor an open descriptor."""
    before = open_descriptors()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: call(shell, command="setsid sleep 300 & sleep 300"))
        await wait_until(lambda: len(marked.living()) >= 2)
        nursery.cancel_scope.cancel()

    assert not marked.living()
    assert not zombie_children()
    assert open_descriptors() <= before


@pytest.fixture(scope="module")
def mark() -> Marked:
    """A mark that the hosts and all that they start bear."""
    return Marked()


@pytest.fixture(scope="module")
def host(mark: Marked) -> "Iterator[subprocess.Popen[str]]":
    """A program that starts owners of commands in a sandbox, for the whole module."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.shell_host", BUBBLEWRAP],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=mark.environment,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def start(host: "subprocess.Popen[str]", workspace: Path, command: str) -> int:
    """Start an owner with one command; returns its pid."""
    assert host.stdin is not None
    assert host.stdout is not None
    quoted = command.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    host.stdin.write(f"{workspace}\teval $'{quoted}'\n")
    host.stdin.flush()
    return int(host.stdout.readline())


def is_warden(pid: int) -> bool:
    """Tell by its name."""
    return Path(f"/proc/{pid}/comm").read_text() == "warden\n"


@pytest.mark.parametrize("escape", ESCAPES)
async def test_a_tree_ends_with_its_killed_owner(
    escape: str, host: "subprocess.Popen[str]", mark: Marked, tmp_path: Path
) -> None:
    """Whatever the processes in a sandbox do to get away, two seconds later they are gone."""
    mark.watch(tmp_path)
    idle = mark.living()
    owner = start(host, tmp_path, ESCAPES[escape])
    await wait_until(lambda: (tmp_path / "up").exists() and len(mark.living() - idle) >= 4)
    os.kill(owner, signal.SIGKILL)
    await wait_until(lambda: mark.living() == idle, seconds=2)


async def test_a_tree_ends_with_its_owner_and_its_warden(
    host: "subprocess.Popen[str]", mark: Marked, tmp_path: Path
) -> None:
    """When whoever would have ended it is killed at the same moment, the kernel does."""
    mark.watch(tmp_path)
    idle = mark.living()
    owner = start(host, tmp_path, "setsid sleep 300 & touch up; sleep 300")
    await wait_until((tmp_path / "up").exists)
    wardens = [pid for pid in mark.living() - idle if is_warden(pid)]
    for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped, none of them sees the end of another
        for pid in (owner, *wardens):
            with suppress(ProcessLookupError):  # one takes the other along
                os.kill(pid, number)

    assert len(wardens) == 2
    await wait_until(lambda: mark.living() == idle, seconds=2)
