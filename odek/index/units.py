"""A document as the units that are scored, and the scores of its units as one. Pure.

A short text is one unit. A long one is its whole and its passages. An episode with a
transcript is its summary, the whole transcript and the passages of that.
"""

from collections.abc import Mapping
from enum import IntEnum

import msgspec

from odek.index.document import Document, Filter, Kind, key_of
from odek.index.passages import passages_of

__all__ = ["KINDS", "Part", "Sieve", "Unit", "fused", "pack", "parts_of", "units_of"]

KINDS: tuple[Kind, ...] = ("episode", "atom", "session")


class Part(IntEnum):
    """What of a document a unit is."""

    TEXT = 0
    WHOLE = 1
    PASSAGE = 2


# Share of each part in a document's score, of the parts it has; sums of plain scores did better than
# sums of scores made equal by their maximum: docs/explanation/recall.md.
_SHARE = (0.2, 0.4, 0.4)
_SHARES = tuple(sum(share for part, share in enumerate(_SHARE) if parts >> part & 1) for parts in range(8))


class Unit(msgspec.Struct, frozen=True):
    """A text that is scored by itself."""

    part: Part
    text: str


def units_of(document: Document) -> list[Unit]:
    """Return the units of ``document``, at least one."""
    long_text = document.transcript or document.text
    passages = passages_of(long_text)
    units = [Unit(Part.TEXT, document.text)] if document.transcript or len(passages) == 1 else []
    if document.transcript or len(passages) > 1:
        units.append(Unit(Part.WHOLE, long_text))
        units += [Unit(Part.PASSAGE, passage) for passage in passages]
    return units


def parts_of(document: Document) -> tuple[Part, ...]:
    """Return which parts ``document`` has."""
    return tuple(dict.fromkeys(unit.part for unit in units_of(document)))


def fused(best: Mapping[int, float], parts: int) -> float:
    """Return the score of a document, from the best of each part found; ``parts`` is a bit set, not 0."""
    return sum(_SHARE[part] * score for part, score in best.items()) / _SHARES[parts]


# One number holds what a filter asks: bit 0 trusted, 1-2 kind, 3-4 part, 5-7 the parts of the document,
# and the rest the key of its facet.
_FACET_BITS = ~0xFF & 0xFFFF_FFFF_FFFF_FFFF


def pack(document: Document, part: Part, parts: int) -> int:
    """Return the filter bits of a unit."""
    facet = key_of(document.facet) & _FACET_BITS
    return document.trusted | KINDS.index(document.kind) << 1 | part << 3 | parts << 5 | facet


class Sieve:
    """Tells which units a filter admits, by their bits and the key of their project."""

    def __init__(self, where: Filter) -> None:
        self._trusted_only = where.trusted_only
        self._kinds = {KINDS.index(kind) for kind in where.kinds or KINDS}
        self._project = None if where.project is None else key_of(where.project)
        facets = where.excluded_elsewhere
        self._barred = None if facets is None else {key_of(facet) & _FACET_BITS for facet in facets}

    def admits(self, bits: int, project: int) -> bool:
        """Tell whether a unit passes."""
        return (
            (bool(bits & 1) or not self._trusted_only)
            and bits >> 1 & 3 in self._kinds
            and (self._project in {None, project} or self._admits_elsewhere(bits))
        )

    def _admits_elsewhere(self, bits: int) -> bool:
        return self._barred is not None and bits & _FACET_BITS not in self._barred
