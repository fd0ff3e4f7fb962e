"""What a session took in from outside, what was decided in it, and where it went off: a record on disk.

One file of lines a session, for the owner alone; lines are added and never changed. An unfinished
line, as a crash may leave it, is left out when reading. Blocking.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from odek.storage.files import ensure_directory, read_file, remove_file
from odek.storage.lines import append_lines

__all__ = ["AuditLog", "AuditRecord", "AuditTrail", "Decision", "Diverged", "Ingest", "digest_of"]

READ_LIMIT_BYTES = 256 * 1024 * 1024
"""A record takes some 300 bytes; no session has a million."""


class Ingest(msgspec.Struct, frozen=True, kw_only=True, tag="ingest", omit_defaults=True):
    """Outside content that the model was given.

    ``source`` is the tool and what it was called for. ``sha256`` is the first 16 hexadecimal
    digits over what was given, credentials masked, without its fence. ``agent`` names the
    subagent that took it in, "" for the session's own.
    """

    time: str
    turn: int
    source: str
    sha256: str
    size_bytes: int
    call_id: str = ""
    agent: str = ""


class Decision(msgspec.Struct, frozen=True, kw_only=True, tag="decision", omit_defaults=True):
    """Whether a call might run, who said so and why; ``person`` was asked."""

    time: str
    turn: int
    call_id: str
    tool: str
    summary: str
    risk: str
    allowed: bool
    by: Literal["person", "policy", "session_trust"]
    reason: str = ""
    agent: str = ""


class Diverged(msgspec.Struct, frozen=True, kw_only=True, tag="divergence", omit_defaults=True):
    """Something that the agent acted on, or answered with, and that only outside content had named.

    ``evidence`` is where the content of ``source`` names ``resource``. ``call_id`` is the call that
    acted, with its ``tool`` and ``summary``; ``source_call_id`` the one that took the content in.
    """

    time: str
    turn: int
    how: Literal["acted", "answered"]
    kind: str
    resource: str
    source: str
    evidence: str
    call_id: str = ""
    tool: str = ""
    summary: str = ""
    source_call_id: str = ""


AuditRecord = Ingest | Decision | Diverged


class AuditLog(msgspec.Struct, frozen=True):
    """The records of a session, oldest first, and how many lines could not be read."""

    records: tuple[AuditRecord, ...] = ()
    damaged_lines: int = 0


class AuditTrail:
    """The record of one session, in the file ``path``; several processes may add to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, records: Sequence[AuditRecord]) -> None:
        """Make records durable.

        Raises:
            StoreError: not all of them are.
        """
        ensure_directory(self.path.parent)
        append_lines(
            self.path, b"".join(msgspec.json.encode(record) + b"\n" for record in records), alone=False
        )

    def read(self) -> AuditLog:
        """Return what is on record; without a file, nothing.

        Raises:
            StoreError: it is there and cannot be read.
        """
        try:
            data = read_file(self.path, limit_bytes=READ_LIMIT_BYTES)
        except FileNotFoundError:
            return AuditLog()
        records: list[AuditRecord] = []
        damaged = 0
        decoder = msgspec.json.Decoder(AuditRecord)
        for line in data.splitlines():
            try:
                records.append(decoder.decode(line))
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                damaged += bool(line.strip())
        return AuditLog(tuple(records), damaged)

    def remove(self) -> bool:
        """Remove the record; False when there was none.

        Raises:
            StoreError: it cannot be removed.
        """
        return remove_file(self.path) if self.path.parent.is_dir() else False


def digest_of(content: str) -> tuple[str, int]:
    """Return the first 16 hexadecimal digits of the SHA-256 of a text in UTF-8, and its size in bytes."""
    import hashlib

    data = content.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:16], len(data)
