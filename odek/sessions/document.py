"""The session file: its fields, and how it is put together.

Everything but the messages comes first, so that a list of sessions reads the beginning of
each file alone. Each message is on a line of its own: a damaged file loses the damaged
lines, and a person can read it with ordinary tools.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from odek.events import Usage
from odek.messages import Message

__all__ = ["TASK_LIMIT_BYTES", "Document", "Header", "assemble"]

TASK_LIMIT_BYTES = 2048
"""The task is a title here, its whole text is a message; the list reads a few kilobytes of a file."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What a session file says beside the messages.

    Times are RFC 3339. ``episode_untrusted``, ``untrusted_ingested`` and ``taint_sources``
    are never taken back. ``buffer`` holds one line for each of the last turns.
    ``counted_delegations`` are those in ``usage`` whose own records may still be on disk; left
    out of the file when there is none.
    """

    id: str
    created_at: str = ""
    updated_at: str = ""
    model: str = ""
    turns: int = 0
    task: str = ""
    sandbox: bool = False
    episode_untrusted: bool = False
    untrusted_ingested: bool = False
    taint_sources: tuple[str, ...] = ()
    usage: Usage = Usage()
    buffer: tuple[str, ...] = ()
    counted_delegations: tuple[str, ...] | UnsetType = UNSET


class Document(Header, frozen=True, kw_only=True):
    """A whole session file as this version writes it."""

    messages: list[Message] = []


def assemble(header: Header, messages: Sequence[bytes], unknown: Mapping[str, Any] | None = None) -> bytes:
    """Return the file with ``header``, the encoded ``messages``, and the fields that only others know."""
    body = b",\n".join(messages)
    others = b"," + msgspec.json.encode(unknown)[1:-1] if unknown else b""
    return b"".join((msgspec.json.encode(header)[:-1], others, b',"messages":[\n', body, b"\n]}\n"))
