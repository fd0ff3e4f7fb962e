"""What a generation holds at one moment, to be searched. Blocks.

What a term counts comes from here: it is asked for with a boost that turns tantivy's idf, which is
over all scopes, into that of the scopes searched.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from odek.index.damage import translated
from odek.index.document import Filter, key_of
from odek.index.query import Asked, Plan, plan
from odek.index.ranking import Candidate, by_document
from odek.index.rarity import Corpus, Frequencies, rarities_of
from odek.index.records import HEAD, LENGTH_TERM, Stored
from odek.index.units import SCOPES, scopes_of

if TYPE_CHECKING:
    import tantivy

__all__ = ["Found", "Heads", "Snapshot"]

# Units that are looked at for each document asked for: an episode has about eight. Twice as many find no
# better, and take a tenth longer. Where they are of too few documents, more are looked at.
_UNITS_PER_DOCUMENT = 4
_MORE_UNITS = 4
# A statement is one unit; several are looked at because of those that are of the same score.
_UNITS_PER_ATOM = 2
_MIN_UNITS = 32

# Units that are found without the terms that are aside, for each that is looked at with them.
_UNITS_ASIDE = 4
# So much a term counts that a text of usual length has thrice, against 1 for once and 2.2 for ever so often.
_THRICE = 1.6
# All units of the documents in question are found with those; one of several megabytes has more.
_MOST_UNITS = 4_096


class Found(msgspec.Struct, frozen=True):
    """A document that was found, and its best unit as it is kept."""

    score: float
    relevance: float
    stored: Stored


class Heads(NamedTuple):
    """Of each document the first unit with a text: its address, the version, bits and project's key."""

    addresses: list[Any]
    versions: list[int]
    bits: list[int]
    projects: list[int]


class Snapshot:
    """What was committed when it was made, whatever is written later.

    Every method may raise IndexDamagedError: the files cannot be read.
    """

    def __init__(self, directory: Path, schema: "tantivy.Schema", searcher: "tantivy.Searcher") -> None:
        import tantivy

        self._directory = directory
        self._schema = schema
        self._searcher = searcher
        self._queries = tantivy.Query
        self._occur = tantivy.Occur
        self._frequencies: dict[str, Frequencies] = {}
        self._sizes = {scope: searcher.doc_freq("terms", scope + LENGTH_TERM) for scope in SCOPES}
        self.size = sum(self._sizes.values())
        """How many units there are, those included that were removed since the last merge."""

    @property
    def segments(self) -> int:
        """In how many pieces it is."""
        return self._searcher.num_segments

    @property
    def removed(self) -> int:
        """How many units were removed since the last merge."""
        return self.size - self._searcher.num_docs

    def candidates(
        self, asked: Asked, count: int, where: Filter, *, least: float = 0.0
    ) -> Iterable[Candidate]:
        """Return the documents among the best units that are of the ``least`` relevance, best first.

        Without it these are at least ``count`` if there are as many.
        """
        units = count * (_UNITS_PER_ATOM if where.kinds == ("atom",) else _UNITS_PER_DOCUMENT)
        limit = min(max(_MIN_UNITS, units), max(self.size, 1))
        with translated(self._directory):
            planned = plan(asked, *self.corpus(where))
            while planned.terms:
                hits = self._hits(planned, where, limit, count)
                is_cut = len(hits) == limit < self.size
                addresses = [address for _, address in hits]
                versions = self._column("document", addresses)
                if is_cut and len(set(versions)) < count:  # most are passages of a few long texts
                    limit = min(limit * _MORE_UNITS, self.size)
                    continue
                # What is not among the hits may score as the last of them, and no better.
                unseen = hits[-1][0] if is_cut else 0.0
                parts = zip(hits, versions, self._column("bits", addresses), strict=True)
                return by_document(parts, unseen, planned.scale, least)
        return ()

    def load(self, ranked: Iterable[Candidate], count: int) -> list[Found]:
        """Return the first ``count`` of ``ranked``, which is best first.

        Of equals the newer comes first, then the one whose id sorts first. Candidates that are in the
        index no more are left out.
        """
        found: list[Found] = []
        with translated(self._directory):
            for each in ranked:
                if len(found) >= count and each.score < found[count - 1].score:
                    break
                address = each.address if each.address is not None else self._head_of(each.version)
                if address is not None:
                    found.append(Found(each.score, each.relevance, self._stored(address)))
        found.sort(key=lambda each: (-each.score, -each.stored.created_at, each.stored.id))
        return found[:count]

    def heads(self, versions: Iterable[int] | None = None) -> Heads:
        """Return all documents, or those of some versions."""
        with translated(self._directory):
            if versions is None:
                found = self._searcher.search(self.term("traits", HEAD), max(self.size, 1), count=False)
                addresses = [address for _, address in found.hits]
            else:
                addresses = [head for head in map(self._head_of, versions) if head is not None]
            columns = [self._column(name, addresses) for name in ("document", "bits", "project")]
            return Heads(addresses, *columns)

    def count(self) -> int:
        """Return how many documents there are."""
        with translated(self._directory):
            return len(self._searcher.search(self.term("traits", HEAD), max(self.size, 1)).hits)

    def stored_at(self, address: Any) -> Stored:
        """Return what is kept of a unit."""
        with translated(self._directory):
            return self._stored(address)

    def term(self, field: str, term: str | int) -> "tantivy.Query":
        """Return what asks for one term."""
        return self._queries.term_query(self._schema, field, term, "basic")

    def corpus(self, where: Filter) -> Corpus:
        """Return all units of a filter's scopes; those that have a term are counted when it is asked for."""
        scopes = self._scopes(where)
        return Corpus(sum(self._sizes[scope] for scope in scopes), self._frequencies_in(scopes))

    def _hits(self, planned: Plan, where: Filter, limit: int, count: int) -> list[tuple[float, Any]]:
        """Return the best units, so many as ``limit``: score and address, best first."""
        if planned.aside:
            hits = self._hits_in_two_steps(planned, where, limit, count)
            if hits is not None:
                return hits
        query = self._narrowed(self._any_of(planned.terms, where), where)
        return self._searcher.search(query, limit, count=False).hits

    def _hits_in_two_steps(
        self, planned: Plan, where: Filter, limit: int, count: int
    ) -> list[tuple[float, Any]] | None:
        """Return the best units, without reading all that have the terms that are aside.

        None when it cannot be told which documents are the best ``count``.
        """
        others = [term for term in planned.terms if term not in planned.aside]
        query = self._narrowed(self._any_of(others, where), where)
        hits = self._searcher.search(query, limit * _UNITS_ASIDE, count=False).hits
        if len(hits) < limit * _UNITS_ASIDE:
            return None
        most_beside = _THRICE * sum(counts for _, counts in planned.aside)
        beside: dict[tuple[int, int], float] = {}
        first, near, looked_at = 0, min(count * _UNITS_PER_DOCUMENT, limit), limit
        while True:
            versions = self._column("document", [address for _, address in hits[:looked_at]])
            # With all their units: what a document counts is made of several.
            beside |= self._beside(set(versions[first:near]), planned.aside, where)
            best: dict[int, float] = {}
            scored = []
            for (score, address), version in zip(hits, versions, strict=False):
                whole = score + beside.get(_key(address), 0.0)
                scored.append((whole, address))
                best[version] = max(best.get(version, 0.0), whole)
            least = sorted(best.values(), reverse=True)[:count][-1] - most_beside
            if hits[-1][0] > least:
                return None
            reaching = bisect_left(hits, -least, key=_negative_score)
            if reaching <= near:
                scored.sort(key=_score, reverse=True)
                return scored[:limit]
            first, near, looked_at = near, reaching, max(reaching, limit)

    def _beside(
        self, versions: Iterable[int], terms: Sequence[tuple[str, float]], where: Filter
    ) -> dict[tuple[int, int], float]:
        """Return what ``terms`` count in the units of some documents, by their ``_key``."""
        queries, occur = self._queries, self._occur
        these = queries.boolean_query([(occur.Should, self.term("document", each)) for each in versions])
        asked = queries.const_score_query(these, 0.0)
        for clause in self._clauses(terms, where):  # each by itself: looked up where the others are
            asked = queries.boolean_query([(occur.Must, asked), clause])
        found = self._searcher.search(asked, _MOST_UNITS, count=False).hits
        return {_key(address): score for score, address in found}

    def _any_of(self, terms: Sequence[tuple[str, float]], where: Filter) -> "tantivy.Query":
        return self._queries.boolean_query(self._clauses(terms, where))

    def _clauses(
        self, terms: Sequence[tuple[str, float]], where: Filter
    ) -> "list[tuple[tantivy.Occur, tantivy.Query]]":
        """Return what asks for terms in each scope that has them, so that they count what is said."""
        rarities, schema, should = rarities_of(self.size), self._schema, self._occur.Should
        term_query, boost_query = self._queries.term_query, self._queries.boost_query
        clauses = []
        for scope in self._scopes(where):
            frequencies = self._frequencies_in([scope])
            for term, counts in terms:
                if times := frequencies[term]:
                    asking = term_query(schema, "terms", scope + term, "freq")
                    clauses.append((should, boost_query(asking, counts / rarities[times])))
        return clauses

    def _narrowed(self, asked: "tantivy.Query", where: Filter) -> "tantivy.Query":
        """Return ``asked`` of the documents of a project, and of others as far as the filter lets them."""
        if where.project is None:
            return asked
        queries, occur = self._queries, self._occur
        here = self.term("traits", f"p{key_of(where.project):x}")
        if where.excluded_elsewhere is None:
            return queries.boolean_query(
                [(occur.Must, asked), (occur.Must, queries.const_score_query(here, 0.0))]
            )
        barred = [
            queries.boolean_query(
                [(occur.Must, self.term("traits", f"f{key_of(facet):x}")), (occur.MustNot, here)]
            )
            for facet in where.excluded_elsewhere
        ]
        return queries.boolean_query([(occur.Must, asked), *((occur.MustNot, query) for query in barred)])

    def _scopes(self, where: Filter) -> list[str]:
        return [scope for scope in scopes_of(where) if self._sizes[scope]]

    def _frequencies_in(self, scopes: Sequence[str]) -> Frequencies:
        """Return how many units of some scopes have a term, as it is asked for."""
        name = "".join(scopes)
        found = self._frequencies.get(name)
        if found is None:
            if len(scopes) == 1:
                frequency = self._searcher.doc_freq
                found = Frequencies(lambda term: frequency("terms", name + term))
            else:
                each = [self._frequencies_in([scope]) for scope in scopes]
                found = Frequencies(lambda term: sum([frequencies[term] for frequencies in each]))
            self._frequencies[name] = found
        return found

    def _column(self, name: str, addresses: list[Any]) -> list[int]:
        values: list[Any] = self._searcher.fast_field_values(name, addresses) if addresses else []
        return values

    def _head_of(self, version: int) -> Any:
        """Return the address of a document's first unit, or None."""
        must = self._occur.Must
        asked = self._queries.boolean_query(
            [(must, self.term("document", version)), (must, self.term("traits", HEAD))]
        )
        hits = self._searcher.search(asked, 1, count=False).hits
        return hits[0][1] if hits else None

    def _stored(self, address: Any) -> Stored:
        data = self._searcher.doc(address).get_first("stored")
        return _STORED.decode(data or b"")


_STORED = msgspec.msgpack.Decoder(Stored)


_score = itemgetter(0)


def _negative_score(hit: tuple[float, Any]) -> float:
    return -hit[0]


def _key(address: Any) -> tuple[int, int]:
    return address.segment_ord, address.doc
