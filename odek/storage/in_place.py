"""A file written where it is: for one that no other can be put in the place of."""

import os
from contextlib import suppress
from pathlib import Path

from odek.errors import StoreError
from odek.storage.files import describe

__all__ = ["overwrite_file"]


def overwrite_file(path: Path, data: bytes, *, before: bytes, directory: int) -> None:
    """Write ``data`` over ``before``, the content of ``path``, durably; a reader may see a part of both.

    A file that is a mount point, as when a container is given a single file, can be written
    in no other way. ``directory`` is a descriptor of the one that ``path`` lies in.

    Raises:
        StoreError: it could not be written; ``before`` is there again if the disk allows that.
    """
    try:
        descriptor = os.open(path.name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            try:
                _write(descriptor, data)
            except BaseException:
                with suppress(OSError):
                    _write(descriptor, before)
                raise
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {describe(error)}") from error


def _write(descriptor: int, data: bytes) -> None:
    """Make ``data`` the whole content. The end is cut last: until then its room is not given away."""
    done = 0
    while done < len(data):
        done += os.pwrite(descriptor, data[done:], done)
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)  # noqa: TID251 - the data is to last
