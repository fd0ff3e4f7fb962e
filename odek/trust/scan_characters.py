"""Characters that a text for the memory may not hold: those that nobody sees, and look-alikes inside a word.

Emoji joined with zero-width joiners, scripts that need joiners, flags and keycaps pass.
"""

import re
import unicodedata
from itertools import pairwise

from odek.trust.disguise import is_invisible, latin
from odek.trust.rejection import Rejection

__all__ = ["find_invisible", "find_mixed_scripts"]

# The three flags made of tag characters that Unicode recommends: England, Scotland, Wales.
_FLAG = re.compile(
    "\U0001f3f4(?:"
    + "|".join("".join(chr(0xE0000 + ord(char)) for char in flag) for flag in ("gbeng", "gbsct", "gbwls"))
    + ")\U000e007f"
)
_JOINER_SCRIPTS = re.compile(
    "[\u0600-\u06ff\u0700-\u074f\u0750-\u077f\u08a0-\u08ff\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1800-\u18af\ufb50-\ufdff\ufe70-\ufefc]"
)
_RIGHT_TO_LEFT = re.compile("[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


def find_invisible(text: str) -> Rejection | None:
    """Return the first character that shows nothing, except where a script or an emoji needs it."""
    if text.isascii() and text.isprintable():
        return None
    suspects = {char for char in set(text) if char == "\r" or (char not in "\n\t" and is_invisible(char))}
    if not suspects:
        return None
    flags = (
        {at for match in _FLAG.finditer(text) for at in range(*match.span())}
        if "\U000e007f" in suspects
        else set()
    )
    for at, char in enumerate(text):
        if char not in suspects or at in flags or _is_needed(text, at):
            continue
        name = unicodedata.name(char, f"U+{ord(char):04X}").lower()
        return Rejection("invisible-character", at, f"holds a character that nobody sees: {name}")
    return None


def _is_needed(text: str, at: int) -> bool:
    char, before, after = text[at], text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    match char:
        case "\r":
            return after == "\n"
        case "\ufeff":
            return at == 0
        case "\u200d":
            return (_is_emoji(before) and _is_emoji(after)) or bool(_JOINER_SCRIPTS.match(before))
        case "\u200c":
            # Also at the end of a word: Kurdish writes its heh so.
            ends = not (after.isalpha() or is_invisible(after or " "))
            return bool(_JOINER_SCRIPTS.match(before)) and (ends or bool(_JOINER_SCRIPTS.match(after)))
        case "\ufe0e" | "\ufe0f":
            return bool(before) and (_is_symbol(before) or before in "0123456789#*")
        case "\u200e" | "\u200f" | "\u061c":
            return bool(_RIGHT_TO_LEFT.search(text[max(at - 3, 0) : at + 4]))
        case "\u180b" | "\u180c" | "\u180d" | "\u180e":
            return "\u1800" <= before <= "\u18af"
        case _ if 0xE0100 <= ord(char) <= 0xE01EF:
            # One variation of an ideograph; a run of selectors carries bytes.
            return bool(before) and unicodedata.name(before, "").startswith("CJK")
    return False


def _is_symbol(char: str) -> bool:
    return bool(char) and unicodedata.category(char) in {"So", "Sk", "Sm", "Po", "Pd"}


def _is_emoji(char: str) -> bool:
    return bool(char) and (unicodedata.category(char) in {"So", "Sk", "Sm"} or char == "\ufe0f")


_WORD = re.compile(r"[^\W\d_]{3,200}")
_ALIEN = re.compile(
    "[\u0370-\u03ff\u0400-\u052f\u0530-\u058f\u13a0-\u13ff\u1d00-\u1d7f\u2c80-\u2cff\ua4d0-\ua4ff\uab70-\uabbf]"
)
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")


def find_mixed_scripts(text: str) -> Rejection | None:
    """Return the first word whose letters only look as if they were of one script."""
    if text.isascii() or not (_ALIEN.search(text) and _LATIN.search(text)):
        return None
    for match in _WORD.finditer(text):
        word = match[0]
        if word.isascii() or not (_ALIEN.search(word) and _LATIN.search(word)):
            continue
        kinds = ["l" if _LATIN.match(char) else "a" if latin(char) != char else "n" for char in word]
        if "a" not in kinds or "n" in kinds:
            continue  # no look-alike, or letters that look foreign to anybody: a unit, an inflected name
        switches = sum(left != right for left, right in pairwise(kinds))
        if switches > 1 or kinds[0] == "a" or len(word) - kinds.index("a") <= 1:
            reason = f"mixes alphabets that look alike inside one word: {word!r}"
            return Rejection("mixed-scripts", match.start(), reason)
    return None
