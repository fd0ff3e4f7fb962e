"""Opening regular files, and nothing that only looks like one."""

import os
import stat
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path

from odek.errors import ToolError
from odek.storage.descent import descend
from odek.tools.paths import os_error

__all__ = ["CHUNK_BYTES", "chunks", "kind_of", "open_regular", "open_regular_in"]

CHUNK_BYTES = 256 * 1024
"""Read at once: a cancel is noticed between two of these; larger ones measured no faster."""


def kind_of(mode: int) -> str:
    """Name the kind of file that ``st_mode`` describes, with its article."""
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        return "a device"
    return "a regular file" if stat.S_ISREG(mode) else "no regular file"


def open_regular(path: Path, shown: str) -> BufferedReader:
    """Open ``path``, no part of which may be a link, for reading.

    Never waits: a pipe without a writer, a terminal or a device is refused.

    Raises:
        ToolError: it is missing, not permitted, or no regular file.
    """
    try:
        with descend(path.parent) as directory:
            return open_regular_in(directory, path.name, shown)
    except OSError as error:
        raise os_error(error, shown) from None


def open_regular_in(directory: int, name: str, shown: str) -> BufferedReader:
    """Open the file ``name`` of an open directory, as ``open_regular`` does.

    Raises:
        OSError: it is missing or not permitted.
        ToolError: it is no regular file.
    """
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    _refuse_irregular(status.st_mode, shown)  # opening a device can already act on it
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=directory)
    try:
        _refuse_irregular(os.fstat(descriptor).st_mode, shown)  # it may have been swapped in between
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def chunks(file: BufferedReader, shown: str, check: Callable[[], None]) -> Iterator[bytes]:
    """Yield the rest of ``file`` piece by piece; ``check`` is called before each and may raise."""
    while True:
        check()
        try:
            chunk = file.read(CHUNK_BYTES)
        except OSError as error:
            raise os_error(error, shown) from None
        if not chunk:
            return
        yield chunk


def _refuse_irregular(mode: int, shown: str) -> None:
    if not stat.S_ISREG(mode):
        raise ToolError(f"{shown} is {kind_of(mode)}, not a regular file")
