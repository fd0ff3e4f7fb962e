"""Which sessions there are, without reading them. Light: ``odek session list`` is all of this.

Order is that of the last change of the files. Of each file shown, the beginning is read.
"""

import os
from pathlib import Path

from odek.errors import StoreError
from odek.sessions.names import check_id, session_id

__all__ = ["newest_first", "resolve"]

_CANDIDATES_SHOWN = 5


def newest_first(directory: Path) -> list[tuple[str, int]]:
    """Return (id, time of the last change in ns) of every session in ``directory``.

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
        raise StoreError(f"cannot read {directory}: {error.strerror}") from error
    found.sort(key=lambda item: (item[1], item[0]), reverse=True)
    return found


def resolve(directory: Path, reference: str | None) -> str:
    """Return the id that ``reference`` means: an id, the beginning of one, or None for the newest.

    Raises:
        StoreError: none is meant, or more than one.
    """
    if reference is not None:
        check_id(reference)
        if (directory / f"{reference}.json").is_file():
            return reference
    matching = [session for session, _ in newest_first(directory) if session.startswith(reference or "")]
    if reference is None and not matching:
        raise StoreError(f"there is no session yet in {directory}")
    if not matching:
        raise StoreError(f"there is no session {reference} in {directory}; `odek session list` shows them")
    if reference is not None and len(matching) > 1:
        shown = ", ".join(matching[:_CANDIDATES_SHOWN])
        more = f" and {len(matching) - _CANDIDATES_SHOWN} more" if len(matching) > _CANDIDATES_SHOWN else ""
        raise StoreError(f"{reference} is the beginning of several sessions: {shown}{more}")
    return matching[0]
