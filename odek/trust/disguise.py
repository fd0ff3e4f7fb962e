"""Text seen through its disguises: look-alike letters, invisible characters, marks, encodings.

Folding is for comparison only; what is stored and shown is the text as it was.
"""

import re
import unicodedata
from functools import lru_cache
from pathlib import Path

__all__ = ["fold", "fold_mapped", "is_invisible", "latin"]


# Letters of other scripts that people take for Latin ones.
@lru_cache(maxsize=1)
def _confusable() -> dict[int, str]:
    source = Path(__file__).with_name("confusables.txt").read_text(encoding="utf-8").partition("\n")[2]
    return str.maketrans({pair[0]: pair[1] for pair in source.split()})


def latin(text: str) -> str:
    """Return ``text`` with letters of other scripts turned into the Latin ones that they look like."""
    return text.translate(_confusable())


_DEFAULT_IGNORABLE = frozenset(
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u3164\uffa0\u2800"
)


# Marks laid over letters; the vowel signs of other scripts are letters there.
_OVERLAY = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]")


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


def fold(text: str, *, scripts: bool = True) -> str:
    """Return ``text`` as it reads: compatibility forms, marks and invisible characters removed.

    ``scripts`` also turns look-alike letters of other scripts into Latin ones. Case is kept.
    """
    return text if text.isascii() else fold_mapped(text, scripts=scripts)[0]


def fold_mapped(text: str, *, scripts: bool = True) -> tuple[str, list[int]]:
    """Return the folded text, and for each of its characters the position it came from."""
    out: list[str] = []
    positions: list[int] = []
    for position, char in enumerate(text):
        folded = char if " " <= char < "\x7f" else _folded(char, scripts)
        out.append(folded)
        positions.extend([position] * len(folded))
    return "".join(out), positions


@lru_cache(maxsize=16384)
def _folded(char: str, scripts: bool) -> str:  # noqa: FBT001 - a cache takes no keywords cheaply
    if char in "\n\t\r":
        return char
    if is_invisible(char):
        return ""
    kept = "".join(part for part in unicodedata.normalize("NFKD", char) if not _OVERLAY.match(part))
    folded = unicodedata.normalize("NFC", kept)
    return latin(folded) if scripts else folded
