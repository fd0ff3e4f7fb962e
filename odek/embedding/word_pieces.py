"""Words cut into the pieces of a fixed vocabulary, by byte-pair encoding. Pure.

The vocabulary is ordered as it was learned: of all pairs of neighbours that are a piece
together the one with the smallest number is joined first. Pieces never reach over a
blank, so words are cut one by one, and remembered.
"""

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise

__all__ = ["WordPieces"]

# What begins a word in the vocabulary.
_BLANK = "\u2581"

# Cutting takes the square of a word's length. Longer runs, of a script without blanks or of no
# language, are cut here first.
_MAX_CHARACTERS = 64

_REMEMBERED = 32_768  # some megabytes; the words of a store repeat


class WordPieces:
    """Cuts texts by ``vocabulary``, which gives each piece its number."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._pieces = lru_cache(_REMEMBERED)(self._cut)

    def pieces_of(self, text: str) -> set[int]:
        """Return the numbers of the pieces in ``text``; characters that are in no piece are left out."""
        found: set[int] = set()
        for word in text.split():
            if len(word) < _MAX_CHARACTERS:
                found.update(self._pieces(_BLANK + word))
            else:
                run = _BLANK + word
                for at in range(0, len(run), _MAX_CHARACTERS):
                    found.update(self._pieces(run[at : at + _MAX_CHARACTERS]))
        return found

    def _cut(self, word: str) -> tuple[int, ...]:
        number_of = self._vocabulary.get
        parts = list(word)
        while len(parts) > 1:
            joined = (number_of(left + right) for left, right in pairwise(parts))
            numbered = [(number, at) for at, number in enumerate(joined) if number is not None]
            if not numbered:
                break
            _, at = min(numbered)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return tuple(number for part in parts if (number := number_of(part)) is not None)
