"""The index of the memory for one agent: kept open and fresh, searched without waiting for the disk."""

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio

from odek.background import Starter
from odek.embedding.embedder import Embedder
from odek.errors import StoreBusyError, StoreError
from odek.events import Event, Notice
from odek.index.document import Filter, Hit, Kind
from odek.memory.index_upkeep import IndexUpkeep, Left
from odek.memory.index_vectors import IndexVectors
from odek.memory.watch import Scan

if TYPE_CHECKING:
    from odek.embedding.embedder import Vector
    from odek.index.engine import Index

__all__ = ["FRESH_SECONDS", "MemoryIndex"]

FRESH_SECONDS = 0.5
"""A turn waits so long for what changed; the rest follows behind it, while the index answers as it is."""

TAKE_UP_SECONDS = 3.0
"""The end of a session waits so long for another process that merges; then the next search takes it up."""

BUILD_SECONDS = 1.5
"""A turn waits so long for an index that is missing: making one of 500 summaries takes a third of it."""

SCAN_SECONDS = 1.0
"""Of searching the texts themselves; the summaries of 500 episodes take a quarter of it."""

FILL_DELAY_SECONDS = 1.0
"""What nobody waits for begins so long after, when the first request is on its way."""

STEP_SECONDS = 0.3
"""Of work behind the agent at a time: whoever wants the lock gets it in between."""

PAUSE_SECONDS = 0.05
"""Between two steps, for whoever waits for the lock or the processor. No measurement behind it."""

OTHERS_SECONDS = 1.0
"""Until it is tried again to write what another process keeps from being written."""

BACK_OFF_SECONDS = 30.0
"""An index that could not be written is left alone so long, and answers as it is."""

_T = TypeVar("_T")


class MemoryIndex:
    """Finds episodes and sessions. What goes wrong is told once, and costs answers at most.

    Args:
        upkeep: Brings the index up to the texts; used in threads alone.
        starter: Begins the work that nobody waits for; it is cancelled at the end.
        limiter: Bounds the threads.
        emit: Takes what a person should know.
        embedder: Makes vectors of the episodes and of what they are asked for; None for words alone.
        keeps_up: Whether it also does, behind the agent, what no question waits for.
    """

    def __init__(
        self,
        upkeep: IndexUpkeep,
        starter: Starter,
        limiter: trio.CapacityLimiter,
        emit: Callable[[Event], None],
        embedder: Embedder | None = None,
        *,
        keeps_up: bool = True,
    ) -> None:
        self.upkeep = upkeep
        self._behind = upkeep.another()  # no question waits for what that is at
        self._starter = starter
        self._limiter = limiter
        self._emit = emit
        self._keeps_up = keeps_up
        self._index: Index | None = None
        self._reading = trio.Lock()  # held while a thread has the open index
        self._writing = trio.Lock()
        self._working_behind = trio.Lock()
        self._merged = trio.Event()  # not while a merge goes on behind a question: nobody can write then
        self._merged.set()
        self._built = trio.Event()
        self._urgent = trio.Event()
        self._is_filling = False
        self._rests_until = float("-inf")
        self._told: set[str] = set()
        self._vectors = IndexVectors(embedder, self._tell) if embedder is not None else None
        self._vectors_of_ns = 0  # the index that all vectors were made of

    async def search(
        self, query: str, count: int, where: Filter, *, floor: float = 0.0, beside: Collection[str] = ()
    ) -> list[Hit]:
        """Return what ``query`` is about, best first, and nothing whose relevance is below the ``floor``.

        Without an index the texts are searched in their short forms. The few documents ``beside`` are not
        indexed as they are: their texts are searched.

        Raises:
            StoreError: there is no index, and searching the texts themselves takes too long.
        """
        found = await self.look_up(query, count, where, floor=floor, beside=beside)
        if found is not None:
            return found
        with trio.move_on_after(SCAN_SECONDS):
            # Abandoned when it takes too long: it only reads.
            return await trio.to_thread.run_sync(
                partial(self._scan, query, count, where, floor), abandon_on_cancel=True, limiter=self._limiter
            )
        raise StoreError("there is no index yet, and searching the texts themselves takes too long")

    async def look_up(
        self, query: str, count: int, where: Filter, *, floor: float = 0.0, beside: Collection[str] = ()
    ) -> list[Hit] | None:
        """Return what the index finds, None while there is none; it is made behind the agent then.

        What is open and did not change is searched on the spot, in less time than handing it to a
        thread takes.
        """
        vector = None
        if self._vectors is not None and "episode" in where.kinds:
            vector = await self._vectors.of_question(query)
        index = self._index
        if index is not None and not beside and not self._reading.locked():
            hits = index.search_warm(query, count, where, floor=floor, vector=vector)
            if hits is not None:
                await trio.lowlevel.checkpoint_if_cancelled()
                return hits
        async with self._reading:
            found = await self._guarded(partial(self._search, query, count, where, floor, vector, beside))
        if self._index is not None and self._index.damage:
            self._tell(f"memory: {self._index.damage}; recall does without it until it is made anew")
        if found is None:
            self._fill_soon(0.0)
        return found

    async def freshen(
        self,
        kinds: Collection[Kind],
        *,
        seconds: float = FRESH_SECONDS,
        seen: Scan | None = None,
        only: Collection[str] | None = None,
    ) -> Left:
        """Bring texts of these kinds up to date for about so long; return what is left of them.

        What is left, and texts of other kinds, follow behind. ``seen`` is the memory's directory
        as it is, if somebody has just looked; who has not seen all of it does so behind, and has the
        rest taken up. With ``only`` the documents of these ids are looked at alone.
        """
        deadline = trio.current_time() + seconds
        left = await self._catch_up(kinds, seconds, seen=seen, only=only)
        if left.is_missing:
            self._fill_soon(0.0)
            with trio.move_on_after(BUILD_SECONDS):
                await self._built.wait()
            if self._built.is_set():
                left = await self._catch_up(kinds, max(deadline - trio.current_time(), 0.0))
        if self._keeps_up and (left.texts or seen is None or seen.is_whole):
            self._fill_soon(FILL_DELAY_SECONDS)
        return left

    def refresh_soon(self) -> None:
        """Bring everything up to date behind the agent, now."""
        self._fill_soon(0.0)

    async def take_up(self, document_ids: Collection[str]) -> bool:
        """Bring some texts up to date, if there is an index; False for what is left to the next search."""
        work = partial(self.upkeep.catch_up, self.upkeep.kinds, seconds=TAKE_UP_SECONDS, only=document_ids)
        return await self._write(work) == Left()

    def take_up_soon(self, document_ids: Collection[str]) -> None:
        """Bring some texts up to date behind the agent, now."""
        self._starter.start_soon(self._take_up_behind, document_ids)

    async def _take_up_behind(self, document_ids: Collection[str]) -> None:
        if document_ids and not await self.take_up(document_ids):
            self._fill_soon(FILL_DELAY_SECONDS)
        else:
            await self._fill_vectors()

    async def settle(self, seen: Scan | None) -> None:
        """Let the next process know that the index is up to date, if it is.

        ``seen`` is the memory's directory as it is, if somebody has just looked.
        """
        await self._write(partial(self.upkeep.settle, seen), abandon=True)

    async def _catch_up(
        self,
        kinds: Collection[Kind],
        seconds: float,
        *,
        seen: Scan | None = None,
        only: Collection[str] | None = None,
    ) -> Left:
        if trio.current_time() < self._rests_until:
            return Left()
        with trio.move_on_after(seconds) as waiting:
            await self._writing.acquire()
        if waiting.cancelled_caught:
            return Left(1)
        try:
            work = partial(
                self.upkeep.catch_up, kinds, seconds=seconds, seen=seen, only=only, leave_merge=True
            )
            # Waited for at the end too: who leaves a write in the middle leaves an index to be made anew.
            return await self._guarded(work) or Left()
        finally:
            self._writing.release()
            if self.upkeep.is_merging and self._merged.is_set():
                self._merged = trio.Event()
                self._starter.start_soon(self._finish_merge)

    async def _finish_merge(self) -> None:
        try:
            with trio.CancelScope(shield=True):  # bounded by the merge; until then nobody else can write
                await self._guarded(self.upkeep.finish_merge)
        finally:
            self._merged.set()

    def _fill_soon(self, delay_seconds: float) -> None:
        """Bring everything up to date behind the agent, one round at a time."""
        if trio.current_time() < self._rests_until:
            return
        if not delay_seconds:
            self._urgent.set()
            if self._built.is_set():
                self._built = trio.Event()
        if not self._is_filling:
            self._is_filling = True
            self._starter.start_soon(self._fill, delay_seconds)

    async def _fill(self, delay_seconds: float) -> None:
        # Cancelled at the end alone; then what is made aside is left to the next process.
        try:
            with trio.move_on_after(delay_seconds):
                await self._urgent.wait()
            is_wanted = True
            while is_wanted:
                self._urgent = trio.Event()  # before the work: what is asked for during it counts
                await self._fill_once()
                is_wanted = self._urgent.is_set()
        finally:
            self._is_filling = False
            self._built.set()

    async def _fill_once(self) -> None:
        left = await self._catch_up_behind()
        if left.is_missing or (self._index is not None and not self._index.is_warm):
            await self._work_behind(self._behind.build, abandon=True)
            left = Left(1)
        elif await self._work_behind(self._behind.tidy, abandon=True):
            left = Left(1)
        self._built.set()
        while left.texts and not left.is_missing:
            await trio.sleep(OTHERS_SECONDS if left.is_others else PAUSE_SECONDS)
            left = await self._catch_up_behind()
        await self._fill_vectors()

    async def _catch_up_behind(self) -> Left:
        if trio.current_time() < self._rests_until:
            return Left()
        work = partial(self._behind.catch_up, self._behind.kinds, seconds=STEP_SECONDS)
        return await self._work_behind(work) or Left()

    async def _fill_vectors(self) -> None:
        """Make the vectors that are missing since the index changed."""
        run = partial(self._work_behind, abandon=True)
        changed_ns = await run(self._behind.changed_at_ns) if self._vectors is not None else None
        if self._vectors is None or not changed_ns or changed_ns == self._vectors_of_ns:
            return
        await self._vectors.fill(self._behind, run)
        if await run(partial(self._behind.without_vectors, 1)) == []:
            self._vectors_of_ns = changed_ns

    async def _work_behind(self, work: Callable[[], _T], *, abandon: bool = False) -> _T | None:
        async with self._working_behind:
            return await self._guarded(work, abandon=abandon)

    def _search(
        self,
        query: str,
        count: int,
        where: Filter,
        floor: float,
        vector: "Vector | None",
        beside: Collection[str],
    ) -> list[Hit] | None:
        """Search the index; None when there is none that can be used."""
        if self._index is None and self.upkeep.directory.is_dir():
            self._index = self.upkeep.open()
        if self._index is None:
            return None
        texts = self.upkeep.read(beside)
        hits = self._index.search(query, count, where, floor=floor, vector=vector, beside=texts)
        return hits if hits or not self._index.needs_rebuild else None

    def _scan(self, query: str, count: int, where: Filter, floor: float) -> list[Hit]:
        from odek.index.scan import scan

        hits = scan(self.upkeep.briefs(where.kinds or self.upkeep.kinds), query, count, where)
        return [hit for hit in hits if hit.relevance >= floor]

    async def _write(self, work: Callable[[], _T], *, abandon: bool = False) -> _T | None:
        while True:
            await self._merged.wait()
            async with self._writing:
                if self._merged.is_set():
                    return await self._guarded(work, abandon=abandon)

    async def _guarded(self, work: Callable[[], _T], *, abandon: bool = False) -> _T | None:
        """Do blocking work in a thread; None when the disk does not let it be done."""
        try:
            # ``poll`` ends it between two texts in any case.
            return await trio.to_thread.run_sync(work, abandon_on_cancel=abandon, limiter=self._limiter)
        except StoreBusyError:
            return None  # another process does it
        except StoreError as error:
            self._rests_until = trio.current_time() + BACK_OFF_SECONDS
            self._tell(f"memory: the index is not up to date: {error}")
            return None

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._emit(Notice(text, "warning"))
