"""Looking through the sessions on disk for words. Blocking.

A plain scan, newest first: bounded in files, bytes and time, and right without any index
that could be stale.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.messages import CONTEXT_NAME, AssistantMessage, Message, SystemMessage, UserMessage
from odek.sessions.heads import newest_first
from odek.sessions.names import session_path
from odek.sessions.reading import Reading, read_session
from odek.storage.files import read_file

__all__ = ["Hit", "SearchResult", "query_words", "search_sessions"]

SCAN_SECONDS = 10.0
"""A thousand long sessions take about this; what is older is reported as not looked at."""

FILE_LIMIT_BYTES = 32 * 1024 * 1024
"""As large as a session is written."""

MAX_WORDS = 16
"""Further words of a query add time and no meaning."""

PASSAGE_CHARACTERS = 240
"""Around the densest match: enough to tell what it is about."""


class Hit(msgspec.Struct, frozen=True):
    """The best passage of one session.

    ``words`` counts the different words of the query in it, which are marked ``**so**``.
    ``turn`` counts the person's messages from 1. ``day`` is that of the last change.
    """

    session: str
    day: str
    turn: int
    words: int
    passage: str
    untrusted: bool


class SearchResult(msgspec.Struct, frozen=True):
    """What was found, best first, and of how many sessions; ``skipped`` were not looked at in time."""

    hits: list[Hit]
    searched: int
    skipped: int


def query_words(query: str) -> tuple[str, ...]:
    """Return the different words to look for, in lower case; at most ``MAX_WORDS``."""
    return tuple(dict.fromkeys(re.findall(r"\w+", query.lower())))[:MAX_WORDS]


def search_sessions(
    directory: Path,
    query: str,
    *,
    limit: int,
    without: str = "",
    check: Callable[[], None] = lambda: None,
) -> SearchResult:
    """Return the ``limit`` sessions that match most words of ``query``; of equals, the newer.

    The session ``without`` is left out. ``check`` is called before each file, and may raise
    to give up.

    Raises:
        StoreError: the directory cannot be read.
    """
    words = query_words(query)
    deadline = time.monotonic() + SCAN_SECONDS
    found = newest_first(directory) if words else []
    hits: list[Hit] = []
    for searched, (session, changed_ns) in enumerate(found):
        check()
        if time.monotonic() > deadline:
            return SearchResult(_best(hits, limit), searched, len(found) - searched)
        if session == without:
            continue
        reading = _candidate(directory, session, words)
        hit = _best_passage(reading, words, changed_ns) if reading else None
        if hit is not None:
            hits.append(hit)
            if len(hits) > 4 * limit:
                hits = _best(hits, limit)
    return SearchResult(_best(hits, limit), len(found), 0)


def _best(hits: list[Hit], limit: int) -> list[Hit]:
    return sorted(hits, key=lambda hit: -hit.words)[:limit]  # stable: newer ones stay in front


def _candidate(directory: Path, session: str, words: Sequence[str]) -> Reading | None:
    """Read a session if one of the words may be in it; what cannot be read has no hit."""
    path = session_path(directory, session)
    try:
        data = read_file(path, limit_bytes=FILE_LIMIT_BYTES)
        # Other words may be escaped in the file, or differ from it in case; then only decoding tells.
        if all(map(str.isascii, words)):
            lower = data.lower()
            if not any(word.encode() in lower for word in words):
                return None
        return read_session(data, session, path)
    except (FileNotFoundError, StoreError):
        return None


def _best_passage(reading: Reading, words: Sequence[str], changed_ns: int) -> Hit | None:
    best: tuple[int, int, str] | None = None
    for turn, text in _texts(reading.messages):
        lower = text.lower()
        count = sum(word in lower for word in words)
        if count and (best is None or count > best[0]):
            best = count, turn, text
    if best is None:
        return None
    day = time.strftime("%Y-%m-%d", time.localtime(changed_ns // 10**9))
    count, turn, text = best
    untrusted = reading.header.episode_untrusted
    return Hit(reading.header.id, day, turn, count, passage(text, words), untrusted)


def _texts(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    """Yield (turn, text) of what was said; not of the instructions, nor of what memory added."""
    turn = 0
    for index, message in enumerate(messages):
        turn += isinstance(message, UserMessage)
        if isinstance(message, SystemMessage) and (index == 0 or message.name == CONTEXT_NAME):
            continue
        if message.content:
            yield max(turn, 1), message.content
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                yield max(turn, 1), f"{call.name} {call.arguments}"


def passage(text: str, words: Sequence[str]) -> str:
    """Return the part of ``text`` with most of the ``words``, on one line, each marked ``**so**``."""
    flat = " ".join(text.split())
    pattern = re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))), re.IGNORECASE)
    places = [(match.start(), match.end(), match[0].lower()) for match in pattern.finditer(flat)]
    start = _densest(places)
    begin = max(start - PASSAGE_CHARACTERS // 4, 0)
    end = min(begin + PASSAGE_CHARACTERS, len(flat))
    while begin > 0 and not flat[begin - 1].isspace() and start - begin < PASSAGE_CHARACTERS // 2:
        begin -= 1
    cut = pattern.sub(lambda match: f"**{match[0]}**", flat[begin:end])
    return f"{'…' if begin else ''}{cut.strip()}{'…' if end < len(flat) else ''}"


def _densest(places: Sequence[tuple[int, int, str]]) -> int:
    """Return where the stretch of passage length begins that holds most different words."""
    best, best_start = 0, 0
    first = 0
    for last in range(len(places)):
        while places[last][1] - places[first][0] > PASSAGE_CHARACTERS // 2:
            first += 1
        different = len({word for _, _, word in places[first : last + 1]})
        if different > best:
            best, best_start = different, places[first][0]
    return best_start
