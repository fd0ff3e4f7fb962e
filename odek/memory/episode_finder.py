"""Finding episodes by the index, each compared with its file before anybody is given it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import trio

from odek.index.document import Filter
from odek.index.document import Hit as IndexHit
from odek.memory.episode_reader import EpisodeReader
from odek.memory.index_texts import subject_of
from odek.memory.memory_index import FRESH_SECONDS, MemoryIndex
from odek.memory.recall import Considered, Hit
from odek.memory.shelf import Shelf, Shelved
from odek.memory.watch import Scan

__all__ = ["EpisodeFinder", "FoundEpisodes"]

_ALL = Filter(kinds=("episode",))
_TRUSTED = Filter(kinds=("episode",), trusted_only=True)

ASKED_AGAIN_SECONDS = 0.05
"""A question waits so long for who kept the index from being written at the one before."""

_T = TypeVar("_T")


class FoundEpisodes(msgspec.Struct, frozen=True):
    """What may be recalled, best first, with relevances as scores; and what was found but is not given."""

    hits: tuple[Hit, ...] = ()
    left_out: tuple[Considered, ...] = ()


class EpisodeFinder:
    """Finds episodes for one agent.

    Args:
        directory: The memory's.
        episodes: Reads them.
        index: Where they are found.
        limiter: Bounds the threads.
    """

    def __init__(
        self, directory: Path, episodes: EpisodeReader, index: MemoryIndex, limiter: trio.CapacityLimiter
    ) -> None:
        self._index = index
        list_is_indexed = partial(index.upkeep.is_settled, "episode", Scan(is_whole=False))
        self._shelf = Shelf(directory, episodes, list_is_indexed)
        self._limiter = limiter
        self._seen: Scan | None = None
        self._beside: tuple[str, ...] = ()  # of what was seen, what others keep from being indexed

    async def find(
        self, query: str, seen: Scan, count: int, *, floor: float, explain: bool = False
    ) -> FoundEpisodes:
        """Return which of the ``count`` episodes that ``query`` is most about are relevant enough.

        ``seen`` is the directory as it is; another one than before says that something may have
        changed. With ``explain`` others are named too: those that are too far, and as near as
        they are those that must not be given.

        Raises:
            StoreError: there is no index, and searching the texts themselves takes too long.
        """
        if seen is not self._seen or self._beside:
            seconds = ASKED_AGAIN_SECONDS if self._beside else FRESH_SECONDS
            left = await self._index.freshen(_ALL.kinds, seen=seen, seconds=seconds)
            self._seen, self._beside = seen, left.ids
        hits = await self._index.search(query, count, _TRUSTED, floor=floor, beside=self._beside)
        episodes = await self._episodes(hits)
        if changed := [hit.id for hit in hits if not _is_current(hit, episodes[hit.id])]:
            left = await self._index.freshen(_ALL.kinds, only=changed)
            beside = {*self._beside, *left.ids}
            hits = await self._index.search(query, count, _TRUSTED, floor=floor, beside=beside)
            episodes = await self._episodes(hits)
        found = tuple(
            Hit(each.document, hit.relevance, "" if hit.passage in each.document.text else hit.passage)
            for hit in hits
            if (each := episodes[hit.id]).document is not None
            and each.is_recallable
            and _is_current(hit, each)
        )
        return FoundEpisodes(found, await self._left_out(query, count, floor) if explain else ())

    async def _left_out(self, query: str, count: int, floor: float) -> tuple[Considered, ...]:
        """Return which of the episodes that are most alike are too far, and which must not be given."""
        hits = await self._index.search(query, count, _TRUSTED)
        far = [
            Considered("episode", subject_of(hit.id), "score", relevance=round(hit.relevance, 2))
            for hit in hits
            if hit.relevance < floor
        ]
        return (*far, *await self._barred(query, count, {hit.id for hit in hits}))

    async def _barred(self, query: str, count: int, known: set[str]) -> list[Considered]:
        hits = [hit for hit in await self._index.search(query, count, _ALL) if hit.id not in known]
        episodes = await self._episodes(hits)
        return [
            Considered(
                "episode",
                subject_of(hit.id),
                "withheld" if each.is_trusted else "untrusted",
                reason=each.reason,
                relevance=round(hit.relevance, 2),
            )
            for hit in hits
            if (each := episodes[hit.id]).document is not None and not each.is_recallable
        ]

    async def _episodes(self, hits: Sequence[IndexHit]) -> Mapping[str, Shelved]:
        """Return the episodes of ``hits`` as their files are now, by document id."""
        names = {hit.id: subject_of(hit.id) for hit in hits}
        episodes = self._shelf.at_hand(names.values())
        if episodes is None:
            states = {names[hit.id]: hit.state for hit in hits}
            episodes = await self._in_thread(partial(self._shelf.fetch, states))
        return {name: episodes[subject] for name, subject in names.items()}

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)


def _is_current(hit: IndexHit, episode: Shelved) -> bool:
    """Tell whether an episode was found by what its file says, or by what its session said under it."""
    return episode.document is not None and (
        hit.state == episode.state or hit.passage in episode.document.text
    )
