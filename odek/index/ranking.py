"""The units that a question finds, as documents in order. Pure.

Plain numbers and one pass: this is done for every question.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from odek.index.query import RELEVANCE_OF_KIND
from odek.index.units import ALONE, KINDS, SHARES, Part

__all__ = ["Candidate", "by_document"]

_WHOLE = int(Part.WHOLE)
_TEXT_ALONE = 1 << Part.TEXT


class Candidate(NamedTuple):
    """A document that may be found, by its version; ``bits`` as ``pack`` made them of a unit.

    ``address`` is that of the unit to show; without one it is the first.
    """

    version: int
    score: float
    relevance: float
    bits: int
    address: Any = None


class _Scored:
    """What is known of a document while its units are looked at."""

    __slots__ = ("alone", "bits", "score", "seen", "shown", "whole")

    def __init__(self, score: float, bits: int) -> None:
        self.score = score
        self.bits = bits
        self.seen = 0
        self.alone = 0.0
        self.shown: Any = None
        self.whole: Any = None


def by_document(
    units: Iterable[tuple[tuple[float, Any], int, int]], unseen: float, scale: float
) -> list[Candidate]:
    """Return the documents that units belong to, best first.

    ``units`` are the best first: score, address, version and bits. A part of a document that is not among
    them scores ``unseen``. A score times ``scale``, and what its kind counts, is a relevance; so is a good
    part of the score of the part that is shown.
    """
    scales = [scale * RELEVANCE_OF_KIND[kind] for kind in KINDS]
    candidates: list[Candidate] = []
    several: dict[int, _Scored] = {}  # documents of more than one part
    for (score, address), version, bits in units:  # plain numbers: this is every question
        parts, part = bits >> 5 & 7, bits >> 3 & 3
        if parts == _TEXT_ALONE:
            candidates.append(Candidate(version, score, score * scales[bits >> 1 & 3], bits, address))
            continue
        each = several.get(version)
        if each is None:
            each = several[version] = _Scored(unseen, bits)
        elif each.seen >> part & 1:  # another passage, which is worse
            continue
        each.seen |= 1 << part
        each.score += SHARES[parts][part] * (score - unseen)
        if part == _WHOLE:
            each.whole = address
        elif each.shown is None:
            each.shown, each.alone = address, ALONE * score
    for version, each in several.items():
        relevance = max(each.score, each.alone) * scales[each.bits >> 1 & 3]
        candidates.append(Candidate(version, each.score, relevance, each.bits, each.shown or each.whole))
    candidates.sort(key=lambda each: -each.score)
    return candidates
