"""One generation of the lexical index: a directory of tantivy's, written and searched. Blocks.

tantivy gives BM25 over memory-mapped segments, commits that are atomic and tombstones.
What a term is comes from here: terms are written as words between blanks, each with the
letter of its scope before it.

Its writer starts threads that end with the write; an open index keeps one that sleeps: a
process that forks opens none.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from odek.errors import StoreError
from odek.index.damage import reason, translated
from odek.index.document import Document, version_of
from odek.index.records import key_text, new_schema, records_of
from odek.index.seal import SEAL, Seal, make_seal, verified
from odek.index.snapshot import Snapshot
from odek.storage.files import PRIVATE_FILE

if TYPE_CHECKING:
    import tantivy

__all__ = ["LexicalIndex"]

# A writer that has more writes fewer segments, and eight small ones are merged, which takes seconds in the
# end. 50 MB are opened as fast as the least that tantivy takes; more take longer.
_WRITER_BYTES = 50_000_000
_BULK_WRITER_BYTES = 100_000_000
_BULK_CHARACTERS = 200_000

# tantivy merges so many of about a size.
_MERGED_SEGMENTS = 8

# Fewer that are gone cost nothing worth the work; and half as many as there are make a query a third slower.
_MIN_REMOVED_UNITS = 2_000


class LexicalIndex:
    """An open generation; ``snapshot`` is what it held when it was read or written last.

    Args:
        directory: Its files; exists.
        create: Whether to begin a new one there.

    Raises:
        IndexDamagedError: there is none that can be read.
    """

    def __init__(self, directory: Path, *, create: bool = False) -> None:
        import tantivy

        self.directory = directory
        self.seal_path = directory / SEAL
        self._seal: Seal = {}
        self._schema = new_schema()
        self._merging: tantivy.IndexWriter | None = None
        with translated(directory):
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
        with translated(self.directory):
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
        self._commit(documents, [self.snapshot.term("key", key) for key in keys])
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
            with translated(self.directory):
                self._end(writer)

    def match(self, documents: Iterable[Document]) -> int:
        """Make ``documents`` the content; return how many were new, changed or gone.

        Raises:
            IndexDamagedError: as ``write``.
        """
        heads = self.snapshot.heads()
        there = dict(zip(heads.versions, heads.addresses, strict=True))
        wanted = {version_of(document): document for document in {d.id: d for d in documents}.values()}
        changed = [document for version, document in wanted.items() if version not in there]
        outdated = there.keys() - wanted.keys()
        with translated(self.directory):
            names = {self.snapshot.stored_at(there[version]).id for version in outdated}
        if changed or outdated:
            self._commit(changed, [self.snapshot.term("document", version) for version in outdated])
            self.finish_merge()
        return len(names.union(document.id for document in changed))

    @property
    def wants_compaction(self) -> bool:
        """Whether much of the files is of documents that were removed or replaced."""
        alive = self.snapshot.size - self.snapshot.removed
        return self.snapshot.removed > max(_MIN_REMOVED_UNITS, alive // 2)

    def _commit(self, documents: list[Document], outdated: list["tantivy.Query"]) -> None:
        """Add ``documents`` in the place of all that one of the queries finds; it may leave a merge."""
        characters = sum(len(document.text) + len(document.transcript) for document in documents)
        size_bytes = _WRITER_BYTES if characters < _BULK_CHARACTERS else _BULK_WRITER_BYTES
        with translated(self.directory):
            if self._seal:
                verified(self.directory)
        writer = self._open_writer(size_bytes)
        with translated(self.directory):
            try:
                for query in outdated:
                    writer.delete_documents_by_query(query)
                for document in documents:
                    for record in records_of(document):
                        writer.add_document(record)
                writer.commit()
                self._load()
                if self.snapshot.segments >= _MERGED_SEGMENTS:
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

    def _open_writer(self, size_bytes: int) -> "tantivy.IndexWriter":
        """Return a writer, which has tantivy's lock; without one nothing is wrong with the files.

        Raises:
            StoreError: there is none.
        """
        try:
            return self._index.writer(size_bytes, 1)
        except ValueError as error:
            raise StoreError(f"cannot write {self.directory}: {reason(error)}") from error

    def _end(self, writer: "tantivy.IndexWriter") -> None:
        """End the writer's threads and free tantivy's lock; seal what it leaves, and see it."""
        writer.wait_merging_threads()
        _make_private(self.directory)
        self._seal = make_seal(self.directory, self._seal)
        self._load()

    def _load(self) -> None:
        self._index.reload()
        self.snapshot = Snapshot(self.directory, self._schema, self._index.searcher())


def _make_private(directory: Path) -> None:
    """Take from others what tantivy lets them have; none of it was reachable, below a private directory."""
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # merged into another meanwhile
                if entry.stat(follow_symlinks=False).st_mode & 0o077:
                    os.chmod(entry.path, PRIVATE_FILE)  # noqa: PTH101 - some for each write
