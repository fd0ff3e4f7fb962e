"""The running odek processes of a home: each has a file there, locked as long as it lives.

The kernel frees the lock however the process ends, so that what a file says is true
exactly while it is locked; a file that nobody locks is removed by whoever looks.
Everything here blocks.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.storage.files import ensure_directory
from odek.storage.locks import HeldLock, hold, note_of_holder

__all__ = ["RunningProcess", "agent_above", "is_running", "registered", "running_processes"]

LOCK_SECONDS = 1.0
"""For the own file, which nobody holds but for the moment of a look at it."""


class RunningProcess(msgspec.Struct, frozen=True, kw_only=True):
    """One process. ``parent`` is the odek process that it works for, or 0.

    ``started_at`` are seconds since 1970. ``task`` is the beginning of what it does, secrets masked.
    """

    pid: int
    command: str
    started_at: float
    parent: int = 0
    session: str = ""
    task: str = ""


@contextmanager
def registered(
    home: Path, *, command: str, parent: int = 0, session: str = "", task: str = ""
) -> Iterator[None]:
    """Have this process listed for a block. A home that cannot be written to does not stop it."""
    record = RunningProcess(
        pid=os.getpid(),
        command=command,
        started_at=time.time(),
        parent=parent,
        session=session,
        task=task[:200],
    )
    path = home / "run" / f"{record.pid}.json"
    lock = _list(path, msgspec.json.encode(record))
    try:
        yield
    finally:
        if lock is not None:
            lock.release(remove=True)


def running_processes(home: Path) -> list[RunningProcess]:
    """Return the living processes of ``home``, oldest first, and sweep the files of dead ones.

    Raises:
        OSError: their directory is closed to this user.
    """
    directory = home / "run"
    try:
        names = os.listdir(directory)  # noqa: PTH208 - glob would pass over a directory that is closed
    except (FileNotFoundError, NotADirectoryError):
        return []
    paths = (directory / name for name in names if name.endswith(".json"))
    found = [record for path in paths if (record := _read(path)) is not None]
    return sorted(found, key=lambda record: record.started_at)


def is_running(home: Path, pid: int) -> bool:
    """Whether ``pid`` is an odek process of ``home`` that lives."""
    return _read(home / "run" / f"{pid}.json") is not None


def agent_above(home: Path) -> int | None:
    """Return the odek process of ``home`` that this one was started by, however far above; None for none.

    A command that an agent runs stays below it, detached or not, for its warden takes up what
    is left behind. What another service starts on its behalf does not.
    """
    pid = os.getppid()
    while pid > 1:
        if is_running(home, pid):
            return pid
        pid = _parent_of(pid)
    return None


def _parent_of(pid: int) -> int:
    """Return the parent of a process, 0 if it is gone or the system does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(stat.rpartition(") ")[2].split()[1])  # the name before it may hold anything
    except (OSError, IndexError, ValueError):
        return 0


def _list(path: Path, note: bytes) -> HeldLock | None:
    try:
        ensure_directory(path.parent.parent)
        ensure_directory(path.parent, durable=False)
        return hold(path, timeout_seconds=LOCK_SECONDS, note=note)
    except (OSError, StoreError):
        return None


def _read(path: Path) -> RunningProcess | None:
    note = note_of_holder(path)
    try:
        return None if note is None else msgspec.json.decode(note, type=RunningProcess)
    except msgspec.MsgspecError:  # being written, or no file of ours
        return None
