"""From the bytes of a session file to a conversation, whatever happened to the file.

A file as this version writes it is decoded in one step. One by another program, edited by
hand, cut off or damaged is read as far as it can be, message by message.
"""

from collections.abc import Iterator, Mapping
from json import JSONDecoder
from pathlib import Path
from typing import Any

import msgspec

from odek.errors import StoreCorruptError
from odek.events import Usage
from odek.messages import Message
from odek.patterns import late_pattern
from odek.sessions.document import Document, Header
from odek.sessions.foreign import message_of, parts_left_out
from odek.sessions.heads import fields_before_messages
from odek.sessions.repair import repair
from odek.text import without_surrogates

__all__ = ["DAMAGED_SESSION", "Reading", "read_session", "unknown_fields"]

DAMAGED_SESSION = "damaged_session"
"""The taint of a session whose record of taints cannot be read."""

# A quote inside a JSON string has a backslash in front, so these never match within a text.
_MESSAGES = late_pattern(r'(?<!\\)"messages"\s*:\s*\[')
_MESSAGE = late_pattern(r'\{\s*"role"\s*:')
_FLAG = late_pattern(r'"(episode_untrusted|untrusted_ingested)"\s*:\s*(true|false)')

_DECODER = JSONDecoder(strict=False)

_KNOWN_FIELDS = frozenset(Document.__struct_fields__)


class Reading(msgspec.Struct, frozen=True):
    """What was read. With ``damaged`` the file holds more than this, and is to be kept aside."""

    header: Header
    messages: list[Message]
    notices: tuple[str, ...] = ()
    damaged: bool = False


def read_session(data: bytes, session: str, path: Path) -> Reading:
    """Return the session that ``data`` spells. ``session`` is its id, ``path`` is for messages.

    Raises:
        StoreCorruptError: nothing in it is a session.
    """
    try:
        document = msgspec.json.decode(data, type=Document)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        reading = _read_leniently(data, session, path)
    else:
        fields = {name: getattr(document, name) for name in Header.__struct_fields__}
        reading = Reading(Header(**(fields | {"id": session})), list(document.messages))
    repaired = repair(reading.messages)
    return Reading(
        reading.header,
        repaired.messages,
        (*reading.notices, *repaired.notices),
        reading.damaged or repaired.lossy,
    )


def unknown_fields(data: bytes) -> dict[str, Any]:
    """Return the fields of a session file that this version does not know: a later one may.

    Of a file that is no JSON there are none.
    """
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        return {name: msgspec.json.decode(raw) for name, raw in fields.items() if name not in _KNOWN_FIELDS}
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    try:
        value = _DECODER.decode(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return {}
    return (
        {name: value[name] for name in value if name not in _KNOWN_FIELDS} if isinstance(value, dict) else {}
    )


def _read_leniently(data: bytes, session: str, path: Path) -> Reading:
    notices: list[str] = []
    text = data.decode("utf-8-sig", "replace")
    broken = text.count("\ufffd") - data.count("\ufffd".encode())
    if broken:
        notices.append(f"{broken:,} bytes are no UTF-8 and were replaced")
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return _salvage(text, session, path, notices)
    if not isinstance(value, dict):
        raise StoreCorruptError(f"{path} is no session: it holds no JSON object; it was left as it is")
    written = value.get("messages") or []
    if not isinstance(written, list):
        notices.append("`messages` is no list and was left out")
    messages, dropped = _messages(written if isinstance(written, list) else [])
    header, doubts = _header(value, session, complete=True)
    damaged = bool(broken or dropped or not isinstance(written, list))
    return Reading(header, messages, (*notices, *dropped, *doubts), damaged)


def _salvage(text: str, session: str, path: Path, notices: list[str]) -> Reading:
    """Read what is whole in a file that is no JSON."""
    fields, _ = fields_before_messages(text)
    for name, value in _FLAG.findall(text):
        fields[name] = fields.get(name) is True or value == "true"
    found = _MESSAGES.search(text)
    values = list(_whole_messages(text, found.end() if found else 0, notices))
    messages, dropped = _messages(values)
    if not messages:
        raise StoreCorruptError(f"{path}: nothing in it can be read as a session; it was left as it is")
    header, doubts = _header(fields, session, complete=False)
    return Reading(header, messages, (*notices, *dropped, *doubts), damaged=True)


def _whole_messages(text: str, at: int, notices: list[str]) -> Iterator[object]:
    """Yield the values of a list that begins at ``at``, going on behind each damage."""
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at >= len(text):
            notices.append("the file breaks off: what was behind the last whole message is lost")
            return
        if text[at] == "]":
            return
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            following = _MESSAGE.search(text, at + 1)
            end = following.start() if following else len(text)
            notices.append(f"{end - at:,} characters from position {at:,} on cannot be read")
            if following is None:
                return
            at = end
        else:
            yield value


def _messages(values: list[object]) -> tuple[list[Message], list[str]]:
    """Convert ``values``; return the messages, and a notice for each kind of loss."""
    messages: list[Message] = []
    reasons: dict[str, int] = {}
    parts = 0
    for value in values:
        parts += parts_left_out(value)
        message = message_of(value)
        if isinstance(message, str):
            reasons[message] = reasons.get(message, 0) + 1
        else:
            messages.append(message)
    notices = [
        f"a message was left out: {reason}" if count == 1 else f"{count} messages were left out: {reason}"
        for reason, count in reasons.items()
    ]
    if parts:
        left_out = "a part of a message was" if parts == 1 else f"{parts} parts of messages were"
        notices.append(f"{left_out} left out: only text is kept")
    return messages, notices


def _header(fields: Mapping[str, Any], session: str, *, complete: bool) -> tuple[Header, list[str]]:
    """Build the header from ``fields``; a taint that cannot be told counts as there."""
    untrusted, sure = _flag(fields, "episode_untrusted", complete=complete)
    ingested, sure_too = _flag(fields, "untrusted_ingested", complete=complete)
    sources = _texts(fields.get("taint_sources"))
    doubtful = not (sure and sure_too)
    if doubtful:
        sources = (*sources, *({DAMAGED_SESSION} - set(sources)))
    header = Header(
        id=session,
        created_at=_text(fields.get("created_at")),
        updated_at=_text(fields.get("updated_at")),
        model=_text(fields.get("model")),
        task=_text(fields.get("task")),
        sandbox=fields.get("sandbox") is True,
        episode_untrusted=untrusted,
        untrusted_ingested=ingested,
        taint_sources=sources,
        usage=_usage(fields.get("usage")),
        buffer=_texts(fields.get("buffer")),
        counted_delegations=_texts(fields.get("counted_delegations")),
    )
    doubt = "whether it took in outside content cannot be read any more; it counts as untrusted"
    return header, [doubt] if doubtful else []


def _flag(fields: Mapping[str, Any], name: str, *, complete: bool) -> tuple[bool, bool]:
    """Return (value, whether it is sure). Left out of a whole file, a flag is false."""
    value = fields.get(name, False if complete else None)
    return (value, True) if isinstance(value, bool) else (True, False)


def _text(value: object) -> str:
    return without_surrogates(value) if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(_text, filter(None, value))) if isinstance(value, list) else ()


def _usage(value: object) -> Usage:
    try:
        return msgspec.convert(value, Usage)
    except msgspec.ValidationError:
        return Usage()
