"""Keeping the index equal to the texts: what changed is read again, in small steps. Blocks.

A missing index begins with short forms of the texts, so that it answers soon; the whole
texts follow as if they had changed. Whatever step a process dies at, the next goes on.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from odek.errors import StoreBusyError, StoreError
from odek.index.document import Document, Filter, Kind
from odek.memory.catalogue import Catalogue
from odek.memory.episode_reader import EpisodeReader
from odek.memory.index_differences import Comparison, Difference, marks_beside
from odek.memory.index_texts import EpisodeTexts, Look, Sessions, Texts, document_id
from odek.memory.watch import Scan
from odek.storage.files import ensure_directory
from odek.storage.locks import HeldLock, hold

if TYPE_CHECKING:
    from odek.embedding.embedder import Vector
    from odek.index.engine import Index

__all__ = ["EPISODES", "INDEX_DIRECTORY", "IndexUpkeep", "Left", "upkeep_of"]

INDEX_DIRECTORY = "index"
"""Below the memory's directory; everything in it can be made anew."""

FINGERPRINT = "memory 2"
"""Of what is indexed of a text: a change of that needs a new number."""

EPISODES: tuple[Kind, ...] = ("episode",)

STEP_CHARACTERS = 250_000
"""Written at once, in about half a second. Smaller steps make more segments, which are merged again."""

FEW_TEXTS = 16
"""Read and searched without an index in some 20 ms, unless their sessions are long."""


class Left(msgspec.Struct, frozen=True):
    """What is still to be done: ``texts`` are to be read again; or there ``is_missing`` an index at all.

    It ``is_others`` when another process, or a merge, keeps it from being written now. If that is little,
    ``ids`` are the documents: they can be read and searched themselves.
    """

    texts: int = 0
    is_missing: bool = False
    is_others: bool = False
    ids: tuple[str, ...] = ()


class IndexUpkeep:
    """Brings one directory's index up to its texts. For one thread at a time; processes take turns.

    Args:
        directory: Of the index; made when it is built.
        texts: What is indexed; the kinds named first come first.
        look: Begins a look at what is on disk; it is given the memory's directory if somebody has just
            looked at that.
        space: Names what the vectors of the episodes mean, "" if they have none.
        poll: Called between texts and while waiting; may raise to give up.
    """

    def __init__(
        self,
        directory: Path,
        texts: Sequence[Texts],
        look: Callable[[Scan | None], Look],
        *,
        space: str = "",
        poll: Callable[[], None] = lambda: None,
    ) -> None:
        self.directory = directory
        self._look = look
        self._space = space
        self._texts = tuple(texts)
        self._poll = poll
        self._catalogue = Catalogue(directory)
        self._compared = Comparison(self._texts, self._catalogue)
        self._lock = directory / "texts.lock"
        self._writer: Index | None = None
        self._merging: HeldLock | None = None
        self._built: list[str] = []

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What is indexed."""
        return tuple(texts.kind for texts in self._texts)

    def another(self) -> "IndexUpkeep":
        """Return one for another thread: the two take turns as processes do."""
        return IndexUpkeep(self.directory, self._texts, self._look, space=self._space, poll=self._poll)

    def open(self) -> "Index":
        """Return the index for searching, apart from the one that is written to; it scans nothing.

        Raises:
            StoreError: its directory cannot be used.
        """
        from odek.index.engine import open_index

        return open_index(self.directory, FINGERPRINT, tuple, space=self._space)

    def count(self, kind: Kind) -> int:
        """Return how many texts of a kind are in the index."""
        return sum(name.startswith(f"{kind}/") for name in self._catalogue.read())

    def briefs(self, kinds: Collection[Kind]) -> list[Document]:
        """Return the texts in short, as they are searched while there is no index.

        Raises:
            StoreError: they cannot be listed.
        """
        return [brief for texts in self._texts if texts.kind in kinds for brief in texts.briefs()]

    def catch_up(
        self,
        kinds: Collection[Kind],
        *,
        seconds: float,
        only: Collection[str] | None = None,
        seen: Scan | None = None,
        leave_merge: bool = False,
    ) -> Left:
        """Bring texts of these kinds up to date for about so long; return what is left of them.

        Args:
            kinds: Which texts.
            seconds: For reading and writing; a step that is begun is finished.
            only: The ids of the documents to look at, None for all.
            seen: The memory's directory as it is, if somebody has just looked.
            leave_merge: Whether not to wait for what a write leaves to be merged; see ``finish_merge``.

        Raises:
            StoreError: the index cannot be written, or the texts cannot be listed.
        """
        deadline = monotonic() + seconds
        left, marks = self._compared.differences(kinds, only, self._look(seen))
        if not self.directory.is_dir():
            return Left(len(left), is_missing=bool(left))
        if not left and only is None:
            self._settle(marks)
            return Left()
        if self.is_merging:
            return _left_to_others(left)
        try:
            with self._exclusive(seconds):
                if only is not None:  # another may just have indexed what is gone by now
                    left, marks = self._compared.differences(kinds, only, self._look(seen))
                elif self._catalogue.is_outdated:  # what has changed since is seen the next time
                    left, marks = self._compared.without_done(left), {}
                if left and self._index().needs_rebuild:
                    return Left(len(left), is_missing=True)
                while left:
                    left = self._step(left, leave_merge=leave_merge)
                    if monotonic() >= deadline or self.is_merging:
                        break
                self._catalogue.settle(marks_beside(left, marks))
        except StoreBusyError:
            return _left_to_others(left)
        except StoreError:
            if self.directory.is_dir():
                raise
            return Left(len(left), is_missing=True)  # it was removed meanwhile
        return Left(len(left))

    def read(self, document_ids: Collection[str]) -> list[Document]:
        """Return of some documents what there is to be indexed, whatever the index has of them."""
        found = [
            texts.read(name)
            for texts in self._texts
            for name in document_ids
            if name.startswith(document_id(texts.kind, ""))
        ]
        return [document for document in found if document is not None]

    @property
    def is_merging(self) -> bool:
        """Whether a merge was left under way, which keeps all others from writing."""
        return self._merging is not None

    def finish_merge(self) -> None:
        """Wait for the merge that was left under way, and let others write; without one do nothing.

        ``catch_up``, ``settle`` and ``read`` may be called meanwhile in another thread.

        Raises:
            StoreError: the index cannot be written.
        """
        if self._merging is not None:
            try:
                self._index().finish_merge()
            finally:
                lock, self._merging = self._merging, None
                lock.release()

    def is_settled(self, kind: Kind, seen: Scan | None = None) -> bool:
        """Tell whether the index has been found equal to the texts of a kind as they are now.

        Raises:
            StoreError: they cannot be listed.
        """
        look = self._look(seen)
        return any(
            self._compared.is_marked(texts.kind, texts.mark(look))
            for texts in self._texts
            if texts.kind == kind
        )

    def settle(self, seen: Scan | None = None) -> None:
        """Note of which kinds the index is equal to all texts, so that the next process need not compare.

        Raises:
            StoreError: the texts cannot be listed, or it cannot be noted.
        """
        look = self._look(seen)
        kinds = self.kinds if look.is_whole else EPISODES  # sessions have no list of their own
        left, marks = self._compared.differences(kinds, None, look)
        self._settle(marks_beside(left, marks))

    def build(self, *, afresh: bool = False) -> None:
        """Make the index of the texts in short, if there is none or it is wanted ``afresh``.

        Raises:
            StoreBusyError: another process is at it.
            StoreError: it cannot be written, or the texts cannot be listed.
        """
        ensure_directory(self.directory)
        with self._exclusive(0):
            if not afresh and not self._index().needs_rebuild:
                return
            self._catalogue.replace({})  # before: it must never know more than the index
            if self._index().rebuild():
                self._catalogue.replace(dict.fromkeys(self._built, ""))

    def tidy(self) -> bool:
        """Make the index anew if much of it is of texts that are gone; tell whether that was done.

        Raises:
            StoreBusyError: another process is at it.
            StoreError: it cannot be written, or the texts cannot be listed.
        """
        if not self.directory.is_dir() or not self._index().wants_compaction:
            return False
        self.build(afresh=True)
        return True

    def changed_at_ns(self) -> int:
        """Return when the index was last written, 0 for never; creates nothing."""
        return self._index().changed_at_ns if self.directory.is_dir() else 0

    def without_vectors(self, limit: int) -> list[tuple[int, str]]:
        """Return up to ``limit`` summaries that may be recalled and have no vector, by their version.

        Raises:
            StoreError: that cannot be told.
        """
        return self._index().without_vectors(limit, Filter(kinds=("episode",), trusted_only=True))

    def set_vectors(self, vectors: "Mapping[int, Vector]") -> None:
        """Give summaries their vectors.

        Raises:
            StoreError: they do not have them now.
        """
        try:
            self._index().set_vectors(vectors)
        except ValueError as error:
            raise StoreError(f"the vectors cannot be used: {error}") from error

    def _settle(self, marks: Mapping[str, str]) -> None:
        """Note what the index is equal to, unless somebody has changed it meanwhile."""
        if not marks or self.is_merging or not self.directory.is_dir():
            return
        with suppress(StoreBusyError), self._exclusive(0):
            if not self._catalogue.is_outdated:
                self._catalogue.settle(marks)

    @contextmanager
    def _exclusive(self, timeout_seconds: float) -> Iterator[None]:
        """Keep others from writing for a block, and go on to do so while a merge is under way after it.

        Raises:
            StoreBusyError: another process is at it.
        """
        self.finish_merge()
        lock = hold(self._lock, timeout_seconds=timeout_seconds, poll=self._poll)
        try:
            yield
        finally:
            if self._writer is not None and self._writer.is_merging:
                self._merging = lock
            else:
                lock.release()

    def _step(self, left: list[Difference], *, leave_merge: bool) -> list[Difference]:
        """Bring some of what differs into the index, and return the rest."""
        documents: list[Document] = []
        noted: dict[str, str | None] = {}
        size = 0
        for texts, name, version in left:
            document = None
            if version is not None:
                self._poll()
                document = texts.read(name)
            if document is not None:
                documents.append(document)
                size += len(document.text) + len(document.transcript)
            noted[name] = version
            if size >= STEP_CHARACTERS:
                break
        kept = {document.id for document in documents}
        self._index().update(documents, [name for name in noted if name not in kept], leave_merge=leave_merge)
        self._catalogue.note(noted)
        return left[len(noted) :]

    def _index(self) -> "Index":
        if self._writer is None:
            from odek.index.engine import open_index

            self._writer = open_index(self.directory, FINGERPRINT, self._source, space=self._space)
        return self._writer

    def _source(self) -> list[Document]:
        found = self.briefs(self.kinds)
        self._built = [document.id for document in found]
        return found


def upkeep_of(
    memory: Path,
    sessions: Sessions | None,
    *,
    episodes: EpisodeReader | None = None,
    space: str = "",
    poll: Callable[[], None] = lambda: None,
) -> IndexUpkeep:
    """Return the upkeep of the index of what is remembered below ``memory``, and of ``sessions``.

    Who reads ``episodes`` for other ends too gives the reader, so that their list is read once.
    """
    texts: list[Texts] = [EpisodeTexts(memory, episodes or EpisodeReader(memory), sessions, poll=poll)]
    texts += [sessions] if sessions is not None else []
    look = partial(Look, memory, sessions)
    return IndexUpkeep(memory / INDEX_DIRECTORY, texts, look, space=space, poll=poll)


def _left_to_others(left: Sequence[Difference]) -> Left:
    ids = tuple(each.id for each in left) if len(left) <= FEW_TEXTS else ()
    return Left(len(left), is_others=True, ids=ids)
