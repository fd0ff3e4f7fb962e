"""Looking through the sessions: by the index where there is one, else session by session.

Whatever found a session, what is shown is read from its file, so that nothing is shown of
one that is gone or says something else by now.
"""

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec
import trio

from odek.events import Event
from odek.index.document import ANY, Filter
from odek.index.document import Hit as IndexHit
from odek.memory.excerpt import snippet
from odek.memory.index_texts import document_id, subject_of
from odek.memory.index_upkeep import upkeep_of
from odek.memory.memory_index import MemoryIndex
from odek.sessions.document import Header
from odek.sessions.names import session_path
from odek.sessions.texts import SessionTexts, changed_at, said_and_done

__all__ = ["Hit", "IndexedSearch", "PlainSearch", "SearchResult", "SessionSearch", "open_session_search"]

SEARCH_SECONDS = 10.0
"""For what nobody has indexed yet; what is older then is reported as not looked at."""

PLAIN_STEP = 20
"""Sessions searched between two looks at the clock; a second of work at most."""

DISK_THREADS = 2
"""One reads while the other writes the index."""

_SESSIONS = Filter(kinds=("session",))


class Hit(msgspec.Struct, frozen=True):
    """The best passage of one session, on a line.

    ``turn`` counts the person's messages from 1. ``day`` is that of the last change.
    """

    session: str
    day: str
    turn: int
    passage: str
    untrusted: bool


class SearchResult(msgspec.Struct, frozen=True):
    """What was found, best first, and of how many sessions; ``skipped`` were not looked at in time."""

    hits: list[Hit]
    searched: int
    skipped: int


class SessionSearch(Protocol):
    """Finds sessions."""

    async def find(self, query: str, *, limit: int, without: str = "") -> SearchResult:
        """Return the ``limit`` sessions that ``query`` is most about, but for the one ``without``.

        Raises:
            StoreError: they cannot be searched.
        """
        ...


@asynccontextmanager
async def open_session_search(
    home: Path, emit: Callable[[Event], None], *, is_indexed: bool
) -> AsyncGenerator[SessionSearch]:
    """Yield what finds the sessions below ``home``, for a command that needs no agent.

    ``emit`` takes what a person should know. What is not to be remembered is not ``is_indexed``.
    """
    sessions, disk = home / "sessions", trio.CapacityLimiter(DISK_THREADS)
    if not is_indexed:
        yield PlainSearch(sessions, disk)
        return
    async with trio.open_nursery() as nursery:
        upkeep = upkeep_of(home / "memory", SessionTexts(sessions), poll=trio.from_thread.check_cancelled)
        yield IndexedSearch(sessions, MemoryIndex(upkeep, nursery, disk, emit), disk)
        nursery.cancel_scope.cancel()


class IndexedSearch:
    """Finds sessions by the index. ``disk`` bounds the threads."""

    def __init__(self, directory: Path, index: MemoryIndex, disk: trio.CapacityLimiter) -> None:
        self._directory = directory
        self._index = index
        self._disk = disk

    async def find(self, query: str, *, limit: int, without: str = "") -> SearchResult:
        """Return what is found; without an index that can be written, session by session."""
        left = await self._index.freshen(_SESSIONS.kinds, seconds=SEARCH_SECONDS)
        found = await self._index.look_up(query, limit + 1, _SESSIONS)
        if found is None:
            plain = PlainSearch(self._directory, self._disk)
            return await plain.find(query, limit=limit, without=without)
        show = partial(_shown, self._directory, query, found, limit, without)
        hits = await trio.to_thread.run_sync(show, limiter=self._disk)
        return SearchResult(hits, self._index.upkeep.count("session"), left.texts)


class PlainSearch:
    """Finds sessions by reading them, newest first; ``disk`` bounds the threads."""

    def __init__(self, directory: Path, disk: trio.CapacityLimiter) -> None:
        self._directory = directory
        self._disk = disk

    async def find(self, query: str, *, limit: int, without: str = "") -> SearchResult:
        """Return what is found within some seconds."""
        check = trio.from_thread.check_cancelled
        search = partial(_plain, self._directory, query, limit, without, check)
        return await trio.to_thread.run_sync(search, limiter=self._disk)


def _plain(directory: Path, query: str, limit: int, without: str, check: Callable[[], None]) -> SearchResult:
    from odek.index.scan import scan

    texts, deadline = SessionTexts(directory), time.monotonic() + SEARCH_SECONDS
    names = list(texts.stamps())
    found: list[IndexHit] = []
    searched = 0
    while searched < len(names) and time.monotonic() < deadline:
        check()
        step = names[searched : searched + PLAIN_STEP]
        searched += len(step)
        read = (texts.read(document_id("session", name)) for name in step if name != without)
        found += scan([document for document in read if document is not None], query, limit, ANY)
        found = sorted(found, key=lambda hit: -hit.relevance)[:limit]
    hits = _shown(directory, query, found, limit, without)
    return SearchResult(hits, searched, len(names) - searched)


def _shown(
    directory: Path,
    query: str,
    found: Sequence[IndexHit],
    limit: int,
    without: str,
) -> list[Hit]:
    """Return what was found as the files have it now; what shares too little with ``query`` is none."""
    from odek.index.engine import RELEVANCE_FLOOR

    passages: Mapping[str, tuple[str, bool]] = {
        subject_of(hit.id): (hit.passage, hit.relevance >= RELEVANCE_FLOOR) for hit in found
    }
    shown = (
        _hit(directory, name, query, passage, is_near=is_near)
        for name, (passage, is_near) in passages.items()
        if name != without
    )
    return [hit for hit in shown if hit is not None][:limit]


def _hit(directory: Path, session: str, query: str, passage: str, *, is_near: bool) -> Hit | None:
    from odek.index.tokens import matched_spans

    texts = SessionTexts(directory)
    reading = texts.reading(session)
    if reading is None:
        return None
    pieces = passage.splitlines()
    lines = list(said_and_done(reading.messages))
    inside = [each for each in lines if any(piece in each[1] for piece in pieces)]
    matched = [(_different(text, matched_spans(text, query)), turn, text) for turn, text in inside or lines]
    if not matched:
        return None
    count, turn, text = max(matched, key=lambda each: each[0])
    if not count and not is_near:  # only parts of words are the same
        return None
    return Hit(
        session,
        _day(reading.header, session_path(directory, session)),
        turn,
        snippet(text, query),
        reading.header.episode_untrusted,
    )


def _day(header: Header, path: Path) -> str:
    try:
        return time.strftime("%Y-%m-%d", time.localtime(changed_at(header) or path.stat().st_mtime))
    except OSError:
        return "deleted"


def _different(text: str, spans: Sequence[tuple[int, int]]) -> int:
    return len({text[first:last].casefold() for first, last in spans})
