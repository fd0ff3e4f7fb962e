"""Text seen through its disguises: look-alike letters, invisible characters, marks laid over letters.

Folding is for comparison only; what is stored and shown is the text as it was.
"""

import unicodedata
from functools import lru_cache
from pathlib import Path

from odek.patterns import late_pattern

__all__ = ["fold", "fold_mapped", "is_invisible", "latin", "position_of"]


# Letters of other scripts that people take for Latin ones.
@lru_cache(maxsize=1)
def _confusable() -> dict[int, str]:
    source = Path(__file__).with_name("confusables.txt").read_text(encoding="utf-8").partition("\n")[2]
    table = str.maketrans({pair[0]: pair[1] for pair in source.split()})
    for number in range(26):  # white on black, in a circle or a square; the letters that flags are made of
        for first in (0x1F150, 0x1F170, 0x1F1E6):
            table[first + number] = chr(97 + number)
    return table


def latin(text: str) -> str:
    """Return ``text`` with letters of other scripts turned into the Latin ones that they look like."""
    return text.translate(_confusable())


_DEFAULT_IGNORABLE = frozenset(
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u3164\uffa0\u2800"
)


# Marks laid over letters; the vowel signs of other scripts are letters there.
_OVERLAY = late_pattern("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]")


@lru_cache(maxsize=4096)
def is_invisible(char: str) -> bool:
    """Whether a character shows nothing, or changes only how others are shown."""
    code = ord(char)
    return (
        char in _DEFAULT_IGNORABLE
        or 0xFE00 <= code <= 0xFE0F
        or 0xE0000 <= code <= 0xE0FFF
        or (unicodedata.category(char) in {"Cf", "Cc", "Co", "Cn"} and char not in "\n\t\r")
    )


class _Folding(dict[int, str]):
    """A table for ``str.translate`` that is filled with what it meets."""

    LIMIT = 16384  # characters: far more than a text has, and no way to fill the memory

    def __init__(self, *, scripts: bool) -> None:
        super().__init__()
        self._scripts = scripts

    def __missing__(self, code: int) -> str:
        if len(self) >= self.LIMIT:
            self.clear()
        self[code] = folded = _folded(chr(code), scripts=self._scripts)
        return folded


_FOLDINGS = {scripts: _Folding(scripts=scripts) for scripts in (False, True)}


def fold(text: str, *, scripts: bool = True) -> str:
    """Return ``text`` as it reads: compatibility forms, marks and invisible characters removed.

    ``scripts`` also turns look-alike letters of other scripts into Latin ones. Case is kept.
    """
    return text if text.isascii() else text.translate(_FOLDINGS[scripts])


def fold_mapped(text: str, *, scripts: bool = True) -> tuple[str, list[int]]:
    """Return the folded text, and for each of its characters the position it came from."""
    folding = _FOLDINGS[scripts]
    pieces = [char if " " <= char < "\x7f" else folding[ord(char)] for char in text]
    positions = [at for at, piece in enumerate(pieces) for _ in piece]
    return "".join(pieces), positions


def position_of(at: int, text: str, *, scripts: bool = True) -> int:
    """Return the position in ``text`` of what stands at ``at`` in its folded form."""
    if text.isascii():
        return at
    positions = fold_mapped(text, scripts=scripts)[1]
    return positions[at] if at < len(positions) else len(text)


def _folded(char: str, *, scripts: bool) -> str:
    if char in "\n\t\r" or " " <= char < "\x7f":
        return char
    if is_invisible(char):
        return ""
    kept = "".join(part for part in unicodedata.normalize("NFKD", char) if not _OVERLAY.match(part))
    folded = unicodedata.normalize("NFC", kept)
    return latin(folded) if scripts else folded
