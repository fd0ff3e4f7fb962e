"""Files of lines that only grow. A line that a crash left unfinished is ended before the next one."""

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from odek.errors import StoreError
from odek.storage.files import PRIVATE_FILE, describe

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["append_lines"]


def append_lines(path: "Path", data: bytes, *, durable: bool = True, alone: bool = True) -> int:
    """Add whole lines to a file, made for the owner alone if it is missing; return its size. Blocking.

    Args:
        path: The file; a link in its place is refused.
        data: One or more lines, each with its end.
        durable: Whether they are on disk on return. The name of a new file may still be lost
            in a power cut.
        alone: Whether nobody else appends meanwhile. If so, an error leaves nothing behind; else
            it may leave an unfinished line, which the next one ends.

    Raises:
        StoreError: not all of it is in the file.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, PRIVATE_FILE)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise StoreError(f"cannot write {path}: it is no regular file")
            if stat.S_IMODE(status.st_mode) != PRIVATE_FILE:  # the umask took bits away
                os.fchmod(descriptor, PRIVATE_FILE)
            size = status.st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                data = b"\n" + data
            try:
                _write_whole(descriptor, data, size if alone else None)
            except OSError:
                if alone and not size:  # as if it had never been made
                    path.unlink(missing_ok=True)
                raise
            if durable:
                os.fsync(descriptor)  # noqa: TID251 - the purpose
            return size + len(data)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {describe(error)}") from error


def _write_whole(descriptor: int, data: bytes, restore_bytes: int | None) -> None:
    """Write all of ``data``; on an error go back to the size of before, if it is given."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError:
        if restore_bytes is not None:
            with suppress(OSError):
                os.ftruncate(descriptor, restore_bytes)
        raise
