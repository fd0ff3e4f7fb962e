"""Seeing the memory's directory as it is, for one agent, without a question waiting for a long look."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

import trio

from odek.background import Starter
from odek.errors import StoreError
from odek.events import Event, Notice
from odek.memory.facts import FactStore
from odek.memory.outside import Looked, Outside
from odek.memory.watch import Scan, Stamp, hot_stamps, is_vast, watch

__all__ = ["SCAN_AGAIN_SECONDS", "Lookout"]

SCAN_AGAIN_SECONDS = 1.0
"""A scan of 500 episodes takes a millisecond; questions come in quicker succession only from programs."""

BEHIND_SECONDS = 1.0
"""A long look begins so long after a question, when the request that it is for is on its way."""

BEHIND_SHARE = 20
"""Of the time a look behind may take one part: a look at 50,000 files slows down what runs beside it."""

OnChanged: TypeAlias = Callable[[frozenset[str] | None], None]


class Lookout:
    """Looks for what others change, and tells of it.

    Args:
        directory: The memory's.
        outside: Compares each look with the one before.
        store: The facts, which are read to tell a change of them from a mere touch.
        starter: Begins what nobody waits for; it is cancelled at the end.
        limiter: Bounds the threads.
        emit: Takes what is to be told.
        is_watched: Whether to look without being asked too, whenever something changes.
        on_changed: Called with the names of the files that a look behind the agent found changed, None for
            the first look. Without it there are none: a question waits for a look at however many files.
    """

    def __init__(
        self,
        directory: Path,
        outside: Outside,
        store: FactStore,
        starter: Starter,
        limiter: trio.CapacityLimiter,
        emit: Callable[[Event], None],
        *,
        is_watched: bool,
        on_changed: OnChanged | None,
    ) -> None:
        self._directory = directory
        self._outside = outside
        self._store = store
        self._starter = starter
        self._limiter = limiter
        self._emit = emit
        self._is_watched = is_watched
        self._on_changed = on_changed
        self._seen: Scan | None = None
        self._hot: tuple[Stamp | None, ...] = ()
        self._looked_at = float("-inf")
        self._is_looking_behind = False
        self._took_seconds = 0.0

    async def look(self) -> Scan:
        """Return the directory as it is; tell of what was changed from outside.

        The same object as the last time, and no scan, while nothing came, went or was replaced and
        the last scan is young: a text that is edited in place may be noticed so much later. Among
        very many episodes the list of them alone is looked at; their files are behind that.

        Raises:
            StoreError: the directory cannot be read.
        """
        if self._is_watched and self._seen is not None:  # nothing of it is on the way of the first request
            self._is_watched = False
            self._starter.start_soon(
                watch, self._directory, self._on_hint, lambda line: self._emit(Notice(line))
            )
        hot = hot_stamps(self._directory)
        is_young = trio.current_time() < self._looked_at + SCAN_AGAIN_SECONDS
        if self._on_changed is not None and is_vast(hot):
            if not (self._seen is not None and self._hot == hot and is_young):
                self._look_behind_soon(self._on_changed)
            if self._seen is None or self._seen.is_whole or self._hot != hot:
                self._seen, self._hot = Scan(is_whole=False), hot
        elif self._seen is None or self._hot != hot or not is_young:
            return await self._look_afresh(hot)
        return self._seen

    async def _on_hint(self) -> None:
        hot = hot_stamps(self._directory)
        if self._on_changed is not None and is_vast(hot):
            self._look_behind_soon(self._on_changed)
            return
        with suppress(StoreError):  # the next use says so
            await self._look_afresh(hot)

    async def _look_afresh(self, hot: tuple[Stamp | None, ...]) -> Scan:
        seen = (await self._scan()).seen
        self._seen, self._hot = seen, hot
        return seen

    def _look_behind_soon(self, on_changed: OnChanged) -> None:
        if not self._is_looking_behind:
            self._is_looking_behind = True
            self._starter.start_soon(self._look_behind, on_changed)

    async def _look_behind(self, on_changed: OnChanged) -> None:
        try:
            await trio.sleep(max(BEHIND_SECONDS, BEHIND_SHARE * self._took_seconds))
            begun = trio.current_time()
            with suppress(StoreError):  # the next use says so
                changed = (await self._scan()).changed
                if changed is None or changed:
                    on_changed(changed)
            self._took_seconds = trio.current_time() - begun
        finally:
            self._is_looking_behind = False

    async def _scan(self) -> Looked:
        now = trio.current_time()
        look = partial(self._outside.look, self._store)
        looked = await trio.to_thread.run_sync(look, abandon_on_cancel=False, limiter=self._limiter)
        self._looked_at = now
        for event in looked.events:
            self._emit(event)
        return looked
