"""The journal of the memory: who changed what, when, and what was there before.

One JSON object a line, appended after each change. It is derived: losing it, or lines of
it, loses history and nothing else. Blocking; the lock of the memory is held for appending.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from odek.memory.episode import Episode
from odek.memory.places import JOURNAL, locate, read_bounded
from odek.storage.files import replace_file
from odek.storage.lines import append_lines
from odek.timestamps import current_timestamp

__all__ = ["WHOLE_FILE", "History", "Journal", "Origin", "Record", "digest", "make_record"]

LIMIT_BYTES = 4 * 1024 * 1024
"""Beyond it the older half goes. Some ten thousand changes; no measurement behind this."""


WHOLE_FILE = frozenset({"consolidate", "edit"})
"""The actions that change a file of facts as one: by a model, or by a person in an editor."""


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """On whose behalf a change is made; empty fields are not known.

    ``approval`` says who allowed it, such as ``person`` or ``policy``. ``tainted`` says
    that the session had taken in untrusted content.
    """

    session: str = ""
    turn: int = 0
    call_id: str = ""
    approval: str = ""
    tainted: bool = False


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change.

    ``target`` is ``user``, ``env`` or the id of an episode. ``before`` and ``after`` are the
    entry or the episode's text, "" where there was or is none; for an action on a
    ``WHOLE_FILE`` all of it. Credentials in them are masked, so that the hashes, SHA-256 of the true
    text, decide whether they can be put back.
    """

    id: str
    time: str
    pid: int
    action: str
    target: str
    session: str = ""
    turn: int = 0
    call_id: str = ""
    approval: str = ""
    tainted: bool = False
    hash_before: str = ""
    hash_after: str = ""
    before: str = ""
    after: str = ""
    episode_before: Episode | None = None
    episode_after: Episode | None = None
    undoes: str = ""


class History(msgspec.Struct, frozen=True):
    """The records that could be read, oldest first, and how many lines could not."""

    records: tuple[Record, ...] = ()
    damaged_lines: int = 0


def digest(text: str | bytes) -> str:
    """Return the SHA-256 of a text in UTF-8 as hexadecimal."""
    import hashlib

    return hashlib.sha256(
        text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    ).hexdigest()


def make_record(
    action: str,
    target: str,
    origin: Origin,
    *,
    before: str = "",
    after: str = "",
    episodes: tuple[Episode | None, Episode | None] = (None, None),
    undoes: str = "",
) -> Record:
    """Return the record of a change made now by this process."""
    from odek.trust.secrets import mask

    return Record(
        id=os.urandom(4).hex(),
        time=current_timestamp(),
        pid=os.getpid(),
        action=action,
        target=target,
        hash_before=digest(before) if before else "",
        hash_after=digest(after) if after else "",
        before=mask(before),
        after=mask(after),
        episode_before=episodes[0],
        episode_after=episodes[1],
        undoes=undoes,
        **msgspec.structs.asdict(origin),
    )


class Journal:
    """The journal below the directory of a memory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self) -> History:
        """Return what is on record; without a journal, nothing.

        Raises:
            StoreError: it is there and cannot be read.
        """
        try:
            data = read_bounded(self._directory, JOURNAL, limit_bytes=2 * LIMIT_BYTES)
        except FileNotFoundError:
            return History()
        return _parse(data)

    def append(self, records: Sequence[Record]) -> None:
        """Add records; a line that a crash left unfinished is ended before them.

        Raises:
            StoreError: they are not in it, and nothing of them is.
        """
        data = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
        # Losing the newest lines in a power cut loses history alone.
        size = append_lines(locate(self._directory, JOURNAL), data, durable=False)
        if size > LIMIT_BYTES:
            self.rewrite(drop_older_half=True)

    def rewrite(self, *, drop_older_half: bool = False) -> None:
        """Write the readable lines anew, and only the newer half of them if asked to.

        Raises:
            StoreError: the journal cannot be read or written.
        """
        records = self.read().records
        kept, size = [], 0
        for record in reversed(records):
            line = msgspec.json.encode(record) + b"\n"
            size += len(line)
            if drop_older_half and size > LIMIT_BYTES // 2:
                break
            kept.append(line)
        replace_file(locate(self._directory, JOURNAL), b"".join(reversed(kept)))


def _parse(data: bytes) -> History:
    records: list[Record] = []
    damaged = 0
    decoder = msgspec.json.Decoder(Record)
    for line in data.splitlines():
        if not line.strip(b"\0 "):
            damaged += bool(line)
            continue
        try:
            records.append(decoder.decode(line))
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            damaged += 1
    return History(tuple(records), damaged)
