"""The episodes that were asked for before, kept as long as their files stay as they are."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.memory.episode_reader import EpisodeReader
from odek.memory.index_texts import own_version
from odek.memory.journal import digest
from odek.memory.places import INDEX, INTENT
from odek.memory.recall import Document
from odek.memory.watch import Stamp, stamp_of

__all__ = ["Shelf", "Shelved"]

KEPT_EPISODES = 2_000
"""Some 4 MB; then all are read again."""


class Shelved(msgspec.Struct, frozen=True):
    """An episode as its file has it now.

    ``document`` is None when it is gone. ``version`` is its own in the index, if that is up to
    date. It ``is_trusted`` by itself or by a person, and ``is_recallable`` if the scan passes it
    too; ``reason`` says why it is not: its sources, or what the scan found.
    """

    document: Document | None = None
    version: str = ""
    is_trusted: bool = False
    is_recallable: bool = False
    reason: str = ""


class Shelf:
    """Looks at a file's stamp before it returns what was read of it."""

    def __init__(self, directory: Path, episodes: EpisodeReader) -> None:
        self._directory = str(directory)
        self._episodes = episodes
        self._listed: tuple[Stamp | None, Stamp | None] | None = None
        self._kept: dict[str, tuple[Stamp, Shelved]] = {}

    def at_hand(self, session_ids: Iterable[str]) -> Mapping[str, Shelved] | None:
        """Return the episodes if all were read before and are as they were; some microseconds each."""
        if self._listed is None or self._list_stamps() != self._listed:
            return None
        found: dict[str, Shelved] = {}
        for session_id in session_ids:
            kept = self._kept.get(session_id)
            if kept is None or stamp_of(f"{self._directory}/{session_id}.md") != kept[0]:
                return None
            found[session_id] = kept[1]
        return found

    def fetch(self, session_ids: Iterable[str]) -> Mapping[str, Shelved]:
        """Return the episodes, read where need be. Blocks."""
        listed = self._list_stamps()
        if listed != self._listed or len(self._kept) > KEPT_EPISODES:
            self._kept.clear()
            self._listed = listed
        found: dict[str, Shelved] = {}
        for session_id in session_ids:
            stamp = stamp_of(f"{self._directory}/{session_id}.md")
            kept = self._kept.get(session_id)
            if kept is not None and kept[0] == stamp:
                found[session_id] = kept[1]
                continue
            found[session_id] = self._read(session_id, stamp)
            if stamp is not None:
                self._kept[session_id] = (stamp, found[session_id])
        return found

    def _read(self, session_id: str, stamp: Stamp | None) -> Shelved:
        try:
            read = self._episodes.read(session_id)
        except StoreError:
            return Shelved()
        provenance = read.episode.provenance
        return Shelved(
            document=Document(
                session_id,
                read.episode.created_at,
                read.text,
                digest(read.text),
                untrusted=provenance.untrusted and not provenance.user_approved,
            ),
            version=own_version(read.episode, stamp),
            is_trusted=provenance.is_recallable,
            is_recallable=provenance.is_recallable and not read.rejection and bool(read.text),
            reason=read.rejection or ", ".join(provenance.sources),
        )

    def _list_stamps(self) -> tuple[Stamp | None, Stamp | None]:
        return stamp_of(f"{self._directory}/{INDEX}"), stamp_of(f"{self._directory}/{INTENT}")
