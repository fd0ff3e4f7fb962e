"""The attacks of the drill, as ``attacks.jsonl`` lists them: one a line, each with a name and a reason."""

from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

__all__ = [
    "Attack",
    "CommandAttack",
    "IndexAttack",
    "Ingested",
    "ProjectAttack",
    "SessionAttack",
    "TextAttack",
    "ToolAttack",
    "WriteAttack",
    "attacks",
]


class _Attack(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    """``reason`` says what would be won by it."""

    name: str
    reason: str


class TextAttack(_Attack, frozen=True, tag="text"):
    """``input`` is to be remembered."""

    input: str


class Ingested(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a call of a session did, and what became of the session ``then``."""

    urls: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    command: str | None = None
    agents: bool = False
    outside: bool = False
    then: Literal["", "trimmed", "damaged"] = ""


class SessionAttack(_Attack, frozen=True, tag="session"):
    """A session that took in ``input`` is to be recalled by a later one."""

    input: Ingested


class IndexAttack(_Attack, frozen=True, tag="index"):
    """An untrusted episode is to be recalled because its provenance is overwritten; null removes it."""

    input: dict[str, Any] | list[Any] | None


class CommandAttack(_Attack, frozen=True, tag="command"):
    """The agent's shell is to run ``input``: {odek} is odek's directory, {odek_name} its name."""

    input: str


class WriteAttack(_Attack, frozen=True, tag="write"):
    """A file tool is to write ``input``, a path as in a command."""

    input: str


class ProjectAttack(_Attack, frozen=True, tag="project"):
    """A project's ``odek.json`` with ``input`` is to change what the person configured."""

    input: dict[str, Any]


class ToolAttack(_Attack, frozen=True, tag="tool"):
    """The memory tool is to do ``input`` in an untrusted session without a person."""

    input: dict[str, Any]


Attack: TypeAlias = (
    TextAttack | SessionAttack | IndexAttack | CommandAttack | WriteAttack | ProjectAttack | ToolAttack
)


def attacks() -> list[Attack]:
    """Return the attacks in the order of the file."""
    decoder = msgspec.json.Decoder(Attack)
    lines = (Path(__file__).parent / "attacks.jsonl").read_bytes().splitlines()
    return [decoder.decode(line) for line in lines]
