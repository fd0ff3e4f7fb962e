"""Which sessions there are, and which changed last. Light: ``odek session list`` is this.

The times of the files tell which changed last, without a file being opened. They tell of something
else after a copy that did not keep them, or a ``touch``; then what the files say counts.
"""

import os
import stat
import time
from typing import TYPE_CHECKING

from odek.errors import StoreError
from odek.sessions.heads import Head, file_name, read_head
from odek.sessions.names import session_id
from odek.storage.files import describe

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["by_file_time", "last_changed", "resolve"]

_CANDIDATES_SHOWN = 5

_WRITTEN_WITHIN_NS = 60 * 10**9
"""A file is written soon after the moment that it names: after seconds, if it is large or the disk slow."""


def by_file_time(directory: "Path | str") -> list[tuple[str, int]]:
    """Return (id, time of its file in ns) of every session in ``directory``, the newest first.

    Raises:
        StoreError: the directory is there but cannot be read.
    """
    found: list[tuple[str, int]] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                session = session_id(entry.name)
                if session is None:
                    continue
                try:
                    if entry.is_file(follow_symlinks=False):
                        found.append((session, entry.stat(follow_symlinks=False).st_mtime_ns))
                except FileNotFoundError:
                    continue  # deleted meanwhile
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {directory}: {describe(error)}") from error
    found.sort(key=lambda item: (item[1], item[0]), reverse=True)
    return found


def last_changed(directory: "Path | str", limit: int | None = None) -> tuple[list[tuple[Head, int]], int]:
    """Return (head, time of the last change in ns) of the last ``limit`` sessions, and how many there are.

    Raises:
        StoreError: the directory is there but cannot be read.
    """
    found = by_file_time(directory)
    rows = _heads(directory, found[:limit])
    if all(abs(_told_ns(head, file_ns) - file_ns) < _WRITTEN_WITHIN_NS for head, file_ns in rows):
        return rows, len(found)
    told = [(_told_ns(head, file_ns), file_ns, head) for head, file_ns in _heads(directory, found)]
    told.sort(key=lambda row: (row[0], row[1], row[2].id), reverse=True)
    return [(head, told_ns) for told_ns, _, head in told[:limit]], len(found)


def resolve(directory: "Path | str", reference: str = "") -> str:
    """Return the id that ``reference`` means: an id, the beginning of one, or "" for the newest.

    Raises:
        StoreError: none is meant, or more than one.
    """
    if reference and _is_session(file_name(directory, reference)):
        return reference
    if not reference:
        newest, _ = last_changed(directory, 1)
        if not newest:
            raise StoreError(f"there is no session yet in {directory}")
        return newest[0][0].id
    matching = [session for session, _ in by_file_time(directory) if session.startswith(reference)]
    if not matching:
        raise StoreError(f"there is no session {reference} in {directory}; `odek session list` shows them")
    if len(matching) > 1:
        shown = ", ".join(matching[:_CANDIDATES_SHOWN])
        more = f" and {len(matching) - _CANDIDATES_SHOWN} more" if len(matching) > _CANDIDATES_SHOWN else ""
        raise StoreError(f"{reference} is the beginning of several sessions: {shown}{more}")
    return matching[0]


def _heads(directory: "Path | str", found: list[tuple[str, int]]) -> list[tuple[Head, int]]:
    """Return the heads of sessions with the times of their files, but for those deleted meanwhile."""
    return [(head, file_ns) for session, file_ns in found if (head := read_head(directory, session))]


def _told_ns(head: Head, file_ns: int) -> int:
    """Return when a session changed by its own word, or ``file_ns`` if it does not say."""
    if head.updated_at.startswith(time.strftime("%Y-%m-%dT%H:%M:", time.gmtime(file_ns // 10**9))):
        return file_ns  # as good as always, and nothing has to be loaded to see it
    from odek.timestamps import moment_of

    moment = moment_of(head.updated_at)
    return int(moment.timestamp() * 10**9) if moment is not None else file_ns


def _is_session(path: str) -> bool:
    """Tell whether there is a file of a session, as `by_file_time` does."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
