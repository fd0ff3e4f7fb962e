"""``odek ps``: the running odek processes of this home, as a tree."""

import argparse
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odek.processes import RunningProcess

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There is nothing to choose but the form."""
    parser.add_argument("--json", action="store_true", help="print one JSON array")


def run(arguments: argparse.Namespace) -> int:
    """List the processes: pid, memory, age, session and what they do."""
    from odek.home import home_directory
    from odek.processes import running_processes
    from odek.text import clip_line, visible

    processes = running_processes(home_directory(os.environ))
    if arguments.json:
        import msgspec

        print(msgspec.json.encode(processes).decode())
        return 0
    if not processes:
        print("no odek process of this home is running")
        return 0
    print(f"{'PID':<14} {'MEMORY':>8} {'AGE':>9}  {'SESSION':<17}  COMMAND")
    for depth, process in _tree(processes):
        pid = f"{'  ' * depth}{process.pid}"
        age = time.time() - process.started_at
        what = clip_line(visible(f"{process.command} {process.task}", keep_newlines=False), 60)
        print(f"{pid:<14} {_memory(process.pid):>8} {age:>7.0f} s  {process.session[:17]:<17}  {what}")
    return 0


def _tree(processes: "Sequence[RunningProcess]") -> "Iterator[tuple[int, RunningProcess]]":
    """Yield (depth, process), each below the one that it works for."""
    pids = {process.pid for process in processes}

    def below(parent: int, depth: int) -> "Iterator[tuple[int, RunningProcess]]":
        for process in processes:
            if (process.parent if process.parent in pids else 0) == parent:
                yield depth, process
                yield from below(process.pid, depth + 1)

    yield from below(0, 0)


def _memory(pid: int) -> str:
    """Return the resident memory, "-" where the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            pages = int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return "-"
    return f"{pages * os.sysconf('SC_PAGE_SIZE') / 2**20:.0f} MiB"
