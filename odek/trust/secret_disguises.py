"""A text as it reads behind thin disguises of a credential, with the way back to where that stands.

Disguises are look-alike letters, invisible characters, a break in the middle, base64,
hexadecimal and reversal.
"""

import base64
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

from odek.patterns import late_pattern
from odek.trust.disguise import fold, fold_mapped

__all__ = ["mixes_digits_and_letters", "views"]

Place = Callable[[int, int], tuple[int, int]]
"""From the start and end of something in a view to those in the text."""

_BASE64 = late_pattern(r"[A-Za-z0-9+/_-]{24,4096}+={0,2}")
_HEX = late_pattern(r"(?:[0-9a-fA-F]{2}){16,2048}+")
_GAP = late_pattern(r"[ \t\r\n]++")
_TOKEN = late_pattern(r"[\w:=\"'-]+")
_HALF_CHARS = 8


def views(text: str, *, may_be_broken: bool) -> Iterator[tuple[str, Place]]:
    """Yield ``text`` as it may be meant, and for each view where its parts stand.

    Args:
        text: Any text; the cost is several passes over it.
        may_be_broken: Whether to close gaps inside of what may be one token.
    """
    if not text.isascii():
        folded = fold(text)
        if folded != text:
            yield folded, _unfolded(text)
    if may_be_broken:
        yield _joined(text)
    yield text[::-1], lambda start, end: (len(text) - end, len(text) - start)
    for match in _BASE64.finditer(text):
        yield _decoded(match[0]), _whole(match)
    for match in _HEX.finditer(text):
        yield bytes.fromhex(match[0]).decode("utf-8", "replace"), _whole(match)


def _unfolded(text: str) -> Place:
    """Return the way back from the folded ``text``, which is only looked up when something is found there."""
    positions: list[int] = []

    def place(start: int, end: int) -> tuple[int, int]:
        if not positions:
            positions.extend(fold_mapped(text)[1])
        return positions[start], positions[end - 1] + 1

    return place


def _whole(match: re.Match[str]) -> Place:
    return lambda _start, _end: match.span()


def _decoded(blob: str) -> str:
    standard = blob.rstrip("=").replace("-", "+").replace("_", "/")
    standard = standard[: len(standard) - (len(standard) % 4 == 1)]
    return base64.b64decode(standard + "=" * (-len(standard) % 4)).decode("utf-8", "replace")


def _joined(text: str) -> tuple[str, Place]:
    """Close the gaps inside what may be one token: digits and letters on both sides."""
    pieces: list[str] = []
    starts_there: list[int] = []
    starts_here: list[int] = []
    at = length = 0
    for gap in (*_GAP.finditer(text), None):
        piece_end = gap.start() if gap is not None else len(text)
        piece_start = at
        if gap is not None:
            right = _TOKEN.match(text, gap.end())
            left = text[at:piece_end]
            at = gap.end()
            if gap[0].count("\n") > 1 or right is None or not _may_be_one(left, right[0]):
                piece_end = gap.end()  # the gap stays
        pieces.append(text[piece_start:piece_end])
        starts_there.append(piece_start)
        starts_here.append(length)
        length += piece_end - piece_start

    def place(start: int, end: int) -> tuple[int, int]:
        return _origin(start), _origin(end - 1) + 1

    def _origin(position: int) -> int:
        index = bisect_right(starts_here, position) - 1
        return starts_there[index] + position - starts_here[index]

    return "".join(pieces), place


def _may_be_one(left: str, right: str) -> bool:
    return bool(
        len(left) >= _HALF_CHARS
        and len(right) >= _HALF_CHARS
        and _TOKEN.fullmatch(left)
        and mixes_digits_and_letters(left)
        and mixes_digits_and_letters(right)
    )


def mixes_digits_and_letters(token: str) -> bool:
    """Whether both are in it, as in what was drawn at random."""
    return any(char.isdigit() for char in token) and any(char.isalpha() for char in token)
