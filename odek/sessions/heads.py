"""What sessions are, from the beginnings of their files. Light: ``odek session list`` is this."""

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from odek.errors import StoreError
from odek.sessions.names import SUFFIX, check_id
from odek.storage.files import read_end, read_start

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Head", "fields_before_messages", "file_name", "kept_originals", "read_head"]

FIRST_READ_BYTES = 8 * 1024
"""Holds all fields before the messages as a rule; every further read takes eight times as much."""

LAST_READ_BYTES = 512 * 1024
"""A file whose task is not found in this much is listed without it."""

_LAST_BYTES = 64  # of white space behind the end, as an editor may leave it

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


def read_head(directory: "Path | str", session: str) -> Head | None:
    """Return the head of ``session``; None when its file is gone."""
    path, size_bytes = file_name(directory, session), FIRST_READ_BYTES
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


def file_name(directory: "Path | str", session: str) -> str:
    """Return the path of the file of ``session``, which need not exist.

    Raises:
        StoreError: no session can have this id.
    """
    return f"{directory}/{check_id(session)}{SUFFIX}"


def _skip(text: str, at: int, characters: str) -> int:
    while text[at] in characters:
        at += 1
    return at


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
