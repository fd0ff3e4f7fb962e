"""The texts that the index is made of, each kind behind the same seam; here the episodes. Blocks."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

import msgspec

from odek.errors import StoreError
from odek.index.document import Document, Kind
from odek.memory.episode import Episode
from odek.memory.episode_reader import EpisodeReader, rejection
from odek.memory.places import INTENT, is_episode_id
from odek.memory.watch import Scan, Stamp, scan, scan_of

__all__ = ["Conversations", "EpisodeTexts", "Sessions", "Texts", "document_id", "own_version", "subject_of"]

BRIEF_EPISODES = 1_000
"""Summaries that a new index begins with, newest first; what is beyond is added piece by piece."""


class Texts(Protocol):
    """All texts of one kind, wherever they are kept."""

    @property
    def kind(self) -> Kind:
        """What they are."""
        ...

    def versions(
        self, known: Mapping[str, str], seen: Scan | None = None, only: Collection[str] | None = None
    ) -> dict[str, str]:
        """Return a version for each text that is to be indexed, by document id; costs a scan.

        Another version says that the text is to be read again. ``known`` are the versions in
        the index: a text that is being written at the moment may keep its old one. ``seen`` is
        the memory's directory as it is, if somebody has just looked. With ``only`` it is about
        the texts of these subjects, and no other file is looked at.

        Raises:
            StoreError: they cannot be listed.
        """
        ...

    def read(self, document_id: str) -> Document | None:
        """Return what is to be indexed of a text; None for nothing, as when it is gone by now."""
        ...

    def briefs(self) -> Sequence[Document]:
        """Return what must be found at once in a new index, in short: each is read whole later.

        Raises:
            StoreError: they cannot be listed.
        """
        ...


class Conversations(Protocol):
    """What the index of the episodes needs of the sessions that they are of."""

    def stamps(self, only: Collection[str] | None = None) -> Mapping[str, str]:
        """Return for each session what changes with its file, or for these alone."""
        ...

    def is_open(self, session_id: str) -> bool:
        """Tell whether somebody goes on with a session now."""
        ...

    def said(self, session_id: str) -> list[str]:
        """Return the messages of the person and the agent; none for a session that is not to be trusted."""
        ...


class Sessions(Texts, Conversations, Protocol):
    """The sessions: texts by themselves, and what the episodes are of."""


def document_id(kind: Kind, subject: str) -> str:
    """Return under which id the index has an episode or a session, or an atom."""
    return f"{kind}/{subject}"


def subject_of(document: str) -> str:
    """Return the id of the episode, the session or the atom that a document is of."""
    return document.partition("/")[2]


def own_version(episode: Episode, stamp: Stamp | None) -> str:
    """Return what changes with the text of an episode and with what is known of its origin."""
    inode, size, _, changed = stamp or (0, 0, 0, 0)
    provenance = episode.provenance
    return (
        f"{inode:x}.{size:x}.{changed:x}.{provenance.rank}.{provenance.is_recallable:d}.{episode.created_at}"
    )


class EpisodeTexts:
    """The episodes below ``directory``, each with what was said in its session.

    ``poll`` is called before each text and may raise to give up.
    """

    kind: Kind = "episode"

    def __init__(
        self,
        directory: Path,
        episodes: EpisodeReader,
        conversations: Conversations | None = None,
        *,
        poll: Callable[[], None] = lambda: None,
    ) -> None:
        self._directory = directory
        self._store = episodes
        self._conversations = conversations
        self._poll = poll

    def versions(
        self, known: Mapping[str, str], seen: Scan | None = None, only: Collection[str] | None = None
    ) -> dict[str, str]:
        """Return the versions: of the text, and of the session's file where that is indexed too."""
        stamps = self._conversations.stamps(only) if self._conversations is not None else {}
        found: dict[str, str] = {}
        for episode, stamp in self._listed(seen, only):
            name = document_id(self.kind, episode.session_id)
            own = own_version(episode, stamp)
            said = "" if episode.provenance.untrusted else stamps.get(episode.session_id, "")
            version, before = f"{own}/{said}", known.get(name, "")
            if version != before and said and before.startswith(f"{own}/") and self._is_open(episode):
                version = before  # its words are taken up when the session rests
            found[name] = version
        return found

    def read(self, document_id: str) -> Document | None:
        """Return an episode with what was said in its session, if both are to be trusted."""
        return self._read(subject_of(document_id), with_session=True)

    def briefs(self) -> list[Document]:
        """Return the summaries of the newest."""
        newest = islice(self._store.read_index(), BRIEF_EPISODES)
        read = (self._read(episode.session_id, with_session=False) for episode in newest)
        return [document for document in read if document is not None]

    def _listed(self, seen: Scan | None, only: Collection[str] | None) -> list[tuple[Episode, Stamp | None]]:
        if only is None:
            found, seen = self._store.read_index(), scan(self._directory) if seen is None else seen
        else:
            names = [name for name in only if is_episode_id(name)]
            found = self._store.listed(names)
            seen = scan_of(self._directory, [f"{name}.md" for name in names]) if seen is None else seen
        pairs = [(episode, seen.stamps.get(f"{episode.session_id}.md")) for episode in found]
        if self._store.exists(INTENT):  # a change that is decided and not yet carried out counts
            return pairs
        return [(episode, stamp) for episode, stamp in pairs if stamp is not None]

    def _read(self, session_id: str, *, with_session: bool) -> Document | None:
        self._poll()
        try:
            found = self._store.read(session_id)
        except StoreError:
            return None
        if not found.text:
            return None
        provenance = found.episode.provenance
        document = Document(
            id=document_id(self.kind, session_id),
            kind=self.kind,
            text=found.text,
            trusted=provenance.is_recallable and not found.rejection,
            created_at=int(found.episode.age_key[0]),
        )
        if not with_session or provenance.untrusted or found.rejection:
            return document
        return msgspec.structs.replace(document, transcript=self._transcript(session_id))

    def _transcript(self, session_id: str) -> str:
        """Return what was said, without the messages that must not reach a model."""
        if self._conversations is None:
            return ""
        said = self._conversations.said(session_id)
        return "\n".join(message for message in said if not rejection(message))

    def _is_open(self, episode: Episode) -> bool:
        return self._conversations is not None and self._conversations.is_open(episode.session_id)
