"""Exclusive locks between processes, by ``flock``.

The kernel frees such a lock when its holder dies, however it dies. Whoever gets the
lock compares what it locked with what the path names now, and tries again if that is
another file. A lock file is thus changed and removed by its holder alone, which does the
latter as the last thing: a waiter on the removed file finds out and opens the new one.
What stands in it is true exactly while it is locked.
Locks work on local file systems; where they do not, that is an error and never a
reason to go on without. Everything here blocks.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from odek.errors import StoreBusyError, StoreError
from odek.storage.files import PRIVATE_FILE, describe

__all__ = ["HeldLock", "exclusive", "hold", "note_of_holder"]

POLL_SECONDS = 0.01
"""Between two tries. flock has no time limit of its own; a hundred tries a second cost nothing."""

REPLACED_TRIES = 100
"""Tries without a pause when the file turns out to be another by now: each remover ends one try."""


NOTE_BYTES = 4096
"""Most that is read of a note: a page, several times what any holder has to say of itself."""


class HeldLock:
    """A lock that is held until it is released, or this process ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor

    def is_intact(self) -> bool:
        """Tell whether the lock is held and still excludes others: its file may have been removed.

        Raises:
            StoreError: that cannot be told.
        """
        try:
            return self._descriptor is not None and _is_still(self.path, self._descriptor)
        except OSError as error:
            raise StoreError(f"cannot check the lock {self.path}: {describe(error)}") from error

    def release(self, *, remove: bool = False) -> None:
        """Give the lock back, and ``remove`` its file before; once is enough."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        try:
            if remove and _is_still(self.path, descriptor):
                with suppress(OSError):  # a lock file that stays does no harm
                    self.path.unlink()
            # Closing is not enough when a forked child has a copy; where this fails, it is all there is.
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
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


def hold(
    path: Path, *, timeout_seconds: float, poll: Callable[[], None] | None = None, note: bytes | None = None
) -> HeldLock:
    """Take the lock at ``path``, waiting at most ``timeout_seconds``.

    ``poll`` is called between tries and may raise to give up the wait. ``note`` stands in the
    file while the lock is held, for ``note_of_holder``; None writes the pid, where there is room.

    Raises:
        StoreBusyError: another process still holds it; says which.
        StoreError: the lock file cannot be used, or not hold ``note``.
    """
    deadline = time.monotonic() + timeout_seconds
    replaced = 0
    try:
        while True:
            lock, pid = _try_hold(path, note)
            if lock is not None:
                return lock
            if pid is None and replaced < REPLACED_TRIES:
                replaced += 1
                continue
            if time.monotonic() >= deadline:
                raise _busy(path, pid, timeout_seconds)
            if poll is not None:
                poll()
            time.sleep(POLL_SECONDS)
    except OSError as error:
        raise StoreError(f"cannot lock {path}: {_reason(error)}") from error


def note_of_holder(path: Path) -> bytes | None:
    """Return the note in the lock file at ``path``; None when nobody holds it, and then the file goes.

    The note may be cut or mixed with an older one while it is being written.
    """
    try:
        descriptor = _open(path, os.O_RDWR)
    except (OSError, StoreError):
        return None
    try:
        # Shared with others that look: none of them is taken for the holder.
        if not _try_lock(descriptor, fcntl.LOCK_SH):
            return os.pread(descriptor, NOTE_BYTES, 0)
        if _try_lock(descriptor) and _is_still(path, descriptor):
            path.unlink(missing_ok=True)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None


def _try_hold(path: Path, note: bytes | None) -> tuple[HeldLock | None, int | None]:
    """Try once; return the lock, or the pid of its holder (0: unknown, None: the file was replaced)."""
    descriptor = _open(path, os.O_RDWR | os.O_CREAT)
    kept = False
    try:
        if not _try_lock(descriptor):
            return None, _read_pid(descriptor)
        if not _is_still(path, descriptor):
            return None, None
        if note is None:
            _write_pid(descriptor)
        else:
            _write_note(path, descriptor, note)
        kept = True
        return HeldLock(path, descriptor), None
    finally:
        if not kept:
            os.close(descriptor)


def _open(path: Path, flags: int) -> int:
    """Open the lock file without following a link or waiting on a pipe."""
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path, flags, PRIVATE_FILE)
    status = os.fstat(descriptor)
    problem = ""
    if not stat.S_ISREG(status.st_mode):
        problem = "it is no regular file"
    elif status.st_nlink > 1:  # the pid would be written into a file that is somebody's
        problem = "it has a second name (hard link); remove it"
    if problem:
        os.close(descriptor)
        raise StoreError(f"cannot lock {path}: {problem}")
    if stat.S_IMODE(status.st_mode) != PRIVATE_FILE:
        with suppress(OSError):  # the umask took bits away, or the file is another user's
            os.fchmod(descriptor, PRIVATE_FILE)
    return descriptor


def _try_lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
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
    with suppress(OSError):  # a lock without a name in it, on a full disk, is still a lock
        os.pwrite(descriptor, f"{os.getpid():<20}\n".encode(), 0)


def _write_note(path: Path, descriptor: int, note: bytes) -> None:
    """Write what the holder says of itself; where that fails the file goes, empty as it would be."""
    try:
        os.pwrite(descriptor, note, 0)
        os.ftruncate(descriptor, len(note))
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _read_pid(descriptor: int) -> int:
    text = os.pread(descriptor, 32, 0).split()
    return int(text[0]) if text and text[0].isdigit() else 0


def _busy(path: Path, pid: int | None, waited_seconds: float) -> StoreBusyError:
    holder = f"pid {pid}" if pid else "another process"
    held = f"still held by {holder} after {waited_seconds:g} s" if waited_seconds else f"held by {holder}"
    return StoreBusyError(f"{path} is {held}", pid=pid or None)


def _reason(error: OSError) -> str:
    if error.errno in {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS}:
        return "this file system has no locks; keep the odek home on a local disk"
    return describe(error)
