"""A question as weighted terms. Pure; the weights are measured in docs/explanation/recall.md."""

import math
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from odek.index.document import Kind
from odek.index.rarity import rarities_of
from odek.index.stemming import DEFAULT_LANGUAGE, language_of
from odek.index.tokens import Run, pairs_of, read
from odek.index.words import FILLERS
from odek.text import without_surrogates

__all__ = ["RELEVANCE_OF_KIND", "Asked", "Plan", "ask", "plan"]

RELEVANCE_OF_KIND: dict[Kind, float] = {"episode": 1.0, "atom": 1.2, "session": 1.0}
"""A short statement holds few of a question's words, and strangers share fewer with it: it is as relevant at
a lower score. Measured: docs/explanation/recall.md."""

# Against 1 for a telling word. Nothing and .5 both find less.
_STOP_WEIGHT = 0.25
# A name says whom a question is about.
_NAME_WEIGHT = 1.75
_PAIR_WEIGHT = 0.3
# A word that the texts hardly know is asked for by its character n-grams, about five of them: they find
# misspelt, inflected and compound words. A known one also by the first of them: decision finds decided.
_GRAM_WEIGHT = 0.1
_ROOT_WEIGHT = 0.15
_UNKNOWN_FREQUENCY = 2
# Of a word that is known as a part of others alone. No measurement behind it.
_PART_WEIGHT = 0.8

# A term of less than full weight is left out when it adds less than so much: it is in nearly all texts, so
# that it costs most and tells least.
_LEAST_SHARE = 0.2
# More terms are in a pasted page alone; the most telling ones find it.
_MAX_TERMS = 128

# Among hundreds of thousands of texts the terms that so many have take most of the time and say least. They
# are looked up where the others were found. Together they count no more than so much, and than such a share
# of all terms, so that it can nearly always be told that what has little but them is not among the best.
_FREQUENT_TEXTS = 10_000
_MOST_ASIDE = 4.0
_MOST_ASIDE_SHARE = 0.2
# A question is read so far: a pasted page asks with what it begins, and time stays bounded.
_READ_CHARACTERS = 2_000

# In an index of a few texts every word is common, and says nothing of how telling it is. So relevance is
# computed as if there were so many texts more, of other things.
_OTHER_TEXTS = 1_000


class Asked(msgspec.Struct, frozen=True):
    """A question: its ``words`` with their weights, its ``pairs``, and its telling ``runs``.

    ``small`` are those of the words that say little in some language, perhaps not in that of the question.
    ``is_telling`` is false when it holds nothing but such words and pleasantries.
    """

    words: dict[str, float]
    small: set[str]
    pairs: list[str]
    runs: list[Run]
    is_telling: bool


class Plan(msgspec.Struct, frozen=True):
    """What to ask of an index: terms with what each counts, weight times rarity.

    Those of them that are ``aside`` are in very many texts, and count too little to find much by
    themselves. A score times ``scale`` and the ``RELEVANCE_OF_KIND`` is a relevance.
    """

    terms: list[tuple[str, float]]
    aside: list[tuple[str, float]]
    scale: float


@lru_cache(maxsize=8)  # a turn asks the same of several kinds of text
def ask(query: str) -> Asked:
    """Return ``query`` as terms.

    A question in another language than English also asks for the English forms of its
    words: notes mix languages, and a short question tells little about its own.
    """
    query = without_surrogates(query[:_READ_CHARACTERS])
    text = read(query, language_of(query.lower().split(), evidence_words=1))
    words: dict[str, float] = {}
    small: set[str] = set()
    is_telling = False
    for at, (run, written) in enumerate(zip(text.runs, text.written, strict=True)):
        if run.stopped:
            weight = _STOP_WEIGHT
        else:
            weight = _NAME_WEIGHT if at and written.istitle() and written.isalpha() else 1.0
            if written.casefold() in FILLERS:
                small.update(run.words)
            else:
                is_telling = True
        for word in run.words:
            words.setdefault(word, weight)
    if text.language != DEFAULT_LANGUAGE:
        for run in read(query, DEFAULT_LANGUAGE).runs:
            for word in run.words:
                words.setdefault(word, _STOP_WEIGHT if run.stopped else 1.0)
    telling = list({run.words[0]: run for run in text.runs if not run.stopped}.values())
    return Asked(words, small, pairs_of(text.runs), telling, is_telling)


def plan(asked: Asked, size: int, frequencies: Mapping[str, int]) -> Plan:
    """Return what to ask of ``size`` texts; ``frequencies`` has for every term how many of them have it."""
    rarities = rarities_of(size)
    terms: list[tuple[str, float]] = []
    known: dict[str, int] = {}
    for word, weight in asked.words.items():
        known[word] = times = frequencies[word]
        counts = weight * rarities[times]
        # In a question of small words alone these are all that there is to find.
        if times and (counts >= _LEAST_SHARE or weight >= 1 or not asked.is_telling):
            terms.append((word, counts))
    for term, weight in _beside(asked, known, frequencies).items():
        if (times := frequencies[term]) and (counts := weight * rarities[times]) >= _LEAST_SHARE:
            terms.append((term, counts))
    if len(terms) > _MAX_TERMS:
        terms = sorted(terms, key=lambda term: -term[1])[:_MAX_TERMS]
    scale = _scale(asked, known, size) if asked.is_telling else 0.0
    if size < _FREQUENT_TEXTS:
        return Plan(terms, [], scale)
    return Plan(terms, _aside(terms, frequencies), scale)


def _aside(terms: list[tuple[str, float]], frequencies: Mapping[str, int]) -> list[tuple[str, float]]:
    """Return the terms that most texts have for what they count."""
    most = min(_MOST_ASIDE, _MOST_ASIDE_SHARE * sum(counts for _, counts in terms))
    frequent = [term for term in terms if frequencies[term[0]] >= _FREQUENT_TEXTS]
    aside: list[tuple[str, float]] = []
    for term in sorted(frequent, key=lambda term: term[1] / frequencies[term[0]]):
        most -= term[1]
        if most < 0:
            break
        aside.append(term)
    return aside


def _beside(asked: Asked, known: dict[str, int], frequencies: Mapping[str, int]) -> dict[str, float]:
    """Return the terms beside the words, with their weights.

    A word that is ``known`` as a part of others alone is as frequent as that from here on.
    """
    beside = dict.fromkeys(asked.pairs, _PAIR_WEIGHT)
    for run in asked.runs:
        word = run.words[0]
        if run.as_part and not known[word]:
            beside[run.as_part] = _PART_WEIGHT
            known[word] = frequencies[run.as_part]
        if max([known[word] for word in run.words]) <= _UNKNOWN_FREQUENCY:
            for gram in run.grams:
                beside[gram] = beside.get(gram, 0.0) + _GRAM_WEIGHT
        elif run.root:
            beside[run.root] = beside.get(run.root, 0.0) + _ROOT_WEIGHT
    return beside


def _scale(asked: Asked, known: dict[str, int], size: int) -> float:
    """Return what makes scores comparable between questions, and between indexes of any size."""
    rarities, elsewhere = rarities_of(size), rarities_of(size + _OTHER_TEXTS)
    here = there = total = 0.0
    for word, weight in asked.words.items():
        frequency = known[word]
        if not frequency and word in asked.small:
            continue
        told = weight * elsewhere[frequency]
        total += told
        if frequency:
            here += weight * rarities[frequency]
            there += told
    if here <= 0:
        here, there = rarities[1], elsewhere[1]
    return there / here / math.sqrt(total) if total > 0 else 0.0
