"""One generation of the lexical index: a directory of tantivy's, written and searched. Blocks.

tantivy gives BM25 over memory-mapped segments, commits that are atomic and tombstones.
What a term is and what it counts comes from here: terms are written as words between
blanks, each with the letter of its scope before it, and asked for with a boost that turns
tantivy's idf, which is over all scopes, into that of the scopes searched.

Its writer starts threads that end with the write; an open index keeps one that sleeps: a
process that forks opens none. Its exceptions stop here, panics of its native code among
them.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from odek.errors import StoreError
from odek.index.document import Document, Filter, key_of, version_of
from odek.index.query import Asked, Plan, plan
from odek.index.ranking import Candidate, by_document
from odek.index.rarity import Frequencies, rarities_of
from odek.index.records import HEAD, LENGTH_TERM, Stored, key_text, new_schema, records_of
from odek.index.seal import SEAL, Seal, make_seal, verified
from odek.index.units import SCOPES, scopes_of
from odek.storage.files import PRIVATE_FILE

if TYPE_CHECKING:
    import tantivy

__all__ = ["Found", "Heads", "IndexDamagedError", "LexicalIndex"]

# A writer that has more writes fewer segments, and eight small ones are merged, which takes seconds in the
# end. 50 MB are opened as fast as the least that tantivy takes; more take longer.
_WRITER_BYTES = 50_000_000
_BULK_WRITER_BYTES = 100_000_000
_BULK_CHARACTERS = 200_000

# Units that are looked at for each document asked for: an episode has about eight. Twice as many find no
# better, and take a tenth longer. Where they are of too few documents, more are looked at.
_UNITS_PER_DOCUMENT = 4
_MORE_UNITS = 4
# A statement is one unit; several are looked at because of those that are of the same score.
_UNITS_PER_ATOM = 2
_MIN_UNITS = 32

# tantivy merges so many of about a size.
_MERGED_SEGMENTS = 8

# Fewer that are gone cost nothing worth the work; and half as many as there are make a query a third slower.
_MIN_REMOVED_UNITS = 2_000


class IndexDamagedError(StoreError):
    """The files of an index cannot be used; it is to be rebuilt from the texts."""


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
        self.seal_path = directory / SEAL
        self._seal: Seal = {}
        self._schema = new_schema()
        self._sizes: dict[str, int] = {}
        self._frequencies: dict[str, Frequencies] = {}
        self._merging: tantivy.IndexWriter | None = None
        with _translated(directory):
            if not create:
                self._seal = verified(directory)
            self._index = tantivy.Index(self._schema, path=str(directory), reuse=not create)
            self._index.config_reader("Manual", 0)
            self._load()

    def reload(self) -> None:
        """See what others have committed.

        Raises:
            IndexDamagedError: the files cannot be read.
        """
        with _translated(self.directory):
            self._seal = verified(self.directory)
            self._load()

    def write(
        self, documents: Iterable[Document], removed: Iterable[str] = (), *, leave_merge: bool = False
    ) -> None:
        """Replace or add ``documents``, take ``removed`` ids out, all at once, and see the result.

        The caller excludes other writers, and gives ``cleaned`` documents: a value of a wrong type
        would end tantivy's thread. With ``leave_merge`` it does so until ``finish_merge``.

        Raises:
            IndexDamagedError: the files cannot be written; what was there before is still there.
        """
        documents = list({document.id: document for document in documents}.values())  # the last counts
        keys = [*map(key_text, removed), *(key_text(document.id) for document in documents)]
        self._commit(documents, [self._term("key", key) for key in keys])
        if not leave_merge:
            self.finish_merge()

    @property
    def is_merging(self) -> bool:
        """Whether segments are merged since the last write, which everybody sees meanwhile."""
        return self._merging is not None

    def finish_merge(self) -> None:
        """Wait for the merge that the last write began, which may take seconds; without one do nothing.

        Raises:
            IndexDamagedError: the files cannot be written; what was there before is still there.
        """
        writer, self._merging = self._merging, None
        if writer is not None:
            with _translated(self.directory):
                self._end(writer)

    def match(self, documents: Iterable[Document]) -> int:
        """Make ``documents`` the content; return how many were new, changed or gone.

        Raises:
            IndexDamagedError: as ``write``.
        """
        heads = self.heads()
        there = dict(zip(heads.versions, heads.addresses, strict=True))
        wanted = {version_of(document): document for document in {d.id: d for d in documents}.values()}
        changed = [document for version, document in wanted.items() if version not in there]
        outdated = there.keys() - wanted.keys()
        with _translated(self.directory):
            names = {self._stored(there[version]).id for version in outdated}
        if changed or outdated:
            self._commit(changed, [self._term("document", version) for version in outdated])
            self.finish_merge()
        return len(names.union(document.id for document in changed))

    def candidates(
        self, asked: Asked, count: int, where: Filter, *, least: float = 0.0
    ) -> Iterable[Candidate]:
        """Return the documents among the best units that are of the ``least`` relevance, best first.

        Without it these are at least ``count`` if there are as many.

        Raises:
            IndexDamagedError: the files cannot be read.
        """
        units = count * (_UNITS_PER_ATOM if where.kinds == ("atom",) else _UNITS_PER_DOCUMENT)
        limit = min(max(_MIN_UNITS, units), max(self._size(), 1))
        with _translated(self.directory):
            planned, query = self._query(asked, where)
            while planned.terms:
                hits = self._searcher.search(query, limit, count=False).hits
                is_cut = len(hits) == limit < self._size()
                addresses = [address for _, address in hits]
                versions = self._column("document", addresses)
                if is_cut and len(set(versions)) < count:  # most are passages of a few long texts
                    limit = min(limit * _MORE_UNITS, self._size())
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

        Raises:
            IndexDamagedError: the files cannot be read.
        """
        found: list[Found] = []
        with _translated(self.directory):
            for each in ranked:
                if len(found) >= count and each.score < found[count - 1].score:
                    break
                address = each.address if each.address is not None else self._head_of(each.version)
                if address is not None:
                    found.append(Found(each.score, each.relevance, self._stored(address)))
        found.sort(key=lambda each: (-each.score, -each.stored.created_at, each.stored.id))
        return found[:count]

    def heads(self, versions: Iterable[int] | None = None) -> "Heads":
        """Return all documents that are in the index now, or those of some versions.

        Raises:
            IndexDamagedError: the files cannot be read.
        """
        with _translated(self.directory):
            if versions is None:
                found = self._searcher.search(self._term("traits", HEAD), max(self._size(), 1), count=False)
                addresses = [address for _, address in found.hits]
            else:
                addresses = [head for head in map(self._head_of, versions) if head is not None]
            columns = [self._column(name, addresses) for name in ("document", "bits", "project")]
            return Heads(addresses, *columns)

    def count(self) -> int:
        """Return how many documents are in the index now.

        Raises:
            IndexDamagedError: the files cannot be read.
        """
        with _translated(self.directory):
            return len(self._searcher.search(self._term("traits", HEAD), max(self._size(), 1)).hits)

    def text_at(self, address: Any) -> str:
        """Return the text of a unit.

        Raises:
            IndexDamagedError: the files cannot be read.
        """
        with _translated(self.directory):
            return self._stored(address).text

    @property
    def wants_compaction(self) -> bool:
        """Whether much of the files is of documents that were removed or replaced."""
        alive = self._searcher.num_docs
        return self._size() - alive > max(_MIN_REMOVED_UNITS, alive // 2)

    def _commit(self, documents: list[Document], outdated: list["tantivy.Query"]) -> None:
        """Add ``documents`` in the place of all that one of the queries finds; it may leave a merge."""
        characters = sum(len(document.text) + len(document.transcript) for document in documents)
        size_bytes = _WRITER_BYTES if characters < _BULK_CHARACTERS else _BULK_WRITER_BYTES
        with _translated(self.directory):
            if self._seal:
                verified(self.directory)
            writer = self._index.writer(size_bytes, 1)
            try:
                for query in outdated:
                    writer.delete_documents_by_query(query)
                for document in documents:
                    for record in records_of(document):
                        writer.add_document(record)
                writer.commit()
                self._load()
                if self._searcher.num_segments >= _MERGED_SEGMENTS:
                    # A merge may be on its way, which may take seconds: all see the write meanwhile, and who
                    # dies loses the merge alone. If it ends in the middle of this, it is waited for.
                    with suppress(OSError, StoreError):
                        _make_private(self.directory)
                        self._seal = make_seal(self.directory, self._seal)
                        self._merging = writer
            except BaseException:
                writer.wait_merging_threads()
                raise
            if self._merging is None:
                self._end(writer)

    def _end(self, writer: "tantivy.IndexWriter") -> None:
        """End the writer's threads and free tantivy's lock; seal what it leaves, and see it."""
        writer.wait_merging_threads()
        _make_private(self.directory)
        self._seal = make_seal(self.directory, self._seal)
        self._load()

    def _load(self) -> None:
        self._index.reload()
        self._searcher = self._index.searcher()
        self._frequencies.clear()
        self._sizes = {scope: self._frequency(scope + LENGTH_TERM) for scope in SCOPES}

    def _size(self) -> int:
        """Return how many units there are, those included that were removed since the last merge."""
        return sum(self._sizes.values())

    def _frequency(self, term: str) -> int:
        return self._searcher.doc_freq("terms", term)

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
        library, must = self._library.Query, self._library.Occur.Must
        asked = library.boolean_query(
            [(must, self._term("document", version)), (must, self._term("traits", HEAD))]
        )
        hits = self._searcher.search(asked, 1, count=False).hits
        return hits[0][1] if hits else None

    def _query(self, asked: Asked, where: Filter) -> "tuple[Plan, tantivy.Query]":
        library, should = self._library.Query, self._library.Occur.Should
        scopes = [scope for scope in scopes_of(where) if self._sizes[scope]]
        planned = plan(asked, sum(self._sizes[scope] for scope in scopes), self._frequencies_in(scopes))
        rarities, schema = rarities_of(self._size()), self._schema
        term_query, boost_query = library.term_query, library.boost_query
        clauses = []
        for scope in scopes:
            frequencies = self._frequencies_in([scope])
            for term, counts in planned.terms:
                if times := frequencies[term]:
                    asking = term_query(schema, "terms", scope + term, "freq")
                    clauses.append((should, boost_query(asking, counts / rarities[times])))
        query = library.boolean_query(clauses)
        return planned, query if where.project is None else self._narrowed(query, where)

    def _narrowed(self, asked: "tantivy.Query", where: Filter) -> "tantivy.Query":
        """Return ``asked`` of the documents of a project, and of others as far as the filter lets them."""
        library, occur = self._library.Query, self._library.Occur
        here = self._term("traits", f"p{key_of(where.project or ''):x}")
        if where.excluded_elsewhere is None:
            return library.boolean_query(
                [(occur.Must, asked), (occur.Must, library.const_score_query(here, 0.0))]
            )
        barred = [
            library.boolean_query(
                [(occur.Must, self._term("traits", f"f{key_of(facet):x}")), (occur.MustNot, here)]
            )
            for facet in where.excluded_elsewhere
        ]
        return library.boolean_query([(occur.Must, asked), *((occur.MustNot, query) for query in barred)])

    def _term(self, field: str, term: str | int) -> "tantivy.Query":
        return self._library.Query.term_query(self._schema, field, term, "basic")

    def _stored(self, address: Any) -> Stored:
        data = self._searcher.doc(address).get_first("stored")
        return _STORED.decode(data or b"")


_STORED = msgspec.msgpack.Decoder(Stored)


def _make_private(directory: Path) -> None:
    """Take from others what tantivy lets them have; none of it was reachable, below a private directory."""
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # merged into another meanwhile
                if entry.stat(follow_symlinks=False).st_mode & 0o077:
                    os.chmod(entry.path, PRIVATE_FILE)  # noqa: PTH101 - some for each write


@contextmanager
def _translated(directory: Path) -> Iterator[None]:
    """Turn whatever tantivy raises into our error."""
    try:
        yield
    except (StoreError, ValueError, OSError, RuntimeError, OverflowError, msgspec.MsgspecError) as error:
        raise IndexDamagedError(f"the index in {directory} cannot be used: {_line(error)}") from error
    except BaseException as error:
        # A panic of the native code is no Exception, by its makers' choice; here it says: damaged.
        if type(error).__name__ != "PanicException":
            raise
        raise IndexDamagedError(f"the index in {directory} cannot be used: {_line(error)}") from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
