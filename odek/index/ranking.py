"""The units that a question finds, as documents in order. Pure.

Plain numbers and one pass: this is done for every question.
"""

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from odek.index.query import RELEVANCE_OF_KIND
from odek.index.units import ALONE, KINDS, SHARES, Part

__all__ = ["Candidate", "by_document"]

_WHOLE = 1 << Part.WHOLE
_TEXT_ALONE = 1 << Part.TEXT


class Candidate(NamedTuple):
    """A document that may be found, by its version; ``traits`` are the low bits of what ``pack`` made.

    ``address`` is that of the unit to show; without one it is the first.
    """

    version: int
    score: float
    relevance: float
    traits: int
    address: Any = None


def by_document(
    units: Iterable[tuple[tuple[float, Any], int, int]], unseen: float, scale: float, least: float = 0.0
) -> Iterator[Candidate]:
    """Yield the documents that units belong to and that are of the ``least`` relevance, best first.

    ``units`` are the best first: score, address, version and bits. A part of a document that is not among
    them scores ``unseen``. A score times ``scale``, and what its kind counts, is a relevance; so is a good
    part of the score of the part that is shown.
    """
    # Of each document: score, version, traits, the parts seen, what counts alone, address of the part to show
    # and of the whole. Lists, and candidates of those alone that are asked for: half the time of objects.
    rows: list[list[Any]] = []
    several: dict[int, list[Any]] = {}  # documents of more than one part
    for (score, address), version, bits in units:
        traits = bits & _TRAITS
        parts, part, share = _ROLES[traits]
        if parts == _TEXT_ALONE:
            rows.append([score, version, traits, parts, score, address, None])
            continue
        row = several.get(version)
        if row is None:
            several[version] = row = [unseen, version, traits, 0, 0.0, None, None]
            rows.append(row)
        elif row[_SEEN] & part:  # another passage, which is worse
            continue
        row[_SEEN] |= part
        row[_SCORE] += share * (score - unseen)
        if part == _WHOLE:
            row[_WHOLE_AT] = address
        elif row[_SHOWN_AT] is None:
            row[_SHOWN_AT], row[_ALONE] = address, ALONE * score
    rows.sort(key=itemgetter(_SCORE), reverse=True)
    scales = [scale * RELEVANCE_OF_KIND[kind] for kind in KINDS]
    for score, version, traits, _, alone, shown, whole in rows:
        relevance = max(score, alone) * scales[traits >> 1 & 3]
        if relevance >= least:
            yield Candidate(version, score, relevance, traits, shown or whole)


# Numbers of more than some bits cost twice the time: the key of the facet is left out.
_TRAITS = 0xFF


def _role(traits: int) -> tuple[int, int, float]:
    parts, part = traits >> 5, min(traits >> 3 & 3, len(Part) - 1)
    return parts, 1 << part, SHARES[parts][part]


_ROLES = tuple(map(_role, range(_TRAITS + 1)))
"""By the traits of a unit: the parts of its document and its own, as bits, and the share of that."""

_SCORE, _SEEN, _ALONE, _SHOWN_AT, _WHOLE_AT = 0, 3, 4, 5, 6
