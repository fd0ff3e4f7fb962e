"""The texts that the index is made of, each kind behind the same seam; here the episodes. Blocks."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from odek.errors import StoreError
from odek.index.document import Document, Kind
from odek.memory.episode import Episode
from odek.memory.episode_reader import EpisodeReader, rejection
from odek.memory.episode_state import list_word, parse_state, stamp_word, state_of
from odek.memory.journal import digest
from odek.memory.places import INTENT, body_name, is_episode_id
from odek.memory.watch import Scan, Stamp, is_episode_file, list_stamps, scan, scan_of, stamp_of

__all__ = [
    "Conversations",
    "EpisodeTexts",
    "Look",
    "Sessions",
    "Texts",
    "Versions",
    "document_id",
    "subject_of",
]

BRIEF_EPISODES = 1_000
"""Summaries that a new index begins with, newest first; what is beyond is added piece by piece."""


class Look:
    """What there is on disk, looked at once however many ask, and not before.

    Args:
        memory: The memory's directory.
        conversations: Where its sessions are, None without.
        seen: The memory's directory as it is, if somebody has just looked.
    """

    def __init__(
        self, memory: Path, conversations: "Conversations | None" = None, seen: Scan | None = None
    ) -> None:
        self._directory = memory
        self._conversations = conversations
        self._seen = seen

    @property
    def is_whole(self) -> bool:
        """Whether the files count, or what lists them alone."""
        return self._seen is None or self._seen.is_whole

    @cached_property
    def memory(self) -> Scan:
        """The memory's directory."""
        return scan(self._directory) if self._seen is None else self._seen

    @cached_property
    def sessions(self) -> Mapping[str, str]:
        """What changes with the file of each session."""
        return self._conversations.stamps() if self._conversations is not None else {}


class Versions(msgspec.Struct, frozen=True):
    """A version for each text that is to be indexed, by document id; another says: read it again.

    They are not ``final`` when a text is being written at the moment, and keeps its old one so long.
    """

    by_id: dict[str, str]
    final: bool = True


class Texts(Protocol):
    """All texts of one kind, wherever they are kept."""

    @property
    def kind(self) -> Kind:
        """What they are."""
        ...

    def mark(self, look: Look) -> str:
        """Return what changes with any of the texts that are to be indexed; "" if that cannot be told.

        A look that is not whole gives the part of it that is before the first "/".

        Raises:
            StoreError: they cannot be listed.
        """
        ...

    def changed_since(self, mark: str, look: Look) -> Collection[str] | None:
        """Return the subjects whose texts may be other ones than when they had this mark; None if unknown.

        Raises:
            StoreError: they cannot be listed.
        """
        ...

    def versions(self, known: Mapping[str, str], look: Look, only: Collection[str] | None = None) -> Versions:
        """Return the versions of what is to be indexed.

        ``known`` are those in the index. With ``only`` it is about the texts of these subjects, and
        no other file is looked at.

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

    def mark(self, look: Look) -> str:
        """Return the mark of the list, and if the look is whole that of the files and their sessions."""
        listed = list_word(list_stamps(self._directory))
        if not listed or not look.is_whole:
            return listed
        files = sorted(item for item in look.memory.stamps.items() if is_episode_file(item[0]))
        said = [look.sessions.get(name.removesuffix(".md"), "") for name, _ in files]
        return f"{listed}/{digest(msgspec.json.encode((files, said)))}"

    def changed_since(self, mark: str, look: Look) -> Collection[str] | None:
        """Return which episodes of the list changed, if that is what counts; of files it is not known."""
        return None if look.is_whole else self._store.changed_since(mark.partition("/")[0])

    def versions(self, known: Mapping[str, str], look: Look, only: Collection[str] | None = None) -> Versions:
        """Return the versions: of the text, and of the session's file where that is indexed too."""
        found: dict[str, str] = {}
        is_final = True
        for episode, file, session in self._listed(known, look, only):
            name = document_id(self.kind, episode.session_id)
            state = state_of(episode, file)
            said = "" if episode.provenance.untrusted else session
            version, before = f"{state}/{said}", known.get(name, "")
            if version != before and said and before.startswith(f"{state}/") and self._is_open(episode):
                version, is_final = before, False  # its words are taken up when the session rests
            found[name] = version
        return Versions(found, is_final)

    def read(self, document_id: str) -> Document | None:
        """Return an episode with what was said in its session, if both are to be trusted."""
        return self._read(subject_of(document_id), with_session=True)

    def briefs(self) -> list[Document]:
        """Return the summaries of the newest."""
        newest = islice(self._store.read_index(), BRIEF_EPISODES)
        read = (self._read(episode.session_id, with_session=False) for episode in newest)
        return [document for document in read if document is not None]

    def _listed(self, known: Mapping[str, str], look: Look, only: Collection[str] | None) -> "list[_Listed]":
        """Return the episodes that have a text."""
        if only is not None:
            ids = [name for name in only if is_episode_id(name)]
            found = self._on_disk(self._store.listed(ids))
        elif look.is_whole:
            episodes, stamps, sessions = self._store.read_index(), look.memory.stamps, look.sessions
            found = [_listed(episode, stamps, sessions) for episode in episodes]
        else:
            found = self._as_known(self._store.read_index(), known)
        if self._store.exists(INTENT):  # a change that is decided and not yet carried out counts
            return found
        return [each for each in found if each.file]

    def _as_known(self, episodes: Sequence[Episode], known: Mapping[str, str]) -> "list[_Listed]":
        """Return the episodes with the files that the index knows; what it does not know is looked at."""
        found: list[_Listed] = []
        others: list[Episode] = []
        for episode in episodes:
            state, _, said = known.get(document_id(self.kind, episode.session_id), "").rpartition("/")
            before = parse_state(state)
            if before is None:
                others.append(episode)
            else:
                found.append(_Listed(episode, before.file, said))
        return [*found, *self._on_disk(others)]

    def _on_disk(self, episodes: Sequence[Episode]) -> "list[_Listed]":
        ids = [episode.session_id for episode in episodes]
        stamps = scan_of(self._directory, map(body_name, ids)).stamps
        sessions = self._conversations.stamps(ids) if self._conversations is not None else {}
        return [_listed(episode, stamps, sessions) for episode in episodes]

    def _read(self, session_id: str, *, with_session: bool) -> Document | None:
        self._poll()
        file = stamp_word(stamp_of(f"{self._directory}/{session_id}.md"))  # before the text
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
            state=state_of(found.episode, file),
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


class _Listed(NamedTuple):
    """An episode of the list, with what changes with its file, "" if there is none, and its session's."""

    episode: Episode
    file: str
    session: str


def _listed(episode: Episode, stamps: Mapping[str, Stamp], sessions: Mapping[str, str]) -> _Listed:
    word = stamp_word(stamps.get(f"{episode.session_id}.md"))
    return _Listed(episode, word, sessions.get(episode.session_id, ""))
