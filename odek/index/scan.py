"""The plain search that answers while there is no index: every text is read for every question. Pure.

It scores as the index does, but for the lengths of texts, which that keeps rounded.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from odek.index.document import Document, Filter, Hit
from odek.index.query import FIELDS, rarity, relevance, weigh
from odek.index.tokens import analyse, pairs_of
from odek.index.units import Part, fused, units_of

__all__ = ["scan"]

# Those of tantivy, which has them built in.
_K1 = 1.2
_B = 0.75


class _Scanned(msgspec.Struct, frozen=True):
    owner: int
    part: Part
    text: str
    terms: dict[str, Counter[str]]


def scan(documents: Iterable[Document], query: str, count: int, where: Filter) -> list[Hit]:
    """Return the documents that are about ``query``, best first; ``relevance`` as the index has it."""
    known = list({document.id: document for document in documents}.values())
    units = [unit for at, document in enumerate(known) for unit in _units(at, document)]
    asked = weigh(query)
    scores = [0.0] * len(units)
    for field in FIELDS:
        lengths = [unit.terms[field].total() for unit in units]
        average = sum(lengths) / max(len(lengths), 1) or 1.0
        for name, term, weight in asked.terms:
            if name != field:
                continue
            having = [at for at, unit in enumerate(units) if term in unit.terms[field]]
            telling = rarity(len(units), len(having))
            for at in having:
                times = units[at].terms[field][term]
                norm = _K1 * (1 - _B + _B * lengths[at] / average)
                scores[at] += weight * telling * times * (_K1 + 1) / (times + norm)
    words = [unit.terms["words"] for unit in units]
    wanted = [(weight, sum(word in each for each in words)) for word, weight in asked.wanted]
    hits = [
        _hit(
            document,
            [(unit, score) for unit, score in zip(units, scores, strict=True) if unit.owner == at],
            wanted,
            len(units),
        )
        for at, document in enumerate(known)
        if where.admits(document)
    ]
    hits = [hit for hit in hits if hit.score > 0]
    return sorted(hits, key=lambda hit: (-hit.score, -hit.created_at, hit.id))[:count]


def _units(owner: int, document: Document) -> list[_Scanned]:
    scanned = []
    for unit in units_of(document):
        terms = analyse(unit.text)
        counted = {
            "words": Counter(terms.words),
            "grams": Counter(terms.grams),
            "pairs": Counter(pairs_of(terms)),
        }
        scanned.append(_Scanned(owner, unit.part, unit.text, counted))
    return scanned


def _hit(
    document: Document, scored: list[tuple[_Scanned, float]], wanted: list[tuple[float, int]], size: int
) -> Hit:
    best: dict[int, float] = {}
    for unit, score in scored:
        best[unit.part] = max(best.get(unit.part, 0.0), score)
    score = fused(best, sum(1 << part for part in best))
    shown = max((each for each in scored if each[0].part is not Part.WHOLE), key=lambda each: each[1])[0].text
    told = relevance(score, wanted, size)
    return Hit(document.id, document.kind, score, told, shown, document.created_at)
