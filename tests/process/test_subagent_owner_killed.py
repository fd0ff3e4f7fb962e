"""`kill -9` of the program that supervises: its children do not outlive it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.support.faults import SPAWNERS
from tests.support.processes import Marked
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")

ROOT = Path(__file__).parents[2]


def start_host(kind: str, directory: Path, marked: Marked) -> "subprocess.Popen[str]":
    """Start the program that will be killed; use it as a context manager."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.supervisor_host", kind, str(directory)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=marked.environment,
    )


def wait_for(host: "subprocess.Popen[str]", event: str, count: int) -> None:
    """Return when the host has told of that many events of a name."""
    assert host.stdout is not None
    seen = 0
    while seen < count:
        line = host.stdout.readline()
        assert line, "the host ended"
        seen += line.startswith(event)


@pytest.mark.parametrize("kind", SPAWNERS)
@pytest.mark.parametrize(
    ("event", "count", "number"),
    [
        ("ChildStarted", 1, signal.SIGKILL),
        ("ChildStarted", 12, signal.SIGKILL),
        ("ChildReady", 20, signal.SIGTERM),
        ("ChildEnded", 4, signal.SIGKILL),
    ],
)
async def test_no_child_outlives_a_killed_supervisor(
    event: str, count: int, number: signal.Signals, kind: str, tmp_path: Path
) -> None:
    """At the start, at work or while others end: after two seconds nobody is left."""
    marked = Marked()
    marked.watch(tmp_path)
    with start_host(kind, tmp_path, marked) as host:
        await trio.to_thread.run_sync(wait_for, host, event, count)
        assert marked.living()
        host.send_signal(number)
        await wait_until(lambda: marked.living() == set(), seconds=2)
    assert [*tmp_path.iterdir()] == []  # noqa: ASYNC240 - a directory of nothing
