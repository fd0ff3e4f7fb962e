"""What others change while an agent runs, told apart from what the memory itself wrote. Blocking."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from odek.errors import StoreError
from odek.events import Event, MemoryEvent, Notice
from odek.memory.facts import TARGETS, Facts, FactStore
from odek.memory.places import INDEX, JOURNAL, LOCK, real_directory
from odek.memory.watch import Scan, changed_names, scan
from odek.timestamps import current_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from odek.memory.episode_reader import EpisodeReader
    from odek.memory.journal import Record

__all__ = ["Looked", "Outside"]

LOCK_SECONDS = 1.0
"""For a change that is being written; it takes milliseconds."""


class Looked(msgspec.Struct, frozen=True):
    """The directory as it is, what is to be told of it, and which files are not as at the look before.

    ``changed`` is None for the first look: nobody has looked before.
    """

    seen: Scan
    events: tuple[Event, ...] = ()
    changed: frozenset[str] | None = None


class Outside:
    """Compares the directory with how it was at the last look; ``episodes`` returns what reads them."""

    def __init__(self, directory: Path, episodes: "Callable[[], EpisodeReader]") -> None:
        self._directory = directory
        self._episodes = episodes
        self._before: Scan | None = None
        self._hashes: dict[str, str] = {}
        self._since = ""
        self._last_record = ""
        self._approved: frozenset[str] | None = None

    def start(self, facts: tuple[Facts, ...]) -> None:
        """Take what is there as known."""
        self._since = current_timestamp()
        self._hashes = {f"{file.target}.md": file.content_hash for file in facts}

    def look(self, store: FactStore) -> Looked:
        """Return the directory as it is, and what is to be told of it.

        Raises:
            StoreError: it cannot be read.
        """
        now = scan(self._directory)
        before, self._before = self._before, now
        if before is None:
            return Looked(now)
        changed = changed_names(before, now)
        events: list[Event] = []
        if INDEX in changed:
            events += self._promotions()
        edited = [
            name for name in sorted(changed) if name not in {INDEX, JOURNAL} and self._differs(name, store)
        ]
        if edited:
            written = self._written()
            events += [Notice(_text(name)) for name in edited if name.removesuffix(".md") not in written]
        return Looked(now, tuple(events), changed)

    def _differs(self, name: str, store: FactStore) -> bool:
        """Tell whether a file says something else than before, or whether that is not known."""
        target = next((target for target in TARGETS if name == f"{target}.md"), None)
        if target is None:
            return True
        try:
            after = store.read(target).content_hash
        except StoreError:
            return True
        before, self._hashes[name] = self._hashes.get(name), after
        return before != after

    def _written(self) -> set[str]:
        """Return what the memory changed since the last look, in this process or another."""
        records = self._records()
        new = self._new(records)
        if records:
            self._last_record = records[-1].id
        return {record.target for record in new}

    def _records(self) -> "tuple[Record, ...]":
        from odek.memory.journal import Journal
        from odek.storage.locks import exclusive

        try:
            # A change is on record before its lock is free.
            with exclusive(real_directory(self._directory) / LOCK, timeout_seconds=LOCK_SECONDS):
                pass
            return Journal(self._directory).read().records
        except StoreError:
            return ()

    def _new(self, records: "tuple[Record, ...]") -> "tuple[Record, ...]":
        known = [at for at, record in enumerate(records) if record.id == self._last_record]
        if known:
            return records[known[-1] + 1 :]
        return tuple(record for record in records if record.time >= self._since)

    def _promotions(self) -> list[Event]:
        """Return an event for each episode that a person approved since the last look."""
        episodes = (entry.episode for entry in self._episodes().index().entries)
        approved = frozenset(episode.session_id for episode in episodes if episode.provenance.user_approved)
        before, self._approved = self._approved, approved
        if before is None:  # the first look does not read the list: the first question would wait for it
            new = (record for record in self._records() if record.time >= self._since)
            before = approved - {record.target for record in new if record.action == "promote"}
        return [
            MemoryEvent("episode_promoted", session_id=session_id) for session_id in sorted(approved - before)
        ]


def _text(name: str) -> str:
    if name in {"user.md", "env.md"}:
        return f"memory: {name} was edited; this session's prompt stays as it began, the next one shows it"
    return f"memory: the text of episode {name.removesuffix('.md')} was edited"
