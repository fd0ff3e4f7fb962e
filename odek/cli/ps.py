"""``odek ps``: the running odek processes of this home, as a tree."""

import argparse
import os
import time
from typing import TYPE_CHECKING

from odek.cli.width import list_columns, on_one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odek.processes import RunningProcess

__all__ = ["add_arguments", "run"]

ROOMY_COLUMNS = 72
"""From here on there is room for the session between the age and the command."""

SESSION_COLUMNS = 17
"""The day and eight random digits of the id, as in the list of sessions."""

LEAST_COMMAND_COLUMNS = 12
"""Of what a process does, however deep it stands in the tree: less says nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There is nothing to choose but the form."""
    parser.add_argument("--json", action="store_true", help="print one JSON array")


def run(arguments: argparse.Namespace) -> int:
    """List the processes: pid, memory, age, session and what they do."""
    from odek.home import home_directory
    from odek.processes import running_processes

    processes = running_processes(home_directory(os.environ))
    if arguments.json:
        import msgspec

        print(msgspec.json.encode(processes).decode())
        return 0
    if not processes:
        print("no odek process of this home is running")
        return 0
    for line in _lines(processes, list_columns()):
        print(line)
    return 0


def _lines(processes: "Sequence[RunningProcess]", columns: int) -> "Iterator[str]":
    """Yield a line for each process, none of more than ``columns`` columns unless they are very few."""
    rows = [(f"{'  ' * depth}{process.pid}", process) for depth, process in _tree(processes)]
    pid_columns = max(len(pid) for pid, _ in rows)
    with_session = columns >= ROOMY_COLUMNS
    session = f"{'SESSION':<{SESSION_COLUMNS}}  " if with_session else ""
    yield f"{'PID':<{pid_columns}} {'MEMORY':>8} {'AGE':>9}  {session}COMMAND"
    for pid, process in rows:
        age = time.time() - process.started_at
        session = f"{process.session[:SESSION_COLUMNS]:<{SESSION_COLUMNS}}  " if with_session else ""
        start = f"{pid:<{pid_columns}} {_memory(process.pid):>8} {age:>7.0f} s  {session}"
        what = f"{process.command} {process.task}"
        yield start + on_one_line(what, max(columns - len(start), LEAST_COMMAND_COLUMNS))


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
