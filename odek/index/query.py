"""A question as weighted terms. Pure; the weights are measured in docs/explanation/recall.md."""

from collections import Counter

import msgspec

from odek.index.stemming import DEFAULT_LANGUAGE
from odek.index.tokens import analyse, pairs_of
from odek.text import without_surrogates

__all__ = ["FIELDS", "Weighted", "weigh"]

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
