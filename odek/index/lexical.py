"""One generation of the lexical index: a directory of tantivy's, written and searched. Blocks.

tantivy gives BM25 over memory-mapped segments, commits that are atomic and tombstones.
What a term is comes from here, as words between blanks. Its writer starts threads that
end with the write; an open index keeps one that sleeps: a process that forks opens none.
Its exceptions stop here, panics of its native code among them.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from odek.errors import StoreError
from odek.index.document import ANY, Document, Filter, key_of
from odek.index.query import Weighted, relevance
from odek.index.records import Stored, key_text, new_schema, records_of
from odek.index.units import KINDS, Part, Sieve, fused

if TYPE_CHECKING:
    import tantivy

__all__ = ["Candidate", "Found", "Heads", "IndexDamagedError", "LexicalIndex"]

# The least that tantivy takes for a thread is 3 MB; a bulk load with more writes fewer segments.
_WRITER_BYTES = 15_000_000
_BULK_WRITER_BYTES = 100_000_000
_BULK_DOCUMENTS = 1_000

# Units that are looked at for each document asked for: an episode has about eight.
_UNITS_PER_DOCUMENT = 16
_MIN_UNITS = 64

_WHOLE = int(Part.WHOLE)


class IndexDamagedError(StoreError):
    """The files of an index cannot be used; it is to be rebuilt from the texts."""


class Candidate(NamedTuple):
    """A document that may be found, by its version; ``bits`` as ``pack`` made them of a unit.

    Without an ``address`` its first unit is the one that is shown.
    """

    version: int
    score: float
    bits: int = 0
    address: Any = None


class Found(msgspec.Struct, frozen=True):
    """A document that was found, and its best unit as it is kept."""

    version: int
    score: float
    stored: Stored


class Heads(NamedTuple):
    """Of each document the first unit with a text: its address, the version, bits and project's key."""

    addresses: list[Any]
    versions: list[int]
    bits: list[int]
    projects: list[int]


class LexicalIndex:
    """An open generation.

    Args:
        directory: Its files; exists.
        create: Whether to begin a new one there.

    Raises:
        IndexDamagedError: there is none that can be read.
    """

    def __init__(self, directory: Path, *, create: bool = False) -> None:
        import tantivy

        self._library = tantivy
        self.directory = directory
        self._schema = new_schema()
        with _translated(directory):
            if not create and not (directory / "meta.json").exists():
                raise IndexDamagedError(f"{directory} holds no index")
            self._index = tantivy.Index(self._schema, path=str(directory), reuse=not create)
            self._index.config_reader("Manual", 0)
            self._searcher = self._index.searcher()

    @property
    def size_units(self) -> int:
        """How many units can be found."""
        return int(self._searcher.num_docs)

    def reload(self) -> None:
        """See what others have committed.

        Raises:
            IndexDamagedError: the files cannot be read.
        """
        with _translated(self.directory):
            self._index.reload()
            self._searcher = self._index.searcher()

    def write(self, documents: Iterable[Document], removed: Iterable[str] = ()) -> None:
        """Replace or add ``documents``, take ``removed`` ids out, all at once, and see the result.

        The caller excludes other writers, and gives ``cleaned`` documents: a value of a wrong type
        would end tantivy's thread.

        Raises:
            IndexDamagedError: the files cannot be written; what was there before is still there.
        """
        documents = list(documents)
        size_bytes = _WRITER_BYTES if len(documents) < _BULK_DOCUMENTS else _BULK_WRITER_BYTES
        with _translated(self.directory):
            writer = self._index.writer(size_bytes, 1)
            try:
                for name in removed:
                    writer.delete_documents_by_term("key", key_text(name))
                for document in documents:
                    writer.delete_documents_by_term("key", key_text(document.id))
                    for record in records_of(document):
                        writer.add_document(record)
                writer.commit()
            finally:
                writer.wait_merging_threads()  # ends the threads and frees tantivy's lock
        self.reload()

    def search(self, query: Weighted, count: int, where: Filter) -> list[Found]:
        """Return the best documents, best first; of equals the newer, then the one whose id sorts first.

        Raises:
            IndexDamagedError: the files cannot be read.
        """
        return self.load(self.candidates(query, count, where), count)

    def candidates(self, query: Weighted, count: int, where: Filter) -> list[Candidate]:
        """Return all documents among the best units, at least ``count`` if there are as many; best first.

        Raises:
            IndexDamagedError: the files cannot be read.
        """
        limit = max(_MIN_UNITS, count * _UNITS_PER_DOCUMENT)
        with _translated(self.directory):
            asked = self._asked(query)
            units = self._units(asked, limit)
            admitted = units
            if where != ANY:
                sieve = Sieve(where)
                admitted = [unit for unit in units if sieve.admits(unit[2], unit[3])]
            if len(admitted) < len(units) == limit:  # others took places: ask again among the admitted alone
                admitted = self._units(self._narrowed(asked, where), limit)
            return _by_document(admitted)

    def load(self, ranked: Sequence[Candidate], count: int) -> list[Found]:
        """Return the first ``count`` of ``ranked``, which is best first; equals as ``search`` orders them.

        Candidates that are in the index no more are left out.

        Raises:
            IndexDamagedError: the files cannot be read.
        """
        found: list[Found] = []
        with _translated(self.directory):
            for version, score, _, shown in ranked:
                if len(found) >= count and score < found[count - 1].score:
                    break
                address = shown if shown is not None else self._head_of(version)
                if address is not None:
                    found.append(Found(version, score, self._stored(address)))
        found.sort(key=lambda each: (-each.score, -each.stored.created_at, each.stored.id))
        return found[:count]

    def heads(self) -> "Heads":
        """Return all documents that are in the index now.

        Raises:
            IndexDamagedError: the files cannot be read.
        """
        with _translated(self.directory):
            found = self._searcher.search(self._trait("h"), max(self.size_units, 1), count=False)
            addresses = [address for _, address in found.hits]

            def column(name: str) -> Any:
                return self._searcher.fast_field_values(name, addresses) if addresses else []

            return Heads(addresses, column("document"), column("bits"), column("project"))

    def text_at(self, address: Any) -> str:
        """Return the text of a unit.

        Raises:
            IndexDamagedError: the files cannot be read.
        """
        with _translated(self.directory):
            return self._stored(address).text

    def relevance(self, score: float, query: Weighted) -> float:
        """Return ``score`` as it compares between questions and between indexes of any size."""
        frequencies = [(weight, self._searcher.doc_freq("words", word)) for word, weight in query.wanted]
        return relevance(score, frequencies, self._searcher.num_docs)

    def digests(self) -> dict[str, str]:
        """Return the digest of each document in the index, by id.

        Raises:
            IndexDamagedError: the files cannot be read.
        """
        with _translated(self.directory):
            found = self._searcher.search(
                self._library.Query.all_query(), max(self.size_units, 1), count=False
            )
            stored = (self._stored(address) for _, address in found.hits)
            return {each.id: each.digest for each in stored}

    def _head_of(self, version: int) -> Any:
        """Return the address of a document's first unit, or None."""
        library, must = self._library.Query, self._library.Occur.Must
        asked = library.boolean_query(
            [(must, library.term_query(self._schema, "document", version)), (must, self._trait("h"))]
        )
        hits = self._searcher.search(asked, 1, count=False).hits
        return hits[0][1] if hits else None

    def _asked(self, query: Weighted) -> "tantivy.Query":
        library, schema = self._library.Query, self._schema
        should = self._library.Occur.Should
        return library.boolean_query(
            [
                (should, library.boost_query(library.term_query(schema, field, term, "freq"), weight))
                for field, term, weight in query.terms
            ]
        )

    def _narrowed(self, asked: "tantivy.Query", where: Filter) -> "tantivy.Query":
        library, occur = self._library.Query, self._library.Occur
        wanted = [[self._trait(f"k{KINDS.index(kind)}") for kind in where.kinds]] if where.kinds else []
        wanted += [[self._trait("t1")]] if where.trusted_only else []
        if where.project is not None:
            here = self._trait(f"p{key_of(where.project):x}")
            barred = where.excluded_elsewhere
            wanted.append([here] if barred is None else [here, self._without_facets(barred)])
        clauses = [(occur.Must, asked)]
        for queries in wanted:
            either = library.boolean_query([(occur.Should, query) for query in queries])
            clauses.append((occur.Must, library.const_score_query(either, 0.0)))
        return library.boolean_query(clauses)

    def _without_facets(self, facets: Iterable[str]) -> "tantivy.Query":
        library, occur = self._library.Query, self._library.Occur
        barred = [(occur.MustNot, self._trait(f"f{key_of(facet):x}")) for facet in facets]
        return library.boolean_query([(occur.Must, library.all_query()), *barred])

    def _trait(self, name: str) -> "tantivy.Query":
        return self._library.Query.term_query(self._schema, "traits", name, "basic")

    def _units(self, asked: "tantivy.Query", limit: int) -> list[tuple[float, int, int, int, Any]]:
        """Return score, document version, bits, project key and address of the best units."""
        hits = self._searcher.search(asked, limit, count=False).hits
        if not hits:
            return []
        addresses = [address for _, address in hits]
        columns = [
            self._searcher.fast_field_values(name, addresses) for name in ("document", "bits", "project")
        ]
        return [
            (score, document, bits, project, address)
            for (score, address), document, bits, project in zip(hits, *columns, strict=True)
        ]

    def _stored(self, address: Any) -> Stored:
        data = self._searcher.doc(address).get_first("stored")
        return _STORED.decode(data or b"")


_STORED = msgspec.msgpack.Decoder(Stored)


def _by_document(units: list[tuple[float, int, int, int, Any]]) -> list[Candidate]:
    """Return the documents that units belong to, best first; the units are best first too."""
    best: dict[int, dict[int, float]] = {}
    shown: dict[int, Any] = {}
    bits_of: dict[int, int] = {}
    for score, document, bits, _, address in units:  # plain numbers: this runs for every question
        part = bits >> 3 & 3
        found_parts = best.get(document)
        if found_parts is None:
            best[document] = {part: score}
            bits_of[document] = bits
        elif part not in found_parts:
            found_parts[part] = score
        # What is shown is the best passage; the summary only where there is none better.
        if part != _WHOLE and document not in shown:
            shown[document] = address
    candidates = [
        Candidate(document, fused(best[document], bits_of[document] >> 5 & 7), bits_of[document], address)
        for document, address in shown.items()
    ]
    candidates.sort(key=lambda each: -each.score)
    return candidates


@contextmanager
def _translated(directory: Path) -> Iterator[None]:
    """Turn whatever tantivy raises into our error."""
    try:
        yield
    except (ValueError, OSError, RuntimeError, OverflowError, msgspec.MsgspecError) as error:
        raise IndexDamagedError(f"the index in {directory} cannot be used: {_line(error)}") from error
    except BaseException as error:
        # A panic of the native code is no Exception, by its makers' choice; here it says: damaged.
        if type(error).__name__ != "PanicException":
            raise
        raise IndexDamagedError(f"the index in {directory} cannot be used: {_line(error)}") from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
