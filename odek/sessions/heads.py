"""Which sessions there are, from the beginnings of their files. Light: ``odek session list`` is this.

Order is that of the last change of the files.
"""

import os
import stat
from typing import TYPE_CHECKING, Any, NamedTuple

from odek.errors import StoreError
from odek.sessions.names import SUFFIX, check_id, session_id
from odek.storage.files import describe, read_end, read_start

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Head", "fields_before_messages", "kept_originals", "newest_first", "read_head", "resolve"]

FIRST_READ_BYTES = 8 * 1024
"""Holds all fields before the messages as a rule; every further read takes eight times as much."""

LAST_READ_BYTES = 512 * 1024
"""A file whose task is not found in this much is listed without it."""

_LAST_BYTES = 64  # of white space behind the end, as an editor may leave it

_CANDIDATES_SHOWN = 5
_SPACE = " \t\r\n"


class Head(NamedTuple):
    """What a list shows of a session; a field that its file does not tell is empty.

    Times are RFC 3339 as the file has them. ``untrusted`` is true as well when the file
    has something else than true or false there. ``damage`` says what is seen to be wrong with the
    file at its beginning and its end, "" for nothing: `SessionStore.read` looks at all of it.
    """

    id: str
    created_at: str
    updated_at: str
    model: str
    turns: int
    task: str
    untrusted: bool
    damage: str = ""


def newest_first(directory: "Path | str") -> list[tuple[str, int]]:
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
        raise StoreError(f"cannot read {directory}: {describe(error)}") from error
    found.sort(key=lambda item: (item[1], item[0]), reverse=True)
    return found


def resolve(directory: "Path | str", reference: str = "") -> str:
    """Return the id that ``reference`` means: an id, the beginning of one, or "" for the newest.

    Raises:
        StoreError: none is meant, or more than one.
    """
    if reference and _is_session(_file_name(directory, reference)):
        return reference
    matching = [session for session, _ in newest_first(directory) if session.startswith(reference)]
    if not matching and not reference:
        raise StoreError(f"there is no session yet in {directory}")
    if not matching:
        raise StoreError(f"there is no session {reference} in {directory}; `odek session list` shows them")
    if reference and len(matching) > 1:
        shown = ", ".join(matching[:_CANDIDATES_SHOWN])
        more = f" and {len(matching) - _CANDIDATES_SHOWN} more" if len(matching) > _CANDIDATES_SHOWN else ""
        raise StoreError(f"{reference} is the beginning of several sessions: {shown}{more}")
    return matching[0]


def read_head(directory: "Path | str", session: str) -> Head | None:
    """Return the head of ``session``; None when its file is gone."""
    path, size_bytes = _file_name(directory, session), FIRST_READ_BYTES
    while True:
        try:
            data = read_start(path, size_bytes=size_bytes)
            end = read_end(path, size_bytes=_LAST_BYTES)
        except FileNotFoundError:
            return None
        except StoreError as error:
            damage = f"cannot be read: {str(error).rpartition(': ')[2]}"
            return Head(session, "", "", "", 0, "", untrusted=True, damage=damage)
        fields, complete = fields_before_messages(data.decode("utf-8-sig", "replace"))
        if complete or "task" in fields or len(data) < size_bytes or size_bytes >= LAST_READ_BYTES:
            break
        size_bytes *= 8
    turns = fields.get("turns")
    return Head(
        id=session,
        created_at=_text(fields.get("created_at")),
        updated_at=_text(fields.get("updated_at")),
        model=_text(fields.get("model")),
        turns=turns if isinstance(turns, int) else 0,
        task=_text(fields.get("task")),
        untrusted=fields.get("episode_untrusted", False) is not False,
        damage=_damage(data, end),
    )


def kept_originals(directory: "Path | str") -> "dict[str, list[str]]":
    """Return, by session, the names of the states that were kept aside before damaged ones were mended."""
    found: dict[str, list[str]] = {}
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                session, mark, _ = entry.name.partition(f"{SUFFIX}.damaged-")
                if mark:
                    found.setdefault(session, []).append(entry.name)
    except OSError:
        return {}
    return found


def _damage(start: bytes, end: bytes) -> str:
    """Say what is wrong with a file that has this beginning and this end."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        return "empty file"
    if not text.startswith(b"{"):
        return "no session"
    return "" if end.rstrip().endswith(b"}") else "breaks off"


def fields_before_messages(text: str) -> tuple[dict[str, Any], bool]:
    """Return the fields of a JSON object in front of ``messages``, and whether these were all.

    ``text`` may break off or be damaged; then the fields before that place are returned.
    """
    from json import JSONDecoder  # here, because an empty list does without

    decoder = JSONDecoder(strict=False)
    fields: dict[str, Any] = {}
    at = text.find("{") + 1
    try:
        while at:
            at = _skip(text, at, _SPACE + ",")
            if text[at] == "}":
                return fields, True
            key, at = decoder.raw_decode(text, at)
            at = _skip(text, at, _SPACE)
            if not isinstance(key, str) or text[at] != ":":
                break
            if key == "messages":
                return fields, True
            fields[key], at = decoder.raw_decode(text, _skip(text, at + 1, _SPACE))
    except (ValueError, IndexError, RecursionError):
        return fields, False
    return fields, False


def _is_session(path: str) -> bool:
    """Tell whether there is a file of a session, as `newest_first` does."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _file_name(directory: "Path | str", session: str) -> str:
    return f"{directory}/{check_id(session)}{SUFFIX}"


def _skip(text: str, at: int, characters: str) -> int:
    while text[at] in characters:
        at += 1
    return at


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
