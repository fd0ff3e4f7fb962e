"""The part of a text that answers a question, and the words in it that matched. Pure."""

from collections.abc import Sequence
from functools import lru_cache

from odek.index.query import ask
from odek.index.tokens import matched_spans
from odek.text import clip_bytes

__all__ = ["marked", "quotation", "snippet"]

QUOTATION_BYTES = 600
"""Of what was said in a session, beside its summary: a few messages. No measurement behind it."""

SNIPPET_CHARACTERS = 240
"""Around the densest match: enough to tell what it is about."""

# Shorter beginnings of words are in most lines.
_TELLING_CHARACTERS = 3


def quotation(passage: str, query: str) -> str:
    """Return the lines of ``passage`` around the one that shares most words with ``query``."""
    lines = [line for line in passage.splitlines() if line.strip()]
    if not lines:
        return ""
    wanted = _wanted(query)
    folded = [line.casefold() for line in lines]
    sizes = [len(line.encode()) for line in lines]
    # Stems are beginnings of words as a rule, so that looking for them is enough to find the place.
    shared = [sum(map(line.__contains__, wanted)) for line in folded]
    first = last = shared.index(max(shared))
    room = QUOTATION_BYTES - sizes[first]
    if room < 0:
        return _around(lines[first], folded[first], wanted)
    while True:
        around = [at for at in (last + 1, first - 1) if 0 <= at < len(lines) and sizes[at] < room]
        if not around:
            break
        at = max(around, key=shared.__getitem__)
        first, last = min(first, at), max(last, at)
        room -= sizes[at] + 1
    return clip_bytes("\n".join(lines[first : last + 1]), QUOTATION_BYTES)


@lru_cache(maxsize=8)  # a turn quotes three episodes about one question
def _wanted(query: str) -> frozenset[str]:
    words = {word for run in ask(query).runs for word in run.words}
    return frozenset(word for word in words if len(word) >= _TELLING_CHARACTERS)


def _around(line: str, folded: str, wanted: frozenset[str]) -> str:
    """Return the part of a long line that begins a little before the first of the words."""
    places = [at for word in wanted if (at := folded.find(word)) >= 0]
    begin = max(min(places, default=0) - QUOTATION_BYTES // 4, 0)
    begin = line.find(" ", begin) + 1 if begin else 0
    return f"{'…' if begin else ''}{clip_bytes(line[begin:], QUOTATION_BYTES)}"


def snippet(text: str, query: str) -> str:
    """Return on one line the stretch of ``text`` with most different words of ``query``."""
    flat = " ".join(text.split())
    start = _densest(flat, matched_spans(flat, query))
    begin = max(start - SNIPPET_CHARACTERS // 4, 0)
    while begin > 0 and not flat[begin - 1].isspace() and start - begin < SNIPPET_CHARACTERS // 2:
        begin -= 1
    end = min(begin + SNIPPET_CHARACTERS, len(flat))
    return f"{'…' if begin else ''}{flat[begin:end].strip()}{'…' if end < len(flat) else ''}"


def marked(text: str, query: str, before: str = "**", after: str = "**") -> str:
    """Return ``text`` with the words of ``query`` marked."""
    parts: list[str] = []
    at = 0
    for first, last in matched_spans(text, query):
        parts += [text[at:first], before, text[first:last], after]
        at = last
    return "".join([*parts, text[at:]])


def _densest(text: str, spans: Sequence[tuple[int, int]]) -> int:
    """Return where the stretch of snippet length begins that holds most different words."""
    best = best_start = first = 0
    for last in range(len(spans)):
        while spans[last][1] - spans[first][0] > SNIPPET_CHARACTERS // 2:
            first += 1
        different = len({text[start:end].casefold() for start, end in spans[first : last + 1]})
        if different > best:
            best, best_start = different, spans[first][0]
    return best_start
