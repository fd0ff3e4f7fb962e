"""The plain search that answers while there is no index: every text is read for every question. Pure.

It scores as the index does, but for the lengths of texts, which that keeps rounded.
"""

from collections import Counter
from collections.abc import Iterable
from functools import partial

import msgspec

from odek.index.document import Document, Filter, Hit
from odek.index.query import RELEVANCE_OF_KIND, Plan, ask, plan
from odek.index.rarity import Corpus, Frequencies
from odek.index.records import LENGTH_TERMS
from odek.index.tokens import index_terms
from odek.index.units import ALONE, Part, fused, parts_of, scope_of, scopes_of, units_of

__all__ = ["scan"]

# Those of tantivy, which has them built in.
_K1 = 1.2
_B = 0.75


NOTHING = Corpus(0, Counter())


class _Scanned(msgspec.Struct, frozen=True):
    part: Part
    text: str
    terms: Counter[str]
    length: int


def scan(
    documents: Iterable[Document], query: str, count: int, where: Filter, *, others: Corpus = NOTHING
) -> list[Hit]:
    """Return the documents that are about ``query``, best first; ``relevance`` as the index has it.

    ``others`` are texts that say how telling a term is and are not searched.
    """
    known = {document.id: document for document in documents}.values()
    units = {document.id: _scanned(document) for document in known}
    average = sum(unit.length for each in units.values() for unit in each) / max(
        sum(map(len, units.values())), 1
    )
    scopes = scopes_of(where)
    counted = [unit for document in known if scope_of(document) in scopes for unit in units[document.id]]
    here = Counter(term for unit in counted for term in unit.terms)
    frequencies = Frequencies(lambda term: here[term] + others.frequencies[term])
    planned = plan(ask(query), len(counted) + others.size, frequencies)
    score = partial(_score, planned, average)
    hits = [
        hit
        for document in known
        if where.admits(document)
        and (hit := _hit(document, [(score(u), u) for u in units[document.id]], planned.scale))
    ]
    return sorted(hits, key=lambda hit: (-hit.score, -hit.created_at, hit.id))[:count]


def _scanned(document: Document) -> list[_Scanned]:
    scanned = []
    for unit in units_of(document):
        terms = index_terms(unit.text)
        scanned.append(_Scanned(unit.part, unit.text, Counter(terms), len(terms) + LENGTH_TERMS))
    return scanned


def _score(planned: Plan, average: float, unit: _Scanned) -> float:
    norm = _K1 * (1 - _B + _B * unit.length / average)
    return sum(
        counts * (_K1 + 1) * times / (times + norm)
        for term, counts in planned.terms
        if (times := unit.terms[term])
    )


def _hit(document: Document, scored: list[tuple[float, _Scanned]], scale: float) -> Hit | None:
    best: dict[int, float] = {}
    for score, unit in scored:
        best[unit.part] = max(best.get(unit.part, 0.0), score)
    total = fused(best, parts_of(unit.part for _, unit in scored))
    alone, shown = max((each for each in scored if each[1].part is not Part.WHOLE), key=lambda each: each[0])
    if total <= 0:
        return None
    relevance = max(total, ALONE * alone) * scale * RELEVANCE_OF_KIND[document.kind]
    return Hit(document.id, document.kind, total, relevance, shown.text, document.created_at, document.state)
