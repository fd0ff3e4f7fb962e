"""`kill -9` of the program that searches: the search does not outlive it."""

import sys
from pathlib import Path

import pytest
import trio

from subagent.warden import descendants
from tests.support.processes import has_open
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")

ROOT = Path(__file__).parents[2]

OWNER = """
import pathlib, sys, trio
from odek.tools.search_files import SearchFilesTool
from tests.support.tool_calls import call

async def main():
    tool = SearchFilesTool(pathlib.Path(sys.argv[1]), trio.CapacityLimiter(1))
    await call(tool, pattern="^(a+)+$")

trio.run(main)
"""


async def test_a_search_that_is_stuck_in_a_pattern_ends_with_its_killed_owner(tmp_path: Path) -> None:
    """It would go on for twenty seconds of one core, and nobody would be there to end it."""
    for number in range(20):
        (tmp_path / f"hostile{number}").write_text("a" * 40 + "!\n")
    owner = await trio.lowlevel.open_process([sys.executable, "-c", OWNER, str(tmp_path)], cwd=ROOT)
    searching: list[int] = []

    def is_searching() -> bool:
        searching[:] = [pid for pid, _, _, _ in descendants(owner.pid) if has_open(pid, tmp_path)]
        return bool(searching)

    await wait_until(is_searching)
    owner.kill()
    await owner.wait()
    await wait_until(lambda: not any(map(is_alive, searching)), seconds=3)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs, and is no zombie that nobody has reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False
