"""The product's ways to find episodes, each over documents in a directory of its own."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Protocol

import trio

from odek.bench.corpus import BenchInputError
from odek.embedding.embedder import Embedder, EmbeddingError
from odek.index.document import Document, Filter
from odek.index.engine import Index, open_index, terms_fingerprint
from odek.memory.episode_index import EpisodeIndex
from odek.memory.episodes import EpisodeStore
from odek.memory.index_vectors import is_of_words
from odek.memory.journal import digest
from odek.memory.recall import Document as Episode
from odek.memory.recall import corpus_fingerprint
from odek.memory.vector_file import save_vectors

__all__ = ["NAMES", "IndexRanker", "ProjectionRanker", "Ranker", "Searcher", "default_names", "make_ranker"]

NAMES = ("auto", "words", "static", "rp")
"""``auto`` and ``rp`` as the setting ``memory.ranker`` has them; the others are what ``auto`` can mean."""

_FINGERPRINT = "bench 1"
# As a turn asks: episodes that may be recalled.
_WHERE = Filter(kinds=("episode",), trusted_only=True)
# Orders are compared to the end: what is too far to be recalled is the floor's business.
_NO_FLOOR = float("-inf")
_EMBEDDED_TEXTS = 256
_LIMITER_THREADS = 2

MakeEmbedder = Callable[[], Embedder]


class Searcher(Protocol):
    """Something that is open and answers."""

    async def search(self, question: str, count: int) -> list[str]:
        """Return the ids of at most ``count`` documents, best first."""
        ...


class Ranker(Protocol):
    """A way to find documents. ``parameters`` say all that decides about its answers."""

    name: str

    @property
    def parameters(self) -> dict[str, str]:
        """What it is, by name."""
        ...

    async def build(self, documents: Sequence[Document], directory: Path) -> None:
        """Keep ``documents`` in ``directory``, which is empty.

        Raises:
            EmbeddingError: there are no vectors.
            StoreError: the disk does not let it.
        """
        ...

    def open(self, documents: Sequence[Document], directory: Path) -> AbstractAsyncContextManager[Searcher]:
        """Open what was built of ``documents``."""
        ...


class IndexRanker:
    """The index of words, and with an ``embedder`` of vectors beside them."""

    def __init__(self, name: str, embedder: Embedder | None = None) -> None:
        self.name = name
        self._embedder = embedder

    @property
    def parameters(self) -> dict[str, str]:
        """The versions of all that the index is made of, and the space of the vectors."""
        told = {"finds by": "words" if self._embedder is None else "words and vectors"}
        told["index"] = terms_fingerprint()
        if self._embedder is not None:
            told["vectors"] = self._embedder.fingerprint
        return told

    async def build(self, documents: Sequence[Document], directory: Path) -> None:
        """Index ``documents``, vectors included."""
        index = self._index(documents, directory)
        index.rebuild()
        if self._embedder is None:
            return
        missing = iter(index.without_vectors(len(documents)))
        while batch := list(islice(missing, _EMBEDDED_TEXTS)):
            made = await self._embedder.embed([text for _, text in batch])
            index.set_vectors(dict(zip((version for version, _ in batch), made, strict=True)))

    @asynccontextmanager
    async def open(self, documents: Sequence[Document], directory: Path) -> AsyncGenerator[Searcher]:
        """Yield the index, opened anew."""
        yield _IndexSearcher(self._index(documents, directory), self._embedder)

    def _index(self, documents: Sequence[Document], directory: Path) -> Index:
        space = self._embedder.fingerprint if self._embedder is not None else ""
        return open_index(directory, _FINGERPRINT, lambda: documents, space=space)


class _IndexSearcher:
    def __init__(self, index: Index, embedder: Embedder | None) -> None:
        self._index = index
        self._embedder = embedder

    async def search(self, question: str, count: int) -> list[str]:
        vector = (await self._embedder.embed([question]))[0] if self._embedder is not None else None
        hits = self._index.search(question, count, _WHERE, floor=_NO_FLOOR, vector=vector)
        return [hit.id for hit in hits]


class ProjectionRanker:
    """The cosine of hashed words, of summaries alone; what sessions said it does not look at."""

    name = "rp"

    def __init__(self) -> None:
        from odek.embedding.local import ProjectionEmbedder

        self._embedder = ProjectionEmbedder()

    @property
    def parameters(self) -> dict[str, str]:
        """The space of the vectors."""
        return {
            "finds by": "the cosine of hashed words, summaries alone",
            "vectors": self._embedder.fingerprint,
        }

    async def build(self, documents: Sequence[Document], directory: Path) -> None:
        """Make the vectors and write them down."""
        episodes = _episodes(documents)
        made = await self._embedder.embed([episode.text for episode in episodes])
        vectors = {each.content_hash: vector for each, vector in zip(episodes, made, strict=True)}
        save_vectors(directory, self._embedder.fingerprint, corpus_fingerprint(episodes), vectors)

    @asynccontextmanager
    async def open(self, documents: Sequence[Document], directory: Path) -> AsyncGenerator[Searcher]:
        """Yield the vectors, which are read again."""
        async with trio.open_nursery() as nursery:
            index = EpisodeIndex(
                directory,
                EpisodeStore(directory),
                self._embedder,
                nursery,
                trio.CapacityLimiter(_LIMITER_THREADS),
            )
            yield _ProjectionSearcher(index, _episodes(documents))
            nursery.cancel_scope.cancel()


class _ProjectionSearcher:
    def __init__(self, index: EpisodeIndex, episodes: list[Episode]) -> None:
        self._index = index
        self._episodes = episodes

    async def search(self, question: str, count: int) -> list[str]:
        while True:
            try:
                hits = await self._index.nearest(question, self._episodes, count)
            except EmbeddingError:
                continue  # so many that they are made anew for longer than a turn would wait
            return [hit.document.session_id for hit in hits]


def _episodes(documents: Sequence[Document]) -> list[Episode]:
    return [Episode(each.id, "", each.text, digest(each.text)) for each in documents]


def default_names() -> list[str]:
    """Return what is compared when nothing is named: what is there on this machine."""
    from odek.embedding.static import StaticEmbedder
    from odek.errors import ConfigError

    try:
        StaticEmbedder("")
    except ConfigError:
        return ["auto", "rp"]
    return ["auto", "static", "rp"]


def make_ranker(name: str, configured: MakeEmbedder) -> Ranker:
    """Return the ranker of a name; ``configured`` makes the embedder that the configuration asks for.

    Raises:
        BenchInputError: there is none of this name.
        ConfigError: its package is not installed.
    """
    match name:
        case "auto":
            embedder = configured()
            return IndexRanker(name, None if is_of_words(embedder) else embedder)
        case "words":
            return IndexRanker(name)
        case "static":
            from odek.embedding.static import StaticEmbedder

            return IndexRanker(name, StaticEmbedder("--ranker"))
        case "rp":
            return ProjectionRanker()
        case _:
            raise BenchInputError(
                f"--ranker {name[:40]!a}: there is no such ranker; choose of {', '.join(NAMES)}"
            )
