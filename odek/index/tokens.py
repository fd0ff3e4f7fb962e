"""Text → terms: what is indexed and what is asked for. Pure.

A word yields its stem. An identifier, path, version or number sign yields itself and
its parts. A run of a script without blanks yields pairs of characters (threes in Thai
and its neighbours), also where it is glued to ASCII. The terms are part of what the
fingerprint of an index promises: a change here needs a new ``VERSION``.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from odek.index.stemming import is_stop_word, language_of, stem, without_accents

__all__ = ["PAIR_DISTANCE", "VERSION", "Terms", "analyse", "grams_of", "matched_spans", "pairs_of"]

VERSION = 1
"""Of all that decides which terms a text has."""

MAX_TERM_CHARACTERS = 64
"""A longer one is a blob that nobody types; its beginning finds it."""

GRAM_CHARACTERS = 4
"""Measured against 3 and 5: docs/explanation/recall.md."""

PAIR_DISTANCE = 4
"""Two telling words at most so far apart make a pair. 2 gained less, 6 nothing more."""

# Han, kana, Bopomofo and Hangul: two characters make a word. Thai, Lao, Myanmar, Khmer: three say as much.
_PAIRS = (
    "\u1100-\u11ff\u3005-\u3007\u3040-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_TRIPLES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
# Marks that combine belong to the letter before them, which \w does not know.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0971-\u0dff\u0f71-\u0f84"
    "\u200c\u200d"
)
_LETTER = rf"(?:[^\W{_PAIRS}{_TRIPLES}]|[{_MARKS}])"
# What may hold an identifier, a path, a version or an address together.
_RUN = re.compile(
    rf"(?P<pairs>[{_PAIRS}]+)|(?P<triples>[{_TRIPLES}]+)"
    rf"|(?P<word>[#@$]?{_LETTER}+(?:(?:://|:\\|::|->|[./:@\\'\u2019+~-]){_LETTER}+)*[+#]*)"
)
_SEPARATORS = re.compile(rf"[^\w{_MARKS}]+|_+")
_CASES = re.compile(rf"[A-Z]+(?![a-z])|[A-Z]?(?:[^\W\dA-Z_]|[{_MARKS}])+|\d+")
_PLAIN = re.compile(rf"(?:[^\W\d_]|[{_MARKS}])+\Z")
_HASH = re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{8,64}\Z")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)(.*)\Z", re.DOTALL)
# Joiners, Arabic vowels and the Arabic stretching line change how a word looks, not which it is.
_INVISIBLE = dict.fromkeys([0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x0640, *range(0x064B, 0x0653)])


class Terms(NamedTuple):
    """The terms of a text.

    ``words`` in order, with repeats; ``stopped`` those of them that say little;
    ``grams`` the character n-grams, with repeats; ``language`` of its Latin words.
    """

    words: list[str]
    stopped: set[str]
    grams: list[str]
    language: str


def normalised(text: str) -> str:
    """Return ``text`` as terms are taken from it: compatible forms made one, invisible characters gone."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_INVISIBLE)


def analyse(text: str, language: str | None = None) -> Terms:
    """Return the terms of ``text``; its language is found out unless given."""
    runs = [(match[0], match.lastgroup or "") for match in _RUN.finditer(normalised(text))]
    if language is None:
        language = language_of([run.lower() for run, kind in runs if kind == "word"])
    words: list[str] = []
    grams: list[str] = []
    stopped: set[str] = set()
    for run, kind in runs:
        terms, gram_terms, is_stopped = _terms(run, kind, language)
        words += terms
        if is_stopped:
            stopped.update(terms)
        else:
            grams += gram_terms
    return Terms(words, stopped, grams, language)


@lru_cache(maxsize=32_768)  # some megabytes; the words of a store repeat
def _terms(run: str, kind: str, language: str) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Return the terms of a run, its n-grams, and whether it says little."""
    folded = run.casefold()
    if kind != "word":
        found = _ngrams(folded, 2 if kind == "pairs" else 3)
        single = tuple(folded) if kind == "pairs" and len(folded) > 1 else ()
        return (*found, *single), found, False
    folded = folded.replace("\u2019", "'")
    if _PLAIN.match(folded) and len(_CASES.findall(run)) < 2:
        return (
            (stem(folded, language)[:MAX_TERM_CHARACTERS],),
            grams_of(folded),
            is_stop_word(folded, language),
        )
    return _terms_of_identifier(run, folded, language)


def _terms_of_identifier(
    run: str, folded: str, language: str
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    if "'" in folded:  # it's, Caroline's, l'eau, d'accord
        parts = [part for part in folded.split("'") if part]
        if parts and len(parts[-1]) <= 2 and parts[-1].isalpha():
            parts = parts[:-1] or parts
        kept = [_terms(part, "word", language) for part in parts]
        return (
            tuple(chain.from_iterable(terms for terms, _, _ in kept)),
            tuple(chain.from_iterable(grams for _, grams, _ in kept)),
            all(is_stopped for _, _, is_stopped in kept),
        )
    terms = [folded.strip("#@$") if folded[0] in "@$" else folded]
    segments = [segment for segment in re.split(r"[/\\:@~]|->", run.strip("#@$+")) if segment]
    for segment in segments:
        low = segment.casefold()
        if len(segments) > 1:
            terms.append(low)
        if made := _VERSION.match(low):
            terms += (made[1], ".".join(made[1].split(".")[:2]))
            continue
        if _HASH.match(low):
            terms.append(low[:7])
            continue
        for piece in _SEPARATORS.split(segment):
            cases = _CASES.findall(piece)
            if len(cases) > 1:
                terms.append(piece.casefold())
            terms += [stem(part.casefold(), language) for part in cases]
    unique = tuple(dict.fromkeys(term[:MAX_TERM_CHARACTERS] for term in terms if term))
    return unique, tuple(chain.from_iterable(grams_of(term) for term in unique[1:] or unique)), False


def grams_of(folded: str) -> tuple[str, ...]:
    """Return the character n-grams of a word in lower case, its ends marked."""
    return _ngrams(f"_{without_accents(folded)[:MAX_TERM_CHARACTERS]}_", GRAM_CHARACTERS)


def _ngrams(text: str, size: int) -> tuple[str, ...]:
    return tuple(text[at : at + size] for at in range(len(text) - size + 1)) or (text,)


def pairs_of(terms: Terms) -> list[str]:
    """Return the unordered pairs of telling words that stand close to each other, each once."""
    telling = [word for word in terms.words if word not in terms.stopped]
    pairs: dict[str, None] = {}
    for at, word in enumerate(telling):
        for other in telling[at + 1 : at + 1 + PAIR_DISTANCE]:
            if other != word:
                pairs[f"{word}|{other}" if word < other else f"{other}|{word}"] = None
    return list(pairs)


def matched_spans(text: str, query: str) -> list[tuple[int, int]]:
    """Return where in ``text`` a telling term of ``query`` stands, in order, without overlaps."""
    asked = analyse(query)
    wanted = set(asked.words) - asked.stopped
    spans: list[tuple[int, int]] = []
    for match in _RUN.finditer(text):
        kind = match.lastgroup or ""
        run = normalised(match[0])
        if not run:
            continue
        if kind == "word":
            terms, _, _ = _terms(run, kind, asked.language)
            if wanted.intersection(terms):
                spans.append(match.span())
            continue
        size = 2 if kind == "pairs" else 3
        for at in range(match.start(), max(match.end() - size, match.start()) + 1):
            if text[at : at + size].casefold() in wanted:
                if spans and spans[-1][1] >= at:
                    spans[-1] = (spans[-1][0], at + size)
                else:
                    spans.append((at, at + size))
    return spans
