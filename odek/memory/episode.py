"""An episode, what is known of its origin, and the index that lists them. Pure.

The index is a JSON array with an object for each episode. Whatever somebody did to it:
entries that can be used are, the others are named, and a damaged origin counts as
untrusted.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from odek.memory.places import is_episode_id
from odek.text import clip_line, without_surrogates
from odek.timestamps import moment_of

__all__ = [
    "SUMMARY_LIMIT_BYTES",
    "UNKNOWN_PROVENANCE",
    "Entry",
    "Episode",
    "Index",
    "Provenance",
    "encode_index",
    "parse_index",
    "preview",
]

SUMMARY_LIMIT_BYTES = 2048
PREVIEW_LENGTH = 120

_BEGIN, _BETWEEN = b"[\n", b",\n"
"""The list as it is written: a line for each entry."""

UNKNOWN_PROVENANCE = "unknown_provenance"
"""The source of an episode of whose session nothing is known."""


# The three below can be in no cycle, and a list has thousands: the garbage collector need not look at them.


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Where an episode's content comes from.

    ``untrusted`` with its ``sources`` is never taken back; an approval by a person or by
    the configuration comes beside it.
    """

    untrusted: bool = False
    sources: tuple[str, ...] = ()
    user_approved: bool = False
    auto_approved: bool = False

    @property
    def is_recallable(self) -> bool:
        """Whether the episode may be put before a model without being asked for."""
        return not self.untrusted or self.user_approved or self.auto_approved

    @property
    def rank(self) -> int:
        """How far it is trusted: 2 by itself, 1 by approval, 0 not."""
        return 2 if not self.untrusted else int(self.is_recallable)


class Episode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the index says of one session's summary.

    ``summary`` is a preview on one line; the whole text is in a file of its own, and
    ``content_hash`` is its SHA-256. Times are RFC 3339.
    """

    session_id: str
    turns: int = 0
    created_at: str = ""
    summary: str = ""
    provenance: Provenance = Provenance(untrusted=True, sources=(UNKNOWN_PROVENANCE,))
    content_hash: str = ""
    updated_at: str = ""

    @property
    def created(self) -> datetime | None:
        """``created_at`` as a time, None when it is none."""
        return moment_of(self.created_at)

    @property
    def age_key(self) -> tuple[float, str]:
        """Sorts episodes, oldest first; one without a readable date counts as the oldest."""
        created = self.created
        return (created.timestamp() if created else 0.0, self.session_id)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An episode and its bytes in the index, which are kept as they are while nothing changes."""

    episode: Episode
    raw: bytes

    @classmethod
    def of(cls, episode: Episode, old: "Entry | None" = None) -> "Entry":
        """Return the entry of ``episode``; fields of ``old`` that are not ours stay."""
        fields = msgspec.to_builtins(episode)
        if old is not None:
            foreign = msgspec.json.decode(old.raw)
            fields = {name: value for name, value in foreign.items() if name not in fields} | fields
        return cls(episode, msgspec.json.encode(fields))


class Index(msgspec.Struct, frozen=True):
    """What could be read of an index, in its order.

    ``problems`` names what could not. ``lossy`` is True when writing the entries back
    would lose something; ``is_newer`` when a later version of the format is in its place.
    """

    entries: tuple[Entry, ...] = ()
    problems: tuple[str, ...] = ()
    lossy: bool = False
    is_newer: bool = False

    def find(self, session_id: str) -> Entry | None:
        """Return the entry of one session."""
        return next((entry for entry in self.entries if entry.episode.session_id == session_id), None)

    def newest_first(self) -> tuple[Episode, ...]:
        """Return the episodes by their date."""
        episodes = (entry.episode for entry in self.entries)
        return tuple(sorted(episodes, key=lambda episode: episode.age_key, reverse=True))


def preview(text: str) -> str:
    """Return how the index shows a summary: one line of at most 120 characters."""
    return clip_line(text, PREVIEW_LENGTH)


def encode_index(entries: Iterable[Entry]) -> bytes:
    """Return the index with one entry a line."""
    return _BEGIN + _BETWEEN.join(entry.raw for entry in entries) + b"\n]\n"


def parse_index(data: bytes, before: Index | None = None) -> Index:
    """Read an index; never raises. What is as it was ``before`` is the same object, not read again."""
    body = data.removeprefix(b"\xef\xbb\xbf").strip()
    if not body:
        return Index()
    problems: list[str] = []
    earlier = before.entries if before is not None and not before.problems else ()
    entries, rest = _unchanged(body, earlier)
    raws = _array(rest)
    if entries and not raws:
        entries, rest = [], body
        raws = _array(body)
    if raws is None:
        if body.startswith(b"{") and _is_object(body):
            problem = "index.json has the format of a later version; nothing in it is used"
            return Index(problems=(problem,), lossy=True, is_newer=True)
        raws = _salvage(body)
        problems.append(f"index.json is damaged; {len(raws)} entries could be read")
    found = {entry.episode.session_id: entry for entry in entries}
    lossy = bool(problems)
    is_text = _is_text(rest)  # the decoder does not look into the fields that it leaves out
    known = {entry.raw: entry for entry in earlier[len(entries) :]} if is_text else {}
    for number, raw in enumerate(raws, start=len(entries) + 1):
        entry, problem = known.get(raw), ""
        if entry is None:
            entry, problem = _entry_of(raw, is_text=is_text)
        if problem:
            problems.append(f"index.json, entry {number}: {problem}")
            lossy = True
        if entry is None:
            continue
        session_id = entry.episode.session_id
        other = found.get(session_id)
        if other is not None:
            problems.append(f"index.json lists {session_id} twice; the less trusted entry counts")
            lossy = True
            if other.episode.provenance.rank <= entry.episode.provenance.rank:
                continue
        found[session_id] = entry
    return Index(tuple(found.values()), tuple(problems), lossy)


def _unchanged(body: bytes, before: Iterable[Entry]) -> tuple[list[Entry], bytes]:
    """Return the first entries that are there as ``encode_index`` writes them, and an array of the rest."""
    kept: list[Entry] = []
    at = len(_BEGIN)
    if body.startswith(_BEGIN):
        for entry in before:
            end = at + len(entry.raw)
            if body.startswith(entry.raw, at) and body.startswith(_BETWEEN, end):
                kept.append(entry)
                at = end + len(_BETWEEN)
    return kept, _BEGIN + body[at:] if kept else body


def _array(data: bytes) -> list[bytes] | None:
    """Return the values of an array, None if ``data`` is none."""
    try:
        return [bytes(raw) for raw in msgspec.json.decode(data, type=list[msgspec.Raw])]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


_FIELDS: dict[str, type] = {
    "turns": int,
    "created_at": str,
    "summary": str,
    "content_hash": str,
    "updated_at": str,
}


_EPISODE = msgspec.json.Decoder(Episode)


def _entry_of(raw: bytes, *, is_text: bool) -> tuple[Entry | None, str]:
    """Return the entry as far as it can be used, and what is wrong with it."""
    if is_text and (plain := _parse_plain(raw)) is not None:
        return Entry(plain, raw), ""
    episode, problem = _parse_entry(raw)
    if episode is None:
        return None, problem
    return Entry.of(episode) if problem else Entry(episode, raw), problem


def _parse_plain(raw: bytes) -> Episode | None:
    """Return the episode of an entry as odek writes it, None for any other; in half the time."""
    try:
        episode = _EPISODE.decode(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    if not is_episode_id(episode.session_id) or not _is_preview(episode.summary):
        return None
    if episode.provenance.sources and not episode.provenance.untrusted:
        return None
    return None if episode.created_at and episode.created is None else episode


def _is_preview(text: str) -> bool:
    """Tell whether ``text`` is as ``preview`` makes it; False for some that are."""
    is_flat = text.isprintable() and "  " not in text and text == text.strip()
    return is_flat and len(text) <= PREVIEW_LENGTH


def _parse_entry(raw: bytes) -> tuple[Episode | None, str]:
    """Return the episode as far as it can be used, and what is wrong with its entry."""
    try:
        fields = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None, "it is no JSON"
    if not isinstance(fields, dict):
        return None, "it is no object"
    session_id = fields.get("session_id")
    if not isinstance(session_id, str) or not is_episode_id(session_id):
        return None, f"session_id {ascii(session_id)[:80]} is no episode id"
    wrong: list[str] = []
    kept: dict[str, Any] = {"session_id": session_id}
    for name, kind in _FIELDS.items():
        value = fields.get(name)
        if type(value) is kind:
            kept[name] = value
        elif value is not None:
            wrong.append(name)
    kept["summary"] = preview(without_surrogates(kept.get("summary", "")))
    if "provenance" in fields:
        try:
            provenance = msgspec.convert(fields["provenance"], Provenance)
        except (msgspec.ValidationError, RecursionError):
            provenance = Provenance(untrusted=True, sources=("damaged_provenance",))
            wrong.append("provenance")
        if provenance.sources and not provenance.untrusted:  # its sources of distrust say otherwise
            provenance = msgspec.structs.replace(provenance, untrusted=True)
            wrong.append("provenance")
    else:
        provenance = Provenance(untrusted=True, sources=(UNKNOWN_PROVENANCE,))
    episode = Episode(**kept, provenance=provenance)
    if episode.created_at and episode.created is None:
        wrong.append("created_at")
    problem = f"{', '.join(wrong)} of {session_id} cannot be used" if wrong else ""
    return episode, problem


def _is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeError:
        return False
    return True


def _salvage(body: bytes) -> list[bytes]:
    """Return the objects that a damaged array still holds whole, at its own level."""
    import json

    text = body.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    found: list[bytes] = []
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
            found.append(json.dumps(value, allow_nan=False).encode())
        except (ValueError, RecursionError):
            end = _next_object(text, at)
        at = text.find("{", end)
    return found


def _next_object(text: str, at: int) -> int:
    """Return where to look on after the damaged object at ``at``: the next one that begins like ours."""
    following = re.compile(r'\{\s*"session_id"').search(text, at + 1)
    return following.start() if following else len(text)


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(body), dict)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
