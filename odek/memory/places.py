"""Where the files of the memory really are, and which of them may be read.

A link is followed only to a file of the same kind inside the home directory; anything
else in a file's place is refused by name, and never overwritten.
"""

import os
import re
import stat
from pathlib import Path

from odek.errors import StoreError

__all__ = [
    "INDEX",
    "INTENT",
    "JOBS",
    "JOURNAL",
    "LOCK",
    "body_name",
    "is_episode_id",
    "locate",
    "look",
    "read_bounded",
    "real_directory",
]

INDEX = "index.json"
JOURNAL = "journal.jsonl"
INTENT = ".commit.json"
LOCK = ".lock"
JOBS = "jobs"  # the directory of what is owed

MAX_ID_LENGTH = 128

# An episode of this name would be a file of facts.
_TAKEN = frozenset({"user", "env"})
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def is_episode_id(text: str) -> bool:
    """Tell whether an episode may have this id: one file name, no dot, separator or NUL in it."""
    return len(text) <= MAX_ID_LENGTH and _ID.fullmatch(text) is not None and text.lower() not in _TAKEN


def body_name(session_id: str) -> str:
    """Return the name of the file with an episode's text.

    Raises:
        StoreError: there can be no such episode.
    """
    if not is_episode_id(session_id):
        raise StoreError(
            f"memory: {session_id[:80]!a} is no episode id: it has letters, digits, - and _ alone"
        )
    return f"{session_id}.md"


def real_directory(directory: Path) -> Path:
    """Return the directory of the memory with links resolved; it need not exist.

    Raises:
        StoreError: it is a link out of the home directory, which is its parent.
    """
    status = look(directory)
    if status is None or not stat.S_ISLNK(status.st_mode):
        return directory
    return _inside(directory, directory.parent)


def locate(directory: Path, name: str) -> Path:
    """Return the path that holds the file ``name`` of the memory; it need not exist.

    Raises:
        StoreError: it is a link to something that is not a file of the same kind below the
            home directory, or it has a second name.
    """
    path = real_directory(directory) / name
    status = look(path)
    if status is None:
        return path
    if stat.S_ISLNK(status.st_mode):
        found = _inside(path, directory.parent)
        if found.suffix != path.suffix:
            raise StoreError(f"{path} is a symbolic link to {found}, which is no {path.suffix} file")
        return found
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        raise StoreError(
            f"{path} has a second name (hard link), so that its text may be another file's; "
            "replace it by a copy of its own"
        )
    return path


def read_bounded(directory: Path, name: str, *, limit_bytes: int) -> bytes:
    """Return the bytes of the file ``name`` of the memory.

    Raises:
        FileNotFoundError: there is none.
        StoreError: it must not or cannot be read, or is larger than ``limit_bytes``.
    """
    from odek.storage.files import read_file

    return read_file(locate(directory, name), limit_bytes=limit_bytes)


def look(path: Path) -> os.stat_result | None:
    """Return what is at ``path``, a link itself and not what it leads to; None for nothing.

    Raises:
        StoreError: that cannot be told.
    """
    try:
        return path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        from odek.storage.files import describe

        raise StoreError(f"cannot read {path}: {describe(error)}") from error


def _inside(link: Path, root: Path) -> Path:
    """Return what ``link`` leads to, which must lie below ``root``."""
    found, real_root = os.path.realpath(link), os.path.realpath(root)
    if not found.startswith(f"{real_root}/"):
        raise StoreError(f"{link} is a symbolic link out of {root}, to {found}; it is not followed")
    return Path(found)
