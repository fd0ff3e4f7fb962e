"""An atom, and the file that holds it. Pure.

A file is a head of ``key: value`` lines between two lines of ``---``, and the text. It may
be edited by hand. Whatever of the head cannot be read falls to the careful side: an atom
whose origin is not known is tainted.
"""

import os
import re
from datetime import UTC, datetime
from typing import Literal, TypeAlias, get_args

import msgspec

from odek.timestamps import timestamp

__all__ = [
    "DEFAULT_CONFIDENCE",
    "PROJECT_BOUND",
    "TRUSTED_SOURCES",
    "Atom",
    "AtomType",
    "SourceClass",
    "as_confidence",
    "as_type",
    "atom_id_of_text",
    "encode",
    "is_atom_id",
    "new_atom_id",
    "normalised",
    "parse",
]

AtomType: TypeAlias = Literal[
    "preference",
    "intent",
    "fact",
    "decision",
    "goal",
    "convention",
    "file",
    "error",
    "question",
    "observation",
]
"""What kind of statement it is; one that is not known becomes ``observation``."""

SourceClass: TypeAlias = Literal[
    "user_said",
    "user_approved",
    "inferred",
    "tool_output",
    "file_read",
    "web",
    "mcp",
    "subagent",
    "agent_generated",
]
"""Where a statement comes from."""

TRUSTED_SOURCES: frozenset[SourceClass] = frozenset({"user_said", "user_approved"})
"""The person's own words, and what a person has approved."""

DEFAULT_CONFIDENCE = 0.7
"""Of an atom that says none, or one out of range."""

_TYPES: dict[str, AtomType] = {name: name for name in get_args(AtomType)}
_SOURCES: dict[str, SourceClass] = {name: name for name in get_args(SourceClass)}
_HEAD = re.compile(r"\A---\n(.*?)\n---\n?", re.DOTALL)


class Atom(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement that stays true for a while.

    ``created_at`` is RFC 3339 in UTC; it moves when the statement is made again.
    ``confidence`` lies in (0, 1]. ``project`` is the directory it was made in. ``related``
    holds ids of atoms that it is linked with. ``reason`` says why it lies in quarantine.
    """

    id: str
    text: str
    type: AtomType = "observation"
    source_class: SourceClass = "inferred"
    created_at: str = ""
    confidence: float = DEFAULT_CONFIDENCE
    pin: bool = False
    session: str = ""
    turn: int = 0
    project: str = ""
    related: tuple[str, ...] = ()
    reason: str = ""

    @property
    def is_trusted(self) -> bool:
        """Whether it may be recalled."""
        return self.source_class in TRUSTED_SOURCES


PROJECT_BOUND: frozenset[AtomType] = frozenset({"file", "error", "convention"})
"""Types that say something of one project alone: another's are never recalled."""


def atom_id_of_text(text: str, kind: AtomType, project: str) -> str:
    """Return the id of a statement, 128 bits as 32 hexadecimal digits.

    The same statement has the same id in every process, so that saying it twice at once
    makes one atom; of a type that is bound to a project, only within that.
    """
    import hashlib

    scope = project if kind in PROJECT_BOUND else ""
    content = f"{scope}\0{normalised(text)}".encode("utf-8", "replace")
    return hashlib.blake2b(content, digest_size=16, person=b"odek-atom").hexdigest()


def new_atom_id() -> str:
    """Return an id that no statement has: for one whose own is taken by a text edited since."""
    return os.urandom(16).hex()


def is_atom_id(text: str) -> bool:
    """Tell whether ``text`` can be the id of an atom."""
    return re.fullmatch(r"[0-9a-f]{32}", text) is not None


def normalised(text: str) -> str:
    """Return ``text`` as it is compared: two that are equal here say the same."""
    return " ".join(text.lower().split())


def as_type(value: object) -> AtomType:
    """Return ``value`` as a type of atoms."""
    name = value.strip().lower() if isinstance(value, str) else ""
    return _TYPES.get(name, "observation")


def as_confidence(value: object, otherwise: float = DEFAULT_CONFIDENCE) -> float:
    """Return ``value`` if it is a confidence, else ``otherwise``."""
    if not isinstance(value, str | int | float):
        return otherwise
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return otherwise
    return number if 0 < number <= 1 else otherwise


def encode(atom: Atom) -> bytes:
    """Return the file of ``atom``."""
    fields = {
        "type": atom.type,
        "source": atom.source_class,
        "created": atom.created_at,
        "confidence": f"{atom.confidence:g}",
        "pin": "yes" if atom.pin else "",
        "session": atom.session,
        "turn": str(atom.turn or ""),
        "project": atom.project,
        "related": " ".join(atom.related),
        "reason": atom.reason,
    }
    head = "".join(f"{key}: {' '.join(value.split())}\n" for key, value in fields.items() if value)
    return f"---\n{head}---\n{atom.text}\n".encode("utf-8", "replace")


def parse(atom_id: str, data: bytes, *, modified_at: float = 0.0) -> Atom:
    """Return the atom that a file holds; ``modified_at``, in seconds, stands in for a lost date."""
    whole = data.decode("utf-8", "replace").replace("\r\n", "\n")
    head = _HEAD.match(whole)
    fields: dict[str, str] = {}
    for line in head[1].split("\n") if head else ():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    turn = fields.get("turn", "")
    return Atom(
        id=atom_id,
        text=(whole[head.end() :] if head else whole).strip(),
        type=as_type(fields.get("type", "")),
        source_class=_SOURCES.get(fields.get("source", ""), "inferred"),
        created_at=_date(fields.get("created", ""), modified_at),
        confidence=as_confidence(fields.get("confidence", "")),
        pin=fields.get("pin", "") in {"yes", "true"},
        session=fields.get("session", ""),
        turn=int(turn) if turn.isdecimal() and len(turn) < 10 else 0,
        project=fields.get("project", ""),
        related=tuple(name for name in fields.get("related", "").split() if is_atom_id(name)),
        reason=fields.get("reason", ""),
    )


def _date(text: str, modified_at: float) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return timestamp(datetime.fromtimestamp(modified_at, UTC))
    return text
