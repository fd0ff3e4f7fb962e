"""A question as weighted terms. Pure; the weights are measured in docs/explanation/recall.md."""

import math
from collections import Counter
from collections.abc import Sequence

import msgspec

from odek.index.stemming import DEFAULT_LANGUAGE
from odek.index.tokens import analyse, pairs_of
from odek.text import without_surrogates

__all__ = ["FIELDS", "Weighted", "rarity", "relevance", "weigh"]

FIELDS = ("words", "grams", "pairs")
"""What a unit is indexed by."""

# Against 1 for a telling word. Nothing and .5 both find less.
_STOP_WEIGHT = 0.25
# Character n-grams find misspelt, inflected and compound words; a word has about five of them.
_GRAM_WEIGHT = 0.1
_PAIR_WEIGHT = 0.25

# A question is read so far: a pasted page asks with what it begins, and time stays bounded.
_READ_CHARACTERS = 2_000
MAX_TERMS = 400


# In an index of a few texts every word is common, and says nothing of how telling it is. So relevance is
# computed as if there were so many texts more, of other things.
_OTHER_TEXTS = 1_000


class Weighted(msgspec.Struct, frozen=True):
    """The terms of a question: (field, term, weight), and of its words alone those that count as wanted."""

    terms: tuple[tuple[str, str, float], ...]
    wanted: tuple[tuple[str, float], ...]


def weigh(query: str) -> Weighted:
    """Return the terms of ``query`` with their weights.

    A question in another language than English also asks for the English forms of its
    words: notes mix languages, and a short question tells little about its own.
    """
    query = without_surrogates(query[:_READ_CHARACTERS])
    asked = analyse(query)
    words = {word: _STOP_WEIGHT if word in asked.stopped else 1.0 for word in asked.words}
    if asked.language != DEFAULT_LANGUAGE:
        english = analyse(query, DEFAULT_LANGUAGE)
        for word in english.words:
            words.setdefault(word, _STOP_WEIGHT if word in english.stopped else 1.0)
    terms = [("words", word, weight) for word, weight in words.items()]
    terms += [("pairs", pair, _PAIR_WEIGHT) for pair in pairs_of(asked)]
    terms += [("grams", gram, _GRAM_WEIGHT * count) for gram, count in Counter(asked.grams).items()]
    return Weighted(tuple(terms[:MAX_TERMS]), tuple(words.items()))


def rarity(size: int, frequency: int) -> float:
    """Return what a term counts that ``frequency`` of ``size`` texts have.

    What was taken out of an index stays in its frequencies for a while, but not in its size.
    """
    return math.log(1 + (max(size, frequency) - frequency + 0.5) / (frequency + 0.5))


def relevance(score: float, wanted: Sequence[tuple[float, int]], size: int) -> float:
    """Return ``score`` as it compares between questions and between indexes of any size.

    ``wanted`` has the weight of each word of the question and how many of ``size`` texts have it.
    """
    here = sum(weight * rarity(size, frequency) for weight, frequency in wanted if frequency)
    there = sum(weight * rarity(size + _OTHER_TEXTS, frequency) for weight, frequency in wanted if frequency)
    asked = sum(weight * rarity(size + _OTHER_TEXTS, frequency) for weight, frequency in wanted)
    return score * there / here / math.sqrt(asked) if here > 0 else 0.0
