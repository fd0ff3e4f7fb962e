"""Sessions whose process is killed while it takes over what subagents used.

    python -m tests.support.usage_owner FOLDER STEP

does it once for every STEPth operation on the file system, in a fork that SIGKILL ends just
before that operation, until one gets through: first by the process that has delegated,
then by the one that goes on with its session after a crash. Each time it opens the session
twice more, in processes of their own. Prints a line of JSON for each: the operation before which
it was killed ("" for none), the tokens found by the two, and the records that are left.
"""

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from odek.events import Usage
from odek.messages import UserMessage
from odek.sessions.child_usage import ChildUsage, recorded_usage, usage_file, write_usage
from odek.sessions.store import SessionStore

__all__ = ["CHILDREN", "OWN"]

OWN = 1000
CHILDREN = 111
"""Tokens of the session itself, and of the tree of its subagents."""

OPERATIONS = ("open", "os.")
"""The beginnings of the audit events that stand for work on the file system."""


def die_before(number: int, note: Path) -> None:
    """End this process before the operation with that number, counted from now."""
    count = 0

    def watch(event: str, arguments: object) -> None:
        nonlocal count
        if event.startswith(OPERATIONS):
            count += 1
            if count == number:
                count = sys.maxsize // 2  # the note itself does not count
                note.write_text(f"{event} {arguments}")
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


async def delegate(home: Path, number: int) -> None:
    """Have a session whose subagent has delegated itself; die in taking over what they used."""
    session = SessionStore(home / "sessions", mask=lambda text: text).create("model", "task")
    session.append(UserMessage("task"))
    session.add_usage(Usage(prompt_tokens=OWN))
    await session.save()
    usage = ChildUsage(home, session)
    await usage.count_left()
    delegation = await usage.begin_delegation()
    file = usage_file(delegation, "task 1")
    write_usage(file, Usage(prompt_tokens=100))
    nested = await ChildUsage(home, session, below=file.with_suffix("")).begin_delegation()
    write_usage(usage_file(nested, "task 1"), Usage(prompt_tokens=10))
    write_usage(usage_file(nested, "task 2"), Usage(prompt_tokens=1))
    die_before(number, home / "killed")
    session.add_usage(recorded_usage(file))
    await usage.counted(delegation)
    await session.save()


async def go_on(home: Path, number: int) -> None:
    """Go on with the session; die in counting what is left, or write down what it has used."""
    session = SessionStore(home / "sessions", mask=lambda text: text).open("")
    if number:
        die_before(number, home / "killed")
    await ChildUsage(home, session).count_left()
    await session.save()
    if not number:
        with (home / "seen").open("a") as file:
            file.write(f"{session.usage.prompt_tokens}\n")


def in_fork(work: Callable[[Path, int], Awaitable[None]], home: Path, number: int) -> bool:
    """Do ``work`` in a fork; returns whether it came to its end."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            trio.run(work, home, number)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise SystemExit(f"{home}: it failed by itself")
    return os.WIFEXITED(status)


def main(folder: Path, step: int) -> None:
    """Kill at operations of the one, and then of the other."""
    for work in (delegate, go_on):
        number, came_through = 1 - step, False
        while not came_through:
            number += step
            home = folder / f"{work.__name__}-{number}"
            if work is go_on:
                in_fork(delegate, home, 1)
            came_through = in_fork(work, home, number)
            report(home, killed=not came_through)


def report(home: Path, *, killed: bool) -> None:
    """Go on with the session, twice, and print what there is."""
    in_fork(go_on, home, 0)
    in_fork(go_on, home, 0)
    found = {
        "killed": (home / "killed").read_text() if killed else "",
        "tokens": [int(line) for line in (home / "seen").read_text().split()],
        "left": [str(path) for path in (home / "usage").rglob("*")],
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
