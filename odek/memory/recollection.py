"""What a question is about among all that is remembered: for a turn, and for whoever searches."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio

from odek.background import Starter
from odek.config.memory_settings import MemorySettings
from odek.embedding.embedder import Embedder
from odek.errors import EmbeddingError, StoreError
from odek.events import Event
from odek.memory.ask import Ask
from odek.memory.facts import Facts
from odek.memory.watch import Scan, is_episode_file

if TYPE_CHECKING:
    from odek.memory.episode_finder import EpisodeFinder
    from odek.memory.episode_index import EpisodeIndex
    from odek.memory.episode_reader import EpisodeReader
    from odek.memory.index_texts import Sessions
    from odek.memory.memory_index import MemoryIndex
    from odek.memory.ranker import Found
    from odek.memory.recall import Considered, Document

__all__ = ["Recalled", "Recollection", "RecollectionParts"]


class Recalled(msgspec.Struct, frozen=True):
    """What a turn is given, what was considered, and why there was no comparison, if so.

    ``searched`` says that there was something to search.
    """

    documents: "tuple[Document, ...]" = ()
    considered: "tuple[Considered, ...]" = ()
    note: str = ""
    searched: bool = True


class RecollectionParts(msgspec.Struct, frozen=True, kw_only=True):
    """What finding works with.

    ``directory`` is the memory's, and ``episodes`` returns what reads them. ``sessions`` returns
    the sessions for the index, None when there are none to search. ``embedder`` returns what
    makes vectors. ``ask`` puts a question to the model, None when there is none. ``emit`` takes
    what a person should know. ``starter`` begins the work that nobody waits for, ``limiter``
    bounds the threads. Who ``keeps_up`` the index also does what no question waits for.
    """

    directory: Path
    episodes: "Callable[[], EpisodeReader]"
    settings: MemorySettings
    sessions: "Callable[[], Sessions] | None"
    embedder: Callable[[], Embedder]
    ask: Ask | None
    emit: Callable[[Event], None]
    starter: Starter
    limiter: trio.CapacityLimiter
    keeps_up: bool = True


class Recollection:
    """Finds episodes and facts for one agent. Nothing is loaded before there is something to find."""

    def __init__(self, parts: RecollectionParts) -> None:
        self._parts = parts
        self._by_vectors: EpisodeIndex | None = None
        self._finder: EpisodeFinder | None = None
        self._index: MemoryIndex | None = None

    def index(self) -> "MemoryIndex":
        """Return the index of episodes and sessions, the same one each time."""
        if self._index is None:
            from odek.memory.index_upkeep import upkeep_of
            from odek.memory.index_vectors import is_of_words
            from odek.memory.memory_index import MemoryIndex

            parts = self._parts
            sessions = parts.sessions() if parts.sessions is not None else None
            embedder = parts.embedder()
            # Hashed words are what the index has anyway, and better.
            vectors = None if is_of_words(embedder) else embedder
            space = vectors.fingerprint if vectors is not None else ""
            upkeep = upkeep_of(
                parts.directory,
                sessions,
                episodes=parts.episodes(),
                space=space,
                poll=trio.from_thread.check_cancelled,
            )
            self._index = MemoryIndex(
                upkeep, parts.starter, parts.limiter, parts.emit, vectors, keeps_up=parts.keeps_up
            )
        return self._index

    async def recall(
        self, query: str, seen: Scan, *, shown: Callable[[str], bool], explain: bool = True
    ) -> Recalled:
        """Return the episodes that ``query`` is about; never fails, and never waits for long.

        Args:
            query: The question.
            seen: The directory as it is.
            shown: Tells whether the conversation holds an episode already.
            explain: Whether it matters what was found and must not be given.
        """
        if not _has_episodes(seen):
            return Recalled(searched=False)
        try:
            if self._parts.settings.ranker == "rp":
                return await self._recall_alike(query, seen, shown)
            return await self._recall_relevant(query, seen, shown, explain=explain)
        except StoreError as error:
            return Recalled(note=str(error))

    async def search(self, query: str, files: Sequence[Facts], seen: Scan) -> "Found":
        """Return the facts and the recallable episodes that are about ``query``, best first.

        Raises:
            StoreError: the list of the episodes cannot be read.
        """
        from odek.memory.ranker import MAX_CANDIDATES, Candidate, search_alike, search_relevant

        ask = self._parts.ask if self._parts.settings.llm_search else None
        facts = [
            Candidate("fact", f"{fact.target}.md", fact.text)
            for file in files
            for fact in reversed(file.entries)
            if not fact.rejection
        ]
        if self._parts.settings.ranker == "rp":
            episodes = [
                Candidate(
                    "episode",
                    document.session_id,
                    document.text,
                    document.created_at,
                    untrusted=document.untrusted,
                )
                for document in await self._documents(seen)
            ]
            return await search_alike(query, [*facts, *episodes], embedder=self._parts.embedder(), ask=ask)
        if not _has_episodes(seen):
            return await search_relevant(query, facts, (), ask=ask)
        found = await self._episodes().find(query, seen, MAX_CANDIDATES, floor=0.0)
        return await search_relevant(query, facts, found.hits, ask=ask)

    async def _recall_relevant(
        self, query: str, seen: Scan, shown: Callable[[str], bool], *, explain: bool
    ) -> Recalled:
        from odek.index.engine import RELEVANCE_FLOOR
        from odek.memory.excerpt import quotation
        from odek.memory.recall import OVER_FETCH, choose_relevant

        found = await self._episodes().find(query, seen, OVER_FETCH, floor=RELEVANCE_FLOOR, explain=explain)
        documents, considered = choose_relevant(
            found.hits,
            quote=partial(quotation, query=query),
            shown=frozenset(hit.document.session_id for hit in found.hits if shown(hit.document.session_id)),
        )
        return Recalled(tuple(documents), (*considered, *found.left_out))

    async def _recall_alike(self, query: str, seen: Scan, shown: Callable[[str], bool]) -> Recalled:
        from odek.memory.recall import OVER_FETCH, choose

        vectors = self._vectors()
        library = await vectors.library(seen)
        if not library.documents:
            return Recalled(considered=library.left_out)
        try:
            hits = await vectors.nearest(query, library.documents, OVER_FETCH)
        except EmbeddingError as error:
            return Recalled(considered=library.left_out, note=f"episodes could not be compared: {error}")
        by_words = vectors.embedder.fingerprint.startswith("rp/")
        known = frozenset(hit.document.session_id for hit in hits if shown(hit.document.session_id))
        documents, considered = choose(query, hits, by_words=by_words, shown=known)
        return Recalled(tuple(documents), (*considered, *library.left_out))

    async def _documents(self, seen: Scan) -> "Sequence[Document]":
        return (await self._vectors().library(seen)).documents if _has_episodes(seen) else ()

    def _vectors(self) -> "EpisodeIndex":
        if self._by_vectors is None:
            from odek.memory.episode_index import EpisodeIndex
            from odek.memory.episodes import EpisodeStore

            parts = self._parts
            self._by_vectors = EpisodeIndex(
                parts.directory,
                EpisodeStore(parts.directory),
                parts.embedder(),
                parts.starter,
                parts.limiter,
            )
        return self._by_vectors

    def _episodes(self) -> "EpisodeFinder":
        if self._finder is None:
            from odek.memory.episode_finder import EpisodeFinder

            parts = self._parts
            self._finder = EpisodeFinder(parts.directory, parts.episodes(), self.index(), parts.limiter)
        return self._finder


def _has_episodes(seen: Scan) -> bool:
    return not seen.is_whole or any(map(is_episode_file, seen.stamps))
