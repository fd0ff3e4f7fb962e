"""Files whose content decides what an approved call does: have they changed since it was shown?

A file is told by its identity on disk, not by its text: device, inode, size and the times of
its last changes, of which the last cannot be set back by whoever may only write the file.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

__all__ = ["BoundFiles", "bind"]

_Identity = tuple[int, int, int, int, int]


class BoundFiles(msgspec.Struct, frozen=True):
    """Files as they were when the call was judged; None is one that was not there."""

    identities: tuple[tuple[str, _Identity | None], ...] = ()

    def changed(self) -> str | None:
        """Return the first file that is not what it was, None when all are. Touches the disk."""
        return next((path for path, identity in self.identities if _identity(path) != identity), None)


def bind(paths: Iterable[str]) -> BoundFiles:
    """Take down what ``paths`` are now. Touches the disk."""
    return BoundFiles(tuple((path, _identity(path)) for path in dict.fromkeys(paths)))


def _identity(path: str) -> _Identity | None:
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
