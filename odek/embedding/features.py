"""What a text is about, as a list of features: the words that a projection counts. Pure.

The result is part of what the fingerprint of the projection promises: a change here
needs a new version there.
"""

import re
import unicodedata
from functools import lru_cache

__all__ = ["STOP_WORDS", "stem", "words"]

# Scripts that write words without blanks between them: Thai to Lao, Myanmar, Khmer, kana, Han, Hangul.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
# A run of an unspaced script; or a word, which inner marks hold together: v1.2, snake_case, a/b, it's.
# Marks that combine are part of the letter before them, in Devanagari as in Arabic.
_M = (
    "\u0300-\u036f\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0962\u0963\u0981-\u0983\u09bc-\u09cd"
    "\u0b82\u0bbe-\u0bcd"
)
_LETTER = rf"[^\W{_UNSPACED}]|[{_M}]"
_RUN = re.compile(rf"[{_UNSPACED}]+|(?:{_LETTER})+(?:['\u2019._/:@+-]+(?:{_LETTER})+)*[+#]*")
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+\Z")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")

_STOPPED = """
a about after again all also am an and any are as at be because been before being both but by can could
did do does doing done each for from further get gets got had has have having he her here hers him his
how i if in into is it its itself just like made make may me might more most much must my myself of on
once one only or other our out over own same she should so some such than that the their them then there
these they this those through to too under up upon us very via was we were what when where which while
who whom why will with would you your yours
"""

STOP_WORDS = frozenset(_STOPPED.split())
"""English words that carry little: they count for less, because nothing is fitted that could find out."""


def words(text: str) -> list[str]:
    """Return the words of ``text`` in order, folded and stemmed.

    An identifier, path or version yields itself and then its parts; a run of a script
    without blanks yields its pairs of characters.
    """
    found: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text)):
        found += _features(run)
    return found


@lru_cache(maxsize=16_384)  # some megabytes; the words of a store repeat
def _features(run: str) -> tuple[str, ...]:
    folded = run.casefold()
    if _UNSPACED_RUN.match(run):
        pairs = tuple(folded[at : at + 2] for at in range(len(folded) - 1))
        return pairs or (folded,)
    if folded.isalpha():
        parts = _PART.findall(run)
        if len(parts) < 2:
            return (stem(folded),)
        return (folded, *(stem(part.casefold()) for part in parts))
    if folded.replace("\u2019", "'").endswith("'s"):
        return (stem(folded[:-2]),)
    parts = [part.casefold() for part in _PART.findall(run)]
    if len(parts) < 2:
        return (folded,)
    return (folded, *(stem(part) for part in parts))


# What an ending becomes, longest first.
_ENDINGS = {
    **dict.fromkeys(("ments", "ment", "ations", "ation", "ingly", "edly", "ings", "ing"), ""),
    "ational": "ate",
    "ization": "ize",
    "fulness": "ful",
    "iveness": "ive",
    "ies": "y",
    "ied": "y",
    **dict.fromkeys(("ers", "er", "ed", "es", "ly", "s"), ""),
}
_SUFFIXES = tuple(sorted(_ENDINGS, key=len, reverse=True))


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return ``word`` without an English ending, if four letters remain; crude, and stable for ever."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    for ending in _SUFFIXES:
        if word.endswith(ending) and not (ending == "s" and word.endswith(("ss", "us", "is"))):
            base = word[: -len(ending)] + _ENDINGS[ending]
            if len(base) >= (3 if ending in {"s", "es", "ing", "ed"} else 4):
                word = base
                break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word
