"""Directories reached step by step through descriptors, so that nobody can put a link on the way.

What is then done by a name in the open directory happens in that directory, whatever becomes
of the path that led there.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["descend"]

# Passing through takes the right to search a directory alone, where the system can say so.
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def descend(directory: "Path", *, changing: bool = False, make: bool = False) -> Iterator[int]:
    """Yield a descriptor of ``directory``, an absolute path, reached without following a link.

    Args:
        directory: Where to.
        changing: Whether something is to be changed in it; it is opened so that it can be synced.
        make: Whether missing directories are made, with the modes that the umask leaves.

    Raises:
        OSError: a part is missing, forbidden, or a link or file (ENOTDIR, ELOOP).
    """
    names = directory.parts[1:]
    current = os.open("/", _PASS if names or not changing else _LIST)
    try:
        for place, name in enumerate(names, 1):
            flags = _LIST if changing and place == len(names) else _PASS
            below = _open(name, flags, current, make=make)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _open(name: str, flags: int, directory: int, *, make: bool) -> int:
    try:
        return os.open(name, flags, dir_fd=directory)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # another program was faster; what it made is not followed either
        os.mkdir(name, 0o777, dir_fd=directory)
    return os.open(name, flags, dir_fd=directory)
