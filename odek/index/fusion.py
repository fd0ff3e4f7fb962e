"""What words find and what vectors find, as one order. Pure; measured in docs/explanation/vectors.md.

Both are brought to one scale by their best, and added. That does better than to add
ranks, which forget by how much the first is better than the second.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from operator import itemgetter

from odek.index.ranking import Candidate
from odek.index.units import has_transcript
from odek.index.vectors import Closeness

__all__ = ["CLOSENESS_FLOOR", "fuse"]

CLOSENESS_FLOOR = 0.35
"""From here on a text is about the question even if they share no word: see ``Closeness``."""

# The share of vectors in a score. What a session said has so many words that vectors add little.
_SHARE = 0.25
_SHARE_WITH_TRANSCRIPT = 0.1

# A best that is worse than this is not taken for the measure of all things.
_GOOD_CLOSENESS = 0.5

# What words find is looked at so far for each document asked for: the rest is too far behind.
_WORDS_PER_DOCUMENT = 4

# And so many more of either, since some of the close documents may be gone from the index.
_SPARE = 8


def fuse(
    candidates: Iterable[Candidate], closeness: Closeness, count: int, *, least: float, telling: float
) -> Iterator[Candidate]:
    """Yield the documents that words or vectors find, best first.

    Args:
        candidates: What words find, best first.
        closeness: What vectors say.
        count: How many documents are wanted.
        least: The relevance that they must have.
        telling: The relevance from which on words say that a document is about the question.
    """
    found = {each.version: each for each in closeness.nearest(count + _SPARE)}
    by_words = list(islice(candidates, count * _WORDS_PER_DOCUMENT + _SPARE))
    found |= {each.version: each for each in by_words}
    close = closeness.of([*found])
    words_unit = 1 / max(telling, by_words[0].relevance if by_words else 0.0)
    vectors_unit = 1 / max([_GOOD_CLOSENESS, *close.values()])
    scores: list[tuple[float, float, Candidate]] = []
    for version, each in found.items():  # plain numbers: this runs for every question
        relevance = each.relevance
        score = relevance * words_unit  # for a document without a vector words decide alone
        nearness = close.get(version)
        if nearness is not None:
            nearness = max(nearness, 0.0)
            share = _SHARE_WITH_TRANSCRIPT if has_transcript(each.traits) else _SHARE
            score += share * (nearness * vectors_unit - score)
            # Half as close is far less than half as telling: strangers often are.
            relevance = max(relevance, telling * (nearness / CLOSENESS_FLOOR) ** 2)
        if relevance >= least:
            scores.append((score, relevance, each))
    scores.sort(key=_SCORE, reverse=True)
    for score, relevance, each in scores:
        yield Candidate(each.version, score, relevance, each.traits, each.address)


_SCORE = itemgetter(0)
