"""A document as the units that are scored, and the scores of its units as one. Pure.

A short text is one unit. A long one is its whole and its passages. An episode with a
transcript is its summary, the whole transcript and the passages of that.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from odek.index.document import Document, Filter, Kind, key_of
from odek.index.passages import passages_of

if TYPE_CHECKING:
    import numpy as np

    Numbers: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.uint64]]
    Mask: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.bool_]]

__all__ = [
    "ALONE",
    "KINDS",
    "SCOPES",
    "SHARES",
    "Part",
    "Sieve",
    "Unit",
    "fused",
    "has_transcript",
    "pack",
    "parts_of",
    "scope_of",
    "scopes_of",
    "units_of",
]

KINDS: tuple[Kind, ...] = ("episode", "atom", "session")


class Part(IntEnum):
    """What of a document a unit is."""

    TEXT = 0
    WHOLE = 1
    PASSAGE = 2


# Share of each part in a document's score, of the parts it has; sums of plain scores did better than
# sums of scores made equal by their maximum: docs/explanation/recall.md.
_SHARE = (0.2, 0.4, 0.4)


def _shares(parts: int) -> tuple[float, ...]:
    total = sum(share for part, share in enumerate(_SHARE) if parts >> part & 1)
    return tuple(share / total if total else 0.0 for share in _SHARE)


ALONE = 0.8
"""A summary or a passage that is about the question makes its document relevant, by so much of its
score, whatever the other parts say: a record in other words than the session's is none the less right.
Measured: as many right hits stay above the floor as with 1, and nearly as few strange ones as with 0."""


SHARES = tuple(_shares(parts) for parts in range(8))
"""By the parts that a document has, as a bit set, and by part: its share in the document's score."""

# Texts are counted and searched by kind and trust, each by itself: what a filter bars by these has no
# influence, not even on how rare a word is.
_SCOPE_OF = dict(zip(product(KINDS, (True, False)), "eEaAsS", strict=True))
SCOPES = tuple(_SCOPE_OF.values())
"""A letter for each kind, trusted and not."""


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


def parts_of(parts: Iterable[Part]) -> int:
    """Return ``parts``, which may repeat, as a bit set."""
    return sum(1 << part for part in set(parts))


def fused(best: Mapping[int, float], parts: int) -> float:
    """Return the score of a document, from the best of each part found; ``parts`` is a bit set, not 0."""
    return sum(SHARES[parts][part] * score for part, score in best.items())


def scope_of(document: Document) -> str:
    """Return the scope in which ``document`` is counted and searched."""
    return _SCOPE_OF[document.kind, document.trusted]


def scopes_of(where: Filter) -> list[str]:
    """Return the scopes that hold what ``where`` admits."""
    return [
        scope
        for (kind, trusted), scope in _SCOPE_OF.items()
        if (not where.kinds or kind in where.kinds) and (trusted or not where.trusted_only)
    ]


# One number holds what a filter asks: bit 0 trusted, 1-2 kind, 3-4 part, 5-7 the parts of the document,
# and the rest the key of its facet.
_FACET_BITS = ~0xFF & 0xFFFF_FFFF_FFFF_FFFF


def pack(document: Document, part: Part, parts: int) -> int:
    """Return the filter bits of a unit."""
    facet = key_of(document.facet) & _FACET_BITS
    return document.trusted | KINDS.index(document.kind) << 1 | part << 3 | parts << 5 | facet


def has_transcript(bits: int) -> bool:
    """Tell whether a unit's document is found by a whole text and its passages."""
    return bool(bits >> 5 & 1 << Part.WHOLE)


class Sieve:
    """Tells which units a filter admits, by their bits and the keys of their projects."""

    def __init__(self, where: Filter) -> None:
        self._trusted_only = where.trusted_only
        self._kinds = {KINDS.index(kind) for kind in where.kinds or KINDS}
        self._project = None if where.project is None else key_of(where.project)
        facets = where.excluded_elsewhere
        self._barred = None if facets is None else {key_of(facet) & _FACET_BITS for facet in facets}

    def admits_all(self, bits: "Numbers | Sequence[int]", projects: "Numbers | Sequence[int]") -> "Mask":
        """Tell which of many units pass."""
        import numpy as np

        bits, projects = np.asarray(bits, np.uint64), np.asarray(projects, np.uint64)
        mask: Mask = np.isin(bits >> np.uint64(1) & np.uint64(3), np.array([*self._kinds], np.uint64))
        if self._trusted_only:
            mask &= bits & np.uint64(1) == 1
        if self._project is not None:
            here = projects == np.uint64(self._project)
            if self._barred is not None:
                facets = bits & np.uint64(_FACET_BITS)
                here |= ~np.isin(facets, np.array([*self._barred], np.uint64))
            mask &= here
        return mask
