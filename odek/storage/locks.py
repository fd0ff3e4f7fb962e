"""Exclusive locks between processes, by ``flock``.

The kernel frees such a lock when its holder dies, however it dies. The lock file is
never removed or truncated by a waiter: that would split the waiters over two files.
Locks work on local file systems; where they do not, that is an error and never a
reason to go on without. Everything here blocks.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from odek.errors import StoreBusyError, StoreError
from odek.storage.files import describe

__all__ = ["HeldLock", "exclusive", "hold"]

POLL_SECONDS = 0.01
"""Between two tries. flock has no time limit of its own; a hundred tries a second cost nothing."""


class HeldLock:
    """A lock that is held until it is released, or this process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Give the lock back; once is enough."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def exclusive(
    path: Path, *, timeout_seconds: float, poll: Callable[[], None] | None = None
) -> Iterator[None]:
    """Hold the lock at ``path`` for a block; see ``hold``."""
    lock = hold(path, timeout_seconds=timeout_seconds, poll=poll)
    try:
        yield
    finally:
        lock.release()


def hold(path: Path, *, timeout_seconds: float, poll: Callable[[], None] | None = None) -> HeldLock:
    """Take the lock at ``path``, waiting at most ``timeout_seconds``.

    ``poll`` is called between tries and may raise to give up the wait.

    Raises:
        StoreBusyError: another process still holds it; says which.
        StoreError: the lock file cannot be used.
    """
    deadline = time.monotonic() + timeout_seconds
    try:
        while True:
            descriptor = _open(path)
            held = False
            try:
                if _try_lock(descriptor) and _is_still(path, descriptor):
                    _write_pid(descriptor)
                    held = True
                    return HeldLock(descriptor)
                pid = _read_pid(descriptor)
            finally:
                if not held:
                    os.close(descriptor)
            if time.monotonic() >= deadline:
                raise _busy(path, pid, timeout_seconds)
            if poll is not None:
                poll()
            time.sleep(POLL_SECONDS)
    except OSError as error:
        raise StoreError(f"cannot lock {path}: {_reason(error)}") from error


def _open(path: Path) -> int:
    """Open the lock file, created if need be, without following a link or waiting on a pipe."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise StoreError(f"cannot lock {path}: it is no regular file")
    return descriptor


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EINTR}:
            return False
        raise
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    """Tell whether what was locked is the file that others will open: it may have been replaced."""
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    mine = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)


def _write_pid(descriptor: int) -> None:
    """Name the holder, for the message that others get; fixed width, so that nothing is truncated."""
    os.pwrite(descriptor, f"{os.getpid():<20}\n".encode(), 0)


def _read_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).split()
    return int(text[0]) if text and text[0].isdigit() else None


def _busy(path: Path, pid: int | None, waited_seconds: float) -> StoreBusyError:
    holder = f"pid {pid}" if pid is not None else "another process"
    after = f" after {waited_seconds:g} s" if waited_seconds else ""
    return StoreBusyError(f"{path} is still held by {holder}{after}", pid=pid)


def _reason(error: OSError) -> str:
    if error.errno in {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS}:
        return "this file system has no locks; keep the odek home on a local disk"
    return describe(error)
