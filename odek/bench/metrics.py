"""How well and how fast something is found, as figures. Pure.

Whether a document is relevant is taken as yes or no, as in the sets that are common for this.
"""

import math
import statistics
from collections.abc import Collection, Sequence

import msgspec

__all__ = ["DEPTH", "TO_THE_END", "Quality", "Spread", "quality", "ranking", "spread"]

DEPTH = 10
"""Documents of a ranking that are looked at; nobody is given more."""

TO_THE_END = 100
"""Documents that the mean reciprocal rank is of. One further down would add less than a hundredth."""


class Spread(msgspec.Struct, frozen=True):
    """Milliseconds that half, 95 and 99 of 100 measurements stayed within, of ``count``."""

    p50: float
    p95: float
    p99: float
    count: int


class Quality(msgspec.Struct, frozen=True):
    """Means over ``questions``, each from 0 to 1.

    ``hit_at_k``: a relevant document is among the first k. ``recall_at_k``: the share of the relevant
    ones that are. ``mrr_at_10``: 1 by the rank of the first relevant one, 0 beyond ``DEPTH``; ``mrr``: 0
    beyond ``TO_THE_END``. ``ndcg``: gain discounted by the logarithm of the rank, against the best order
    there is, within ``DEPTH``.
    """

    questions: int
    hit_at_1: float
    hit_at_3: float
    hit_at_10: float
    recall_at_3: float
    recall_at_10: float
    mrr: float
    mrr_at_10: float
    ndcg_at_10: float


def spread(seconds: Sequence[float]) -> Spread:
    """Return the spread of durations, of which there is at least one: each figure is one of them."""
    ordered = sorted(seconds)

    def within(share: float) -> float:
        return round(ordered[math.ceil(share * len(ordered)) - 1] * 1e3, 3)

    return Spread(within(0.5), within(0.95), within(0.99), len(ordered))


def ranking(first: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return the ids that ``DEPTH`` were asked for, and behind them what else was found by asking for more.

    Who is asked for more looks further, and may have another order.
    """
    return [*first, *(name for name in more if name not in first)]


def quality(rankings: Sequence[Sequence[str]], relevant: Sequence[Collection[str]]) -> Quality:
    """Return how good ``rankings`` are: for each question ids, best first, and those that are right.

    Every question has something relevant, and there is at least one question.
    """
    whole = [
        [name in right for name in found[:TO_THE_END]]
        for found, right in zip(rankings, relevant, strict=True)
    ]
    judged = [row[:DEPTH] for row in whole]
    totals = [len(right) for right in relevant]

    def mean(values: Sequence[float]) -> float:
        return round(statistics.fmean(values), 4)

    def hit(most: int) -> float:
        return mean([any(row[:most]) for row in judged])

    def recall(most: int) -> float:
        return mean([sum(row[:most]) / total for row, total in zip(judged, totals, strict=True)])

    return Quality(
        questions=len(judged),
        hit_at_1=hit(1),
        hit_at_3=hit(3),
        hit_at_10=hit(10),
        recall_at_3=recall(3),
        recall_at_10=recall(10),
        mrr=mean(list(map(_reciprocal_rank, whole))),
        mrr_at_10=mean(list(map(_reciprocal_rank, judged))),
        ndcg_at_10=mean(
            [
                _gain(row) / _gain([True] * min(total, DEPTH))
                for row, total in zip(judged, totals, strict=True)
            ]
        ),
    )


def _reciprocal_rank(judged: Sequence[bool]) -> float:
    return 1 / (judged.index(True) + 1) if True in judged else 0.0


def _gain(judged: Sequence[bool]) -> float:
    return sum(1 / math.log2(rank + 1) for rank, is_right in enumerate(judged, 1) if is_right)
