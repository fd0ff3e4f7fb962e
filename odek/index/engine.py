"""The index of a store: found by its fingerprint, seen by every process, rebuilt from the texts. Blocks.

The texts are the truth: whatever is wrong with the files of the index, a plain scan of
the texts answers until it is there again. A rebuild makes a new generation aside, takes
over what changed meanwhile, and puts it in the place of the old one, which answers so long.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from odek.errors import StoreBusyError
from odek.index.damage import IndexDamagedError, translated
from odek.index.document import ANY, Document, Filter, Hit, cleaned
from odek.index.fusion import fuse
from odek.index.generations import Generations
from odek.index.lexical import LexicalIndex
from odek.index.query import Asked, ask
from odek.index.records import FORMAT
from odek.index.scan import scan
from odek.index.tokens import VERSION
from odek.index.units import Sieve
from odek.index.vectors import VectorIndex
from odek.storage.files import ensure_directory, remove_file
from odek.storage.locks import exclusive
from odek.text import without_surrogates

if TYPE_CHECKING:
    from odek.embedding.embedder import Vector

__all__ = ["RELEVANCE_FLOOR", "Index", "Source", "open_index", "terms_fingerprint"]

Source: TypeAlias = Callable[[], Iterable[Document]]
"""Returns all documents that the index should hold, as they are now."""

RELEVANCE_FLOOR = 2.0
"""What lies below has little to do with the question. Measured: docs/explanation/recall.md."""

_VECTORS = "vectors"


def open_index(directory: Path, fingerprint: str, source: Source, *, space: str = "") -> "Index":
    """Return the index in ``directory``, which is created if need be.

    Nothing is built: while ``needs_rebuild`` the texts themselves are searched. What is open keeps a
    thread of tantivy's asleep: a process that will fork without ``exec`` opens no index.

    Args:
        directory: For the index alone.
        fingerprint: Names what else decides about its content, such as the kinds of text.
        source: The texts, for a rebuild and for a search without an index.
        space: Names what makes the vectors, if documents are to have some. Those of another space are
            not read; documents are ``without_vectors`` then, until they are set anew.

    Raises:
        StoreError: the directory cannot be used.
    """
    ensure_directory(directory)
    return Index(directory, f"{terms_fingerprint()}, {fingerprint}", source, space)


def terms_fingerprint() -> str:
    """Name all that decides how texts become terms and what they are kept in, of whatever texts."""
    return f"terms {VERSION}, fields {FORMAT}, {_versions()}"


class Index:
    """Finds documents. Use from one thread at a time; any number of processes share the files."""

    def __init__(self, directory: Path, fingerprint: str, source: Source, space: str = "") -> None:
        self._directory = directory
        self._generations = Generations(directory, fingerprint)
        self._source = source
        self._space = space

    @property
    def needs_rebuild(self) -> bool:
        """Whether the texts are scanned for want of an index."""
        return self._generations.is_missing

    @property
    def changed_at_ns(self) -> int:
        """When the index was last written, in nanoseconds since 1970 by the disk's clock; 0 for never."""
        return self._generations.changed_at_ns

    @property
    def wants_compaction(self) -> bool:
        """Whether much of the files is of documents that were removed or replaced; see ``compact``."""
        lexical = self._generations.refresh()
        return lexical is not None and lexical.wants_compaction

    @property
    def is_warm(self) -> bool:
        """Whether a search would be answered by what is open: no file is to be opened or read again."""
        return self._generations.fresh is not None

    @property
    def damage(self) -> str:
        """What was found wrong with the files, in a line; empty when nothing was."""
        return self._generations.damage or (self._vectors.damage if self._vectors is not None else "")

    def count(self) -> int:
        """Return how many documents are in the index as it is on disk now; 0 without one."""
        lexical = self._generations.refresh()
        try:
            return lexical.snapshot.count() if lexical is not None else 0
        except IndexDamagedError as error:
            self._generations.give_up(error)
            return 0

    def search(
        self,
        query: str,
        count: int,
        where: Filter = ANY,
        *,
        floor: float = RELEVANCE_FLOOR,
        vector: "Vector | None" = None,
        beside: Sequence[Document] = (),
    ) -> list[Hit]:
        """Return the documents that ``query`` is about, best first, and none below the ``floor``.

        With its ``vector`` documents that are close to it are found too, whatever their words.
        Where there are no vectors to compare with, words alone decide.

        The few documents ``beside``, which are new or changed and cannot be added now, count instead of
        what the index has of them.
        """
        lexical = self._generations.refresh()
        found = self._found(lexical, query, count + len(beside), where, floor, vector)
        if lexical is not None and found is not None:
            return self._with(beside, found, lexical, query, count, where, floor) if beside else found
        return [hit for hit in scan(self._source(), query, count, where) if hit.relevance >= floor]

    def search_warm(
        self, query: str, count: int, where: Filter, *, floor: float, vector: "Vector | None"
    ) -> list[Hit] | None:
        """Return what ``search`` does, None unless what is open answers: no file is opened or read again."""
        return self._found(self._generations.fresh, query, count, where, floor, vector)

    def without_vectors(self, limit: int, where: Filter = ANY) -> list[tuple[int, str]]:
        """Return up to ``limit`` documents that have no vector yet: their version, and the text to embed.

        Only those that ``where`` admits, since texts may be sent to a server. Of long texts it is the
        first passage. Vectors of documents that are gone are removed.

        Raises:
            StoreError: that cannot be told.
        """
        vectors = self._vectors
        if vectors is None:
            return []
        known = vectors.versions()  # before the documents: a vector never comes before its document
        if (lexical := self._generations.refresh()) is None:
            return []
        heads = lexical.snapshot.heads()
        vectors.keep(known, heads.versions)
        admitted = Sieve(where).admits_all(heads.bits, heads.projects)
        missing = [at for at in vectors.missing(heads.versions) if admitted[at]]
        missing = missing[-limit:] if limit > 0 else []
        return [(heads.versions[at], lexical.snapshot.stored_at(heads.addresses[at]).text) for at in missing]

    def set_vectors(self, vectors: "Mapping[int, Vector]") -> None:
        """Give documents their vectors, by version; for versions that are gone nothing is done.

        Vectors of another size than those that are there take the place of them all.

        Raises:
            StoreError: not all of them have one now.
            ValueError: the vectors are not of one size.
        """
        lexical = self._generations.refresh()
        if self._vectors is None or lexical is None:
            return
        heads = lexical.snapshot.heads(vectors)
        labels = dict(zip(heads.versions, zip(heads.bits, heads.projects, strict=True), strict=True))
        self._vectors.put(vectors, labels)

    def add(self, documents: Iterable[Document]) -> None:
        """Add documents, or put them in the place of those with their ids; see ``update``."""
        self.update(documents)

    def remove(self, ids: Iterable[str]) -> None:
        """Take documents out; unknown ids are none the worse. See ``update``."""
        self.update((), ids)

    def update(
        self, documents: Iterable[Document], removed: Iterable[str] = (), *, leave_merge: bool = False
    ) -> None:
        """Add ``documents``, or put them in the place of those with their ids, and take others out; at once.

        Everybody sees it on return. Now and then segments are merged then, which may take seconds.
        With ``leave_merge`` that is not waited for: nobody can write until ``finish_merge`` is called.
        Without an index nothing is done: the texts are scanned, and a rebuild will read them.

        Raises:
            StoreError: it is not done; the index is as it was, or is to be rebuilt.
        """
        added = [cleaned(document) for document in documents]
        ids = [without_surrogates(name) for name in removed]
        if not added and not ids:
            return
        with self._generations.writing() as lexical:
            if lexical is not None:
                lexical.write(added, ids, leave_merge=leave_merge)

    @property
    def is_merging(self) -> bool:
        """Whether a merge was left under way."""
        return self._generations.is_merging

    def finish_merge(self) -> None:
        """Wait for a merge that was left under way, and let others write; without one do nothing.

        Raises:
            StoreError: it is not done; the index is as it was, or is to be rebuilt.
        """
        self._generations.finish_merge()

    def rebuild(self) -> bool:
        """Make the index anew from the texts; False when another process is doing so.

        Until it is done, the old one or a scan answers, and writes go on.

        Raises:
            StoreError: it cannot be written; what was there before still answers.
        """
        ensure_directory(self._directory)  # somebody may have removed it
        try:
            with exclusive(self._directory / "rebuild.lock", timeout_seconds=0):
                self._rebuild()
        except StoreBusyError:
            return False
        return True

    def compact(self) -> bool:
        """Drop what removals and many small writes left behind; False when another process is at it.

        The index is made anew, which takes as long as ``rebuild``.
        Afterwards nothing of a removed document is in the files, vectors included.

        Raises:
            StoreError: as ``rebuild``.
        """
        if not self.rebuild():
            return False
        if self._vectors is None:
            remove_file(self._directory / _VECTORS)
            return True
        known = self._vectors.versions()  # before the documents, as in ``without_vectors``
        if (lexical := self._generations.refresh()) is not None:
            self._vectors.keep(known, lexical.snapshot.heads().versions)
            self._vectors.compact()
        return True

    def reconcile(self) -> int:
        """Bring the index to what the texts are now; return how many documents differed.

        It is compacted if it ``wants_compaction`` then.

        Raises:
            StoreError: as ``add``.
        """
        with self._generations.writing() as lexical:
            differed = lexical.match(map(cleaned, self._source())) if lexical is not None else 0
        if self.wants_compaction:
            self.compact()
        return differed

    @cached_property
    def _vectors(self) -> VectorIndex | None:
        """The vectors of the documents, if they have some; loads numpy."""
        return VectorIndex(self._directory / _VECTORS, self._space) if self._space else None

    def _found(
        self,
        lexical: LexicalIndex | None,
        query: str,
        count: int,
        where: Filter,
        floor: float,
        vector: "Vector | None",
    ) -> list[Hit] | None:
        """Return what a generation finds, None if there is none or its files turn out to be damaged."""
        asked = ask(query)
        if not asked.words or count < 1:
            return []
        if lexical is None:
            return None
        try:
            return self._ranked(lexical, asked, count, where, floor, vector)
        except IndexDamagedError as error:
            self._generations.give_up(error)
            return None

    def _with(
        self,
        beside: Sequence[Document],
        found: list[Hit],
        lexical: LexicalIndex,
        query: str,
        count: int,
        where: Filter,
        floor: float,
    ) -> list[Hit]:
        """Return the best of what was ``found`` and of the documents ``beside``."""
        here = {document.id: cleaned(document) for document in beside}
        try:
            with translated(lexical.directory):
                scanned = scan(here.values(), query, count, where, others=lexical.snapshot.corpus(where))
        except IndexDamagedError as error:
            self._generations.give_up(error)
            return found[:count]
        hits = [hit for hit in found if hit.id not in here]
        hits += [hit for hit in scanned if hit.relevance >= floor]
        return sorted(hits, key=lambda hit: -hit.relevance)[:count]

    def _ranked(
        self,
        lexical: LexicalIndex,
        asked: Asked,
        count: int,
        where: Filter,
        floor: float,
        vector: "Vector | None",
    ) -> list[Hit]:
        closeness = None
        if vector is not None and self._vectors is not None:
            closeness = self._vectors.closeness(vector, where)
        if closeness is None:
            candidates = lexical.snapshot.candidates(asked, count, where, least=floor)
        else:
            by_words = lexical.snapshot.candidates(asked, count, where)
            candidates = fuse(by_words, closeness, count, least=floor, telling=RELEVANCE_FLOOR)
        found = lexical.snapshot.load(candidates, count)
        return [
            Hit(
                each.stored.id,
                each.stored.kind,
                each.score,
                each.relevance,
                each.stored.text,
                each.stored.created_at,
                each.stored.state,
            )
            for each in found
        ]

    def _rebuild(self) -> None:
        with self._generations.replacing() as lexical:
            lexical.write(cleaned(document) for document in self._source())
            with self._generations.lock():
                lexical.match(map(cleaned, self._source()))
                self._generations.publish(lexical)
        self._generations.sweep()


def _versions() -> str:
    """Return what the files were written by: another version's are made anew."""
    import Stemmer
    from tantivy.tantivy import __version__ as tantivy_version

    return f"tantivy {tantivy_version}, stemmer {Stemmer.version()}"
