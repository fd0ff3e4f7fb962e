"""The running odek processes of a home: each has a file there, locked as long as it lives.

The kernel frees the lock however the process ends, so that what a file says is true
exactly while it is locked; a file that nobody locks is swept. Everything here blocks.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.storage.files import PRIVATE_FILE, ensure_directory

__all__ = ["RunningProcess", "agent_above", "is_running", "registered", "running_processes"]

FILE_BYTES = 4096


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
    descriptor = _claim(path, msgspec.json.encode(record)[:FILE_BYTES])
    try:
        yield
    finally:
        if descriptor is not None:
            with suppress(OSError):
                path.unlink()
            os.close(descriptor)


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


def _claim(path: Path, data: bytes) -> int | None:
    try:
        ensure_directory(path.parent.parent)
        ensure_directory(path.parent, durable=False)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):  # a sweep took it away just before we had it
                if path.stat().st_ino == os.fstat(descriptor).st_ino:
                    return _filled(descriptor, path, data)
            os.close(descriptor)
    except (OSError, StoreError):
        return None


def _filled(descriptor: int, path: Path, data: bytes) -> int:
    """Write the record into the locked file; on a full disk the file goes, empty as it would be."""
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, data, 0)
    except OSError:
        path.unlink(missing_ok=True)
        os.close(descriptor)
        raise
    return descriptor


def _read(path: Path) -> RunningProcess | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return msgspec.json.decode(os.pread(descriptor, FILE_BYTES, 0), type=RunningProcess)
        path.unlink(missing_ok=True)
    except (OSError, msgspec.MsgspecError):  # being written, or no file of ours
        return None
    finally:
        os.close(descriptor)
    return None
