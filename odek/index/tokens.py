"""Text → terms: what is indexed and what is asked for. Pure.

A word yields its stem. An identifier, path, version or number sign yields itself and
its parts. A run of a script without blanks yields pairs of characters (threes in Thai
and its neighbours), also where it is glued to ASCII. The terms are part of what the
fingerprint of an index promises: a change here needs a new ``VERSION``.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

from odek.index.stemming import is_stop_word, language_of, stem, without_accents

__all__ = [
    "GRAM_SIGN",
    "PAIR_DISTANCE",
    "VERSION",
    "Run",
    "Text",
    "index_terms",
    "matched_spans",
    "pairs_of",
    "read",
]

VERSION = 3
"""Of all that decides which terms a text has."""

MAX_TERM_CHARACTERS = 64
"""A longer one is a blob that nobody types; its beginning finds it."""

GRAM_CHARACTERS = 4
"""Measured against 3 and 5: docs/explanation/recall.md."""

PAIR_DISTANCE = 4
"""Two telling words at most so far apart make a pair. 2 gained less, 6 nothing more."""

GRAM_SIGN: Final = "^"
"""What a character n-gram begins with. No word holds it, nor the bar between the words of a pair."""

PART_SIGN: Final = "$"
"""What a part of a compound word begins with; no word does."""

# Whose nouns are written together: a long word is found by its beginnings and its ends.
_COMPOUNDING = frozenset({"german", "dutch", "swedish"})
_COMPOUND_CHARACTERS = 9
_PART_CHARACTERS = 4

# A shorter word's beginning says nothing that the word does not.
_ROOTED_CHARACTERS = 5

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
# The same for ASCII alone, several times as fast; questions mostly are.
_ASCII_RUN = re.compile(r"[#@$]?\w+(?:(?:://|:\\|::|->|[./:@\\'+~-])\w+)*[+#]*", re.ASCII)
_SEPARATORS = re.compile(rf"[^\w{_MARKS}]+|_+")
_CASES = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PLAIN = re.compile(rf"(?:[^\W\d_]|[{_MARKS}])+\Z")
_HASH = re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{8,64}\Z")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)(.*)\Z", re.DOTALL)
# Joiners, Arabic vowels and the Arabic stretching line change how a word looks, not which it is.
_INVISIBLE = dict.fromkeys([0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x0640, *range(0x064B, 0x0653)])


class Run(NamedTuple):
    """The terms of what stands together in a text: a word, a name, or characters of a script without blanks.

    ``stopped`` tells that it says little. The ``grams`` find what is spelt or inflected otherwise;
    ``root`` is the one that begins a plain word of some length, or "". The ``parts`` are what a compound
    word may be made of; ``as_part`` finds a plain word in one.
    """

    words: tuple[str, ...]
    grams: tuple[str, ...]
    stopped: bool
    root: str = ""
    parts: tuple[str, ...] = ()
    as_part: str = ""


class Text(NamedTuple):
    """A text as ``runs`` in order; ``written`` has each of them as it stands there."""

    runs: list[Run]
    written: list[str]
    language: str


def read(text: str, language: str | None = None) -> Text:
    """Return the runs of ``text``; the language of its Latin words is found out unless given."""
    if text.isascii():
        written = _ASCII_RUN.findall(text)
        if language is None:
            language = language_of([run.lower() for run in written])
        return Text([_run(run, "word", language) for run in written], written, language)
    found = [(match[0], match.lastgroup or "") for match in _RUN.finditer(_normalised(text))]
    if language is None:
        language = language_of([run.lower() for run, kind in found if kind == "word"])
    return Text([_run(run, kind, language) for run, kind in found], [run for run, _ in found], language)


def index_terms(text: str) -> list[str]:
    """Return all terms by which ``text`` is found, with repeats: words, pairs, n-grams and parts."""
    runs = read(text).runs
    words = chain.from_iterable(run.words for run in runs)
    grams = chain.from_iterable(run.grams for run in runs if not run.stopped)
    parts = chain.from_iterable(run.parts for run in runs)
    return [*words, *pairs_of(runs), *grams, *parts]


def pairs_of(runs: Sequence[Run]) -> list[str]:
    """Return the unordered pairs of telling runs that stand close to each other, each once."""
    telling = [run.words[0] for run in runs if not run.stopped]
    pairs = [
        f"{word}|{other}" if word < other else f"{other}|{word}"
        for distance in range(1, PAIR_DISTANCE + 1)
        for word, other in zip(telling, telling[distance:], strict=False)
        if word != other
    ]
    return list(dict.fromkeys(pairs))


def _normalised(text: str) -> str:
    """Return ``text`` as terms are taken from it: compatible forms made one, invisible characters gone."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_INVISIBLE)


@lru_cache(maxsize=32_768)  # some megabytes; the words of a store repeat
def _run(written: str, kind: str, language: str) -> Run:
    folded = written.casefold()
    if kind != "word":
        found = tuple(_ngrams(folded, 2 if kind == "pairs" else 3))
        single = tuple(folded) if kind == "pairs" and len(folded) > 1 else ()
        return Run((*found, *single), (), stopped=False)
    folded = folded.replace("\u2019", "'")
    if _PLAIN.match(folded) and len(_words_of(written)) < 2:
        stopped = is_stop_word(folded, language)
        rooted = len(folded) >= _ROOTED_CHARACTERS and folded.isascii()
        root = GRAM_SIGN + folded[:GRAM_CHARACTERS] if rooted else ""
        word = stem(folded, language)[:MAX_TERM_CHARACTERS]
        as_part = PART_SIGN + word if len(word) >= _PART_CHARACTERS else ""
        return Run((word,), _grams(folded), stopped, root, _parts(word, language), as_part)
    if "'" in folded:
        return _contracted(folded, language)
    return _named(written, folded, language)


def _contracted(folded: str, language: str) -> Run:
    """Return the terms of: it's, Caroline's, l'eau, d'accord."""
    parts = [part for part in folded.split("'") if part]
    if parts and len(parts[-1]) <= 2 and parts[-1].isalpha():
        parts = parts[:-1] or parts
    runs = [_run(part, "word", language) for part in parts]
    return Run(
        tuple(chain.from_iterable(run.words for run in runs)),
        tuple(chain.from_iterable(run.grams for run in runs)),
        all(run.stopped for run in runs),
        runs[0].root if len(runs) == 1 else "",
    )


def _named(written: str, folded: str, language: str) -> Run:
    """Return the terms of an identifier, path, version, number or address: the whole and its parts."""
    terms = [folded.strip("#@$") if folded[0] in "@$" else folded]
    segments = [segment for segment in re.split(r"[/\\:@~]|->", written.strip("#@$+")) if segment]
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
            cases = _words_of(piece)
            if len(cases) > 1:
                terms.append(piece.casefold())
            terms += [stem(part.casefold(), language) for part in cases]
    unique = tuple(dict.fromkeys(term[:MAX_TERM_CHARACTERS] for term in terms if term))
    grams = chain.from_iterable(_grams(term) for term in unique[1:] or unique)
    return Run(unique, tuple(grams), stopped=False)


def _words_of(name: str) -> list[str]:
    """Return the words of getUserName. Names in other alphabets have none inside: ÉTÉ is a word."""
    return _CASES.findall(name) if name.isascii() else [name]


def _parts(word: str, language: str) -> tuple[str, ...]:
    if language not in _COMPOUNDING or len(word) < _COMPOUND_CHARACTERS:
        return ()
    cuts = range(_PART_CHARACTERS, len(word) - _PART_CHARACTERS + 1)
    return tuple(dict.fromkeys(PART_SIGN + part for cut in cuts for part in (word[:cut], word[cut:])))


def _grams(folded: str) -> tuple[str, ...]:
    """Return the character n-grams of a word in lower case, its ends marked."""
    marked = f"_{without_accents(folded)[:MAX_TERM_CHARACTERS]}_"
    return tuple(GRAM_SIGN + gram for gram in _ngrams(marked, GRAM_CHARACTERS))


def _ngrams(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(len(text) - size + 1)] or [text]


def matched_spans(text: str, query: str) -> list[tuple[int, int]]:
    """Return where in ``text`` a telling term of ``query`` stands, in order, without overlaps.

    In a query of small words alone these are what tells.
    """
    asked = read(query)
    telling = {word for run in asked.runs if not run.stopped for word in run.words}
    wanted = telling or {word for run in asked.runs for word in run.words}
    spans: list[tuple[int, int]] = []
    for match in _RUN.finditer(text):
        kind = match.lastgroup or ""
        if kind != "word":
            spans += _spans_within(text, match, wanted, 2 if kind == "pairs" else 3)
        elif (run := _normalised(match[0])) and wanted.intersection(_run(run, kind, asked.language).words):
            spans.append(match.span())
    return spans


def _spans_within(
    text: str, match: re.Match[str], wanted: Collection[str], size: int
) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for at in range(match.start(), max(match.end() - size, match.start()) + 1):
        if text[at : at + size].casefold() in wanted:
            start = spans.pop()[0] if spans and spans[-1][1] >= at else at
            spans.append((start, at + size))
    return spans
