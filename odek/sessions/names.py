"""How sessions are named, and where their files are. Light: the list of sessions asks this.

A session ``<id>`` is the file ``<id>.json``; its name is the only id that counts, whatever
the file says of itself.
"""

import re
from typing import TYPE_CHECKING

from odek.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "AUDIT",
    "LOCKS",
    "SUFFIX",
    "audit_path",
    "check_id",
    "is_id",
    "lock_path",
    "new_id",
    "session_id",
    "session_path",
]

SUFFIX = ".json"
LOCKS = "locks"
AUDIT = "audit"

MAX_LENGTH = 128

# Not a session: the list that an installation of the system before this one kept beside them.
_FOREIGN = frozenset({"index"})

_is_id = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*").fullmatch


def new_id(day: str) -> str:
    """Return an id that nobody can guess; ``day`` is the date as ``YYYYMMDD``."""
    import secrets  # here, because only a new session pays for it

    return f"{day}-{secrets.token_hex(16)}"


def is_id(text: str) -> bool:
    """Tell whether ``text`` can be an id, or the beginning of one.

    Never a separator, a dot or NUL, so that an id cannot lead out of its directory.
    """
    return _is_id(text) is not None and len(text) <= MAX_LENGTH and text not in _FOREIGN


def check_id(text: str) -> str:
    """Return ``text`` if it can be an id or the beginning of one.

    Raises:
        StoreError: it cannot.
    """
    if not is_id(text):
        raise StoreError(f"{text[:80]!a} is no session id: it has letters, digits, - and _ alone")
    return text


def session_id(file_name: str) -> str | None:
    """Return the id of the session whose file has this name; None when it is no session's."""
    stem = file_name.removesuffix(SUFFIX)
    return stem if stem != file_name and is_id(stem) else None


def session_path(directory: "Path", session: str) -> "Path":
    """Return the file of ``session``."""
    return directory / f"{check_id(session)}{SUFFIX}"


def lock_path(directory: "Path", session: str) -> "Path":
    """Return the lock that the owner of ``session`` holds.

    It stays as long as the session does. It goes as the last act of whoever deletes the
    session and holds it; a process that waited for it sees by the inode that it is gone.
    """
    return directory / LOCKS / f"{check_id(session)}.lock"


def audit_path(directory: "Path", session: str) -> "Path":
    """Return the file with the record of what ``session`` took in and what was decided in it."""
    return directory / AUDIT / f"{check_id(session)}.jsonl"
