"""The episodes that were asked for before, kept as long as their files stay as they are."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.memory.episode_reader import EpisodeReader, decode_body, rejection
from odek.memory.episode_state import parse_state, stamp_word, state_of
from odek.memory.journal import digest
from odek.memory.places import body_name
from odek.memory.recall import Document
from odek.memory.watch import Stamp, list_stamps, stamp_of

__all__ = ["Shelf", "Shelved"]

KEPT_EPISODES = 2_000
"""Some 4 MB; then all are read again."""


class Shelved(msgspec.Struct, frozen=True):
    """An episode as its file has it now.

    ``document`` is None when it is gone. ``state`` is the one that it is indexed in, if the index
    is up to date. It ``is_trusted`` by itself or by a person, and ``is_recallable`` if the scan
    passes it too; ``reason`` says why it is not: its sources, or what the scan found.
    """

    document: Document | None = None
    state: str = ""
    is_trusted: bool = False
    is_recallable: bool = False
    reason: str = ""


class Shelf:
    """Looks at a file's stamp before it returns what was read of it.

    Args:
        directory: The memory's.
        episodes: Reads them.
        is_list_indexed: Tells whether the index has been found equal to the list of the episodes as it
            is now, so that what a hit says of an episode is what the list says.
    """

    def __init__(self, directory: Path, episodes: EpisodeReader, is_list_indexed: Callable[[], bool]) -> None:
        self._directory = str(directory)
        self._episodes = episodes
        self._is_list_indexed = is_list_indexed
        self._listed: tuple[Stamp | None, Stamp | None] | None = None
        self._kept: dict[str, tuple[Stamp, Shelved]] = {}

    def at_hand(self, session_ids: Iterable[str]) -> Mapping[str, Shelved] | None:
        """Return the episodes if all were read before and are as they were; some microseconds each."""
        if self._listed is None or list_stamps(self._directory) != self._listed:
            return None
        found: dict[str, Shelved] = {}
        for session_id in session_ids:
            kept = self._kept.get(session_id)
            if kept is None or stamp_of(f"{self._directory}/{session_id}.md") != kept[0]:
                return None
            found[session_id] = kept[1]
        return found

    def fetch(self, states: Mapping[str, str]) -> Mapping[str, Shelved]:
        """Return the episodes, read where need be. Blocks.

        Args:
            states: The ids of their sessions, each with the state that a hit gave.
        """
        listed = list_stamps(self._directory)
        is_list_indexed = self._is_list_indexed()  # after the stamps, so that these are of no newer list
        if listed != self._listed or len(self._kept) > KEPT_EPISODES:
            self._kept.clear()
            self._listed = listed
        found: dict[str, Shelved] = {}
        for session_id, state in states.items():
            stamp = stamp_of(f"{self._directory}/{session_id}.md")
            kept = self._kept.get(session_id)
            if kept is not None and kept[0] == stamp:
                found[session_id] = kept[1]
                continue
            shelved = self._read_as_indexed(session_id, stamp, state) if is_list_indexed else None
            found[session_id] = shelved or self._read(session_id, stamp)
            if stamp is not None:
                self._kept[session_id] = (stamp, found[session_id])
        return found

    def _read_as_indexed(self, session_id: str, stamp: Stamp | None, state: str) -> Shelved | None:
        """Return an episode that the index knows, without its list; None if it is another by now."""
        known = parse_state(state)
        if known is None or not known.approved_by or stamp is None or known.file != stamp_word(stamp):
            return None
        try:
            text = decode_body(self._episodes.read_body(body_name(session_id)))
        except (FileNotFoundError, StoreError):
            return None
        rejected = rejection(text)
        return Shelved(
            document=_document(session_id, known.created_at, text, untrusted=known.is_untrusted),
            state=state,
            is_trusted=True,
            is_recallable=not rejected and bool(text),
            reason=rejected,
        )

    def _read(self, session_id: str, stamp: Stamp | None) -> Shelved:
        try:
            read = self._episodes.read(session_id)
        except StoreError:
            return Shelved()
        provenance = read.episode.provenance
        return Shelved(
            document=_document(
                session_id,
                read.episode.created_at,
                read.text,
                untrusted=provenance.untrusted and not provenance.user_approved,
            ),
            state=state_of(read.episode, stamp_word(stamp)),
            is_trusted=provenance.is_recallable,
            is_recallable=provenance.is_recallable and not read.rejection and bool(read.text),
            reason=read.rejection or ", ".join(provenance.sources),
        )


def _document(session_id: str, created_at: str, text: str, *, untrusted: bool) -> Document:
    return Document(session_id, created_at, text, digest(text), untrusted=untrusted)
