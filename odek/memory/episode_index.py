"""The episodes as recall sees them: their texts and vectors, kept up to date while they change.

Loaded with the first episode that there is: before that, nothing here is needed.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import trio

from odek.background import Starter
from odek.embedding.embedder import Embedder, cosine
from odek.errors import EmbeddingError, StoreError
from odek.memory.episodes import EpisodeStore
from odek.memory.journal import digest
from odek.memory.recall import Considered, Document, Hit, corpus_fingerprint
from odek.memory.vector_file import load_vectors, save_vectors
from odek.memory.watch import Scan, Stamp

if TYPE_CHECKING:
    from odek.embedding.embedder import Vector

__all__ = ["EpisodeIndex", "Library"]

WAIT_SECONDS = 2.0
"""A turn waits so long for vectors, and does without episodes when a backend is slower."""

BACK_OFF_SECONDS = 30.0
"""After a failure the backend is left alone, so that not every turn runs into it again."""

_T = TypeVar("_T")


class Library(msgspec.Struct, frozen=True):
    """The episodes at one moment: those that may be recalled, and why others may not."""

    documents: tuple[Document, ...] = ()
    left_out: tuple[Considered, ...] = ()


class EpisodeIndex:
    """Finds the episodes that are like a text. Everything derived from them is kept here.

    Args:
        directory: The memory's.
        store: Its episodes.
        embedder: Makes vectors.
        starter: Begins to make vectors while a turn does not wait for them.
        limiter: Bounds the threads.
    """

    def __init__(
        self,
        directory: Path,
        store: EpisodeStore,
        embedder: Embedder,
        starter: Starter,
        limiter: trio.CapacityLimiter,
    ) -> None:
        self.embedder = embedder
        self._directory = directory
        self._store = store
        self._starter = starter
        self._limiter = limiter
        self._library = Library()
        self._scan: Scan | None = None
        self._read: dict[str, tuple[Stamp, str, str]] = {}  # session id → stamp, text, rejection
        self._vectors: dict[str, Vector] = {}
        self._is_loaded = False
        self._building: trio.Event | None = None
        self._failed_at: float | None = None
        self._failure = ""

    async def library(self, seen: Scan) -> Library:
        """Return the episodes as they are; ``seen`` is the scan of now, which tells what to read again.

        Raises:
            StoreError: the index cannot be read.
        """
        if self._scan is None or seen != self._scan:
            self._library = await self._in_thread(partial(self._read_library, seen))
            self._scan = seen
        return self._library

    async def nearest(self, query: str, documents: Sequence[Document], count: int) -> list[Hit]:
        """Return the ``count`` documents most like ``query``, best first.

        A document whose vector is still being made is left out.

        Raises:
            EmbeddingError: there are no vectors now.
        """
        self._check_back_off()
        with trio.move_on_after(WAIT_SECONDS) as limit:
            await self._prepare(documents)
            try:
                (wanted,) = await self.embedder.embed([query])
            except EmbeddingError as error:
                self._fail(error)
                raise
        if limit.cancelled_caught:
            raise EmbeddingError(f"no vectors within {WAIT_SECONDS:g} s")
        self._check_back_off()
        known = [
            (doc, self._vectors[doc.content_hash]) for doc in documents if doc.content_hash in self._vectors
        ]
        hits = [Hit(doc, cosine(wanted, vector)) for doc, vector in known if vector.shape == wanted.shape]
        return sorted(hits, key=lambda hit: (-hit.score, hit.document.session_id))[:count]

    async def _prepare(self, documents: Sequence[Document]) -> None:
        """Begin to make the vectors that are missing, and wait until they are there."""
        if not self._is_loaded:
            load = partial(load_vectors, self._directory, self.embedder.fingerprint)
            self._vectors = await self._in_thread(load) | self._vectors
            self._is_loaded = True
        if self._building is None:
            missing = [doc for doc in documents if doc.content_hash not in self._vectors]
            if not missing:
                return
            self._building = trio.Event()
            self._starter.start_soon(self._build, missing, tuple(documents), self._building)
        if not self._vectors:  # while there are old ones, they answer
            await self._building.wait()
        else:
            with trio.move_on_after(WAIT_SECONDS / 4):
                await self._building.wait()

    async def _build(
        self, missing: Sequence[Document], documents: Sequence[Document], done: trio.Event
    ) -> None:
        """Make the vectors of ``missing``, keep those of ``documents``, and write them down."""
        try:
            made = await self.embedder.embed([document.text for document in missing])
            new = {doc.content_hash: vector for doc, vector in zip(missing, made, strict=True)}
            vectors = self._vectors | new
            self._vectors = {doc.content_hash: vectors[doc.content_hash] for doc in documents}
            self._failed_at = None
        except EmbeddingError as error:
            self._fail(error)
            return
        finally:
            self._building = None
            done.set()
        save = partial(
            save_vectors,
            self._directory,
            self.embedder.fingerprint,
            corpus_fingerprint(documents),
            dict(self._vectors),
        )
        try:
            await self._in_thread(save)
        except (StoreError, ValueError):
            return  # made anew by the next process

    def _fail(self, error: EmbeddingError) -> None:
        self._failed_at, self._failure = trio.current_time(), str(error)

    def _check_back_off(self) -> None:
        if self._failed_at is not None and trio.current_time() < self._failed_at + BACK_OFF_SECONDS:
            raise EmbeddingError(self._failure)

    def _read_library(self, seen: Scan) -> Library:
        documents: list[Document] = []
        left_out: list[Considered] = []
        read: dict[str, tuple[Stamp, str, str]] = {}
        for episode in self._store.read_index():
            session_id, provenance = episode.session_id, episode.provenance
            if not provenance.is_recallable:
                sources = ", ".join(provenance.sources)
                left_out.append(Considered("episode", session_id, "untrusted", reason=sources))
                continue
            stamp = seen.stamps.get(f"{session_id}.md")
            known = self._read.get(session_id)
            if known is None or stamp is None or known[0] != stamp:
                try:
                    found = self._store.read(session_id)
                except StoreError as error:
                    left_out.append(Considered("episode", session_id, "withheld", reason=str(error)))
                    continue
                known = (stamp or (0, 0, 0, 0), found.text, found.rejection)
            read[session_id] = known
            _, text, rejection = known
            if rejection:
                left_out.append(Considered("episode", session_id, "withheld", reason=rejection))
            elif text:
                documents.append(
                    Document(
                        session_id,
                        episode.created_at,
                        text,
                        digest(text),
                        untrusted=provenance.untrusted and not provenance.user_approved,
                    )
                )
        self._read = read
        return Library(tuple(documents), tuple(left_out))

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await trio.to_thread.run_sync(work, abandon_on_cancel=False, limiter=self._limiter)
