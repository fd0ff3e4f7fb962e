"""What a question is about among all that is remembered: for a turn, and for whoever searches."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio

from odek.config.memory_settings import MemorySettings
from odek.embedding.embedder import Embedder
from odek.errors import EmbeddingError, StoreError
from odek.memory.ask import Ask
from odek.memory.facts import Facts
from odek.memory.places import JOURNAL, is_episode_id
from odek.memory.watch import Scan

if TYPE_CHECKING:
    from odek.memory.episode_index import EpisodeIndex, Library
    from odek.memory.ranker import Found
    from odek.memory.recall import Considered, Document

__all__ = ["Recalled", "Recollection"]


class Recalled(msgspec.Struct, frozen=True):
    """What a turn is given, what was considered, and why there was no comparison, if so."""

    documents: "tuple[Document, ...]" = ()
    considered: "tuple[Considered, ...]" = ()
    note: str = ""


class Recollection:
    """Finds episodes and facts for one agent. Nothing is loaded before there is an episode.

    Args:
        directory: The memory's.
        settings: How it searches.
        embedder: Returns what makes vectors.
        ask: Puts a question to the model, None when there is none.
        nursery: Where work goes on that a turn does not wait for.
        limiter: Bounds the threads.
    """

    def __init__(
        self,
        directory: Path,
        settings: MemorySettings,
        embedder: Callable[[], Embedder],
        ask: Ask | None,
        nursery: trio.Nursery,
        limiter: trio.CapacityLimiter,
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._embedder = embedder
        self._ask = ask
        self._nursery = nursery
        self._limiter = limiter
        self._index: EpisodeIndex | None = None

    async def recall(self, query: str, seen: Scan, *, shown: Callable[[str], bool]) -> Recalled:
        """Return the episodes that ``query`` is about; never fails, and never waits for long.

        ``seen`` is the directory as it is; ``shown`` tells whether the conversation holds an
        episode already.
        """
        try:
            library = await self._library(seen)
        except StoreError as error:
            return Recalled(note=str(error))
        if library is None:
            return Recalled()
        if not library.documents or self._index is None:
            return Recalled(considered=library.left_out)
        from odek.memory.recall import OVER_FETCH, choose

        try:
            hits = await self._index.nearest(query, library.documents, OVER_FETCH)
        except EmbeddingError as error:
            return Recalled(considered=library.left_out, note=f"episodes could not be compared: {error}")
        by_words = self._index.embedder.fingerprint.startswith("rp/")
        known = frozenset(hit.document.session_id for hit in hits if shown(hit.document.session_id))
        documents, considered = choose(query, hits, by_words=by_words, shown=known)
        return Recalled(tuple(documents), (*considered, *library.left_out))

    async def search(self, query: str, files: Sequence[Facts], seen: Scan) -> "Found":
        """Return the facts and the recallable episodes that are about ``query``, best first.

        Raises:
            StoreError: the list of the episodes cannot be read.
        """
        from odek.memory.ranker import Candidate, search

        candidates = [
            Candidate("fact", f"{fact.target}.md", fact.text)
            for facts in files
            for fact in reversed(facts.entries)
            if not fact.rejection
        ]
        library = await self._library(seen)
        candidates += [
            Candidate("episode", document.session_id, document.text, document.created_at)
            for document in (library.documents if library is not None else ())
        ]
        ask = self._ask if self._settings.llm_search else None
        return await search(query, candidates, embedder=self._embedder(), ask=ask)

    async def _library(self, seen: Scan) -> "Library | None":
        """Return the episodes, None when there never was one: then nothing is loaded for them."""
        if self._index is None:
            if not any(is_episode_id(name.removesuffix(".md")) for name in seen.stamps if name != JOURNAL):
                return None
            from odek.memory.episode_index import EpisodeIndex
            from odek.memory.episodes import EpisodeStore

            self._index = EpisodeIndex(
                self._directory,
                EpisodeStore(self._directory),
                self._embedder(),
                self._nursery,
                self._limiter,
            )
        return await self._index.library(seen)
