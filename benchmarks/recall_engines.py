"""The engines that ``bench_recall`` compares: ours, the projection, and what others would take instead.

Each keeps documents in a directory and can be opened there by another process. Those that
are not installed say so by ``missing``.
"""

import json
import re
import sqlite3
import sys
import weakref
from collections.abc import Callable, Iterable
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import trio

from odek.embedding.projection import DIMS, FINGERPRINT, project
from odek.embedding.static import INSTALL, StaticEmbedder
from odek.index.document import Document
from odek.index.engine import open_index, terms_fingerprint

__all__ = ["ENGINES", "Documents", "Engine", "missing", "parameters"]

Documents = Callable[[], Iterable[Document]]
"""Returns the documents each time anew: half a million of them are never all in memory."""

_BATCH = 1_000
_WRITER_BYTES = 128_000_000


class Engine(Protocol):
    """Something that finds documents."""

    def build(self, documents: Documents) -> None:
        """Keep ``documents``, of which nothing is there yet."""

    def add(self, document: Document) -> None:
        """Keep one more; NotImplementedError where that means to build all anew."""

    def search(self, question: str, count: int) -> list[str]:
        """Return the ids of the best documents, best first."""

    def refresh(self) -> None:
        """Look whether there is something new, for engines whose search does not."""


class Odek:
    """The index of this project."""

    def __init__(self, directory: Path) -> None:
        self._documents: Documents = tuple
        self._index = open_index(directory / "index", "bench", self._source)

    def _source(self) -> Iterable[Document]:
        return self._documents()

    def build(self, documents: Documents) -> None:
        """Keep ``documents``."""
        self._documents = documents
        self._index.rebuild()

    def add(self, document: Document) -> None:
        """Keep one more."""
        self._index.add([document])

    def search(self, question: str, count: int) -> list[str]:
        """Return the ids of the best documents."""
        return [hit.id for hit in self._index.search(question, count, floor=-1)]

    def refresh(self) -> None:
        """Do nothing: each search looks."""


class Semantic:
    """The index of this project with the word vectors of ``odek[semantic]`` beside the words."""

    def __init__(self, directory: Path) -> None:
        self._documents: Documents = tuple
        self._embedder = StaticEmbedder()
        space = self._embedder.fingerprint
        self._index = open_index(directory / "index", "bench", self._source, space=space)
        trio.run(self._embedder.embed, ("",))  # loads the vectors

    def _source(self) -> Iterable[Document]:
        return self._documents()

    def build(self, documents: Documents) -> None:
        """Keep ``documents``, and give each its vector."""
        self._documents = documents
        self._index.rebuild()
        self._fill()

    def add(self, document: Document) -> None:
        """Keep one more."""
        self._index.add([document])
        self._fill()

    def search(self, question: str, count: int) -> list[str]:
        """Return the ids of the best documents."""
        # A short text is embedded without waiting, so that its coroutine ends at its first step: no loop
        # is started for each question, which would be most of the time measured.
        try:
            self._embedder.embed((question,)).send(None)
        except StopIteration as done:
            (vector,) = done.value
        else:
            raise ValueError(f"a question of {len(question)} characters is no short text; ask a shorter one")
        return [hit.id for hit in self._index.search(question, count, floor=-1, vector=vector)]

    def refresh(self) -> None:
        """Do nothing: each search looks."""

    def _fill(self) -> None:
        missing = iter(self._index.without_vectors(sys.maxsize))
        while batch := list(islice(missing, _BATCH)):
            made = trio.run(self._embedder.embed, [text for _, text in batch])
            self._index.set_vectors(dict(zip((version for version, _ in batch), made, strict=True)))


class Fts5:
    """SQLite's full text search."""

    def __init__(self, directory: Path) -> None:
        self._database = sqlite3.connect(directory / "fts5.db")
        weakref.finalize(self, self._database.close)  # it complains when it is only forgotten
        self._database.execute("PRAGMA journal_mode = WAL")
        tokens = "tokenize = 'porter unicode61'"
        self._database.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (id UNINDEXED, text, {tokens})"
        )

    def build(self, documents: Documents) -> None:
        """Keep ``documents``."""
        rows = ((document.id, _whole(document)) for document in documents())
        with self._database:
            self._database.executemany("INSERT INTO texts VALUES (?, ?)", rows)

    def add(self, document: Document) -> None:
        """Keep one more."""
        self.build(lambda: [document])

    def search(self, question: str, count: int) -> list[str]:
        """Return the ids of the best documents."""
        asked = " OR ".join(f'"{word}"' for word in _words(question)) or '""'
        statement = "SELECT id FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT ?"
        return [name for (name,) in self._database.execute(statement, (asked, count))]

    def refresh(self) -> None:
        """Do nothing: each search looks."""


class Projection:
    """Cosines of hashed words; rows in a mapped file."""

    def __init__(self, directory: Path) -> None:
        self._rows_path, self._ids_path = directory / "rows.f32", directory / "ids.json"
        self._ids: list[str] = []
        self._rows = np.zeros((0, DIMS), np.float32)
        self.refresh()

    def build(self, documents: Documents) -> None:
        """Keep ``documents``, behind those that are there."""
        source = iter(documents())
        with self._rows_path.open("ab") as file:
            while batch := list(islice(source, _BATCH)):
                file.write(np.stack(project([_whole(document) for document in batch])).tobytes())
                self._ids += [document.id for document in batch]
        self._ids_path.write_text(json.dumps(self._ids))
        self._map()

    def add(self, document: Document) -> None:
        """Keep one more."""
        self.build(lambda: [document])

    def search(self, question: str, count: int) -> list[str]:
        """Return the ids of the best documents."""
        cosines = self._rows @ project([question])[0]
        best = np.argpartition(cosines, -count)[-count:] if count < len(cosines) else np.arange(len(cosines))
        return [self._ids[at] for at in best[np.argsort(-cosines[best], kind="stable")]]

    def refresh(self) -> None:
        """Read the ids again and map the rows again."""
        if self._ids_path.exists():
            self._ids = json.loads(self._ids_path.read_text())
            self._map()

    def _map(self) -> None:
        shape = (len(self._ids), DIMS)
        self._rows = np.memmap(self._rows_path, np.float32, "r", shape=shape)


class Bm25s:
    """The package bm25s as its authors recommend it: English stop words, a stemmer, a mapped file."""

    def __init__(self, directory: Path) -> None:
        import bm25s
        import Stemmer

        self._directory = directory
        self._stemmer = Stemmer.Stemmer("english")
        self._ids: list[str] = []
        self._index: Any = None
        self._package: Any = bm25s
        if (directory / "ids.json").exists():
            self._ids = json.loads((directory / "ids.json").read_text())
            self._index = bm25s.BM25.load(directory / "bm25s", mmap=True)

    def build(self, documents: Documents) -> None:
        """Keep ``documents``."""
        texts = [_whole(document) for document in documents()]
        self._ids = [document.id for document in documents()]
        self._index = self._package.BM25()
        self._index.index(self._terms(texts), show_progress=False)
        self._index.save(self._directory / "bm25s", show_progress=False)
        (self._directory / "ids.json").write_text(json.dumps(self._ids))

    def add(self, document: Document) -> None:
        """Not possible: an addition makes everything anew."""
        raise NotImplementedError(document.id)

    def search(self, question: str, count: int) -> list[str]:
        """Return the ids of the best documents."""
        terms = self._terms([question])
        most = min(count, len(self._ids))
        numbers, scores = self._index.retrieve(terms, k=most, show_progress=False, n_threads=0)
        return [self._ids[at] for at, score in zip(numbers[0], scores[0], strict=True) if score > 0]

    def refresh(self) -> None:
        """Do nothing: what is built stays as it is."""

    def _terms(self, texts: list[str]) -> Any:
        return self._package.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)


class Tantivy:
    """tantivy by itself, with its own English tokenizer and its own BM25."""

    def __init__(self, directory: Path) -> None:
        import tantivy

        self._document = tantivy.Document
        schema = (
            tantivy.SchemaBuilder()
            .add_text_field("id", stored=True, tokenizer_name="raw")
            .add_text_field("text", tokenizer_name="en_stem")
            .build()
        )
        place = directory / "tantivy"
        place.mkdir(exist_ok=True)
        self._index = tantivy.Index(schema, path=str(place))

    def build(self, documents: Documents) -> None:
        """Keep ``documents``."""
        writer = self._index.writer(heap_size=_WRITER_BYTES)
        for document in documents():
            writer.add_document(self._document(id=document.id, text=_whole(document)))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def add(self, document: Document) -> None:
        """Keep one more."""
        self.build(lambda: [document])

    def search(self, question: str, count: int) -> list[str]:
        """Return the ids of the best documents."""
        query = self._index.parse_query(" ".join(f'"{word}"' for word in _words(question)), ["text"])
        searcher = self._index.searcher()
        found = searcher.search(query, count, count=False).hits
        return [searcher.doc(address)["id"][0] for _, address in found]

    def refresh(self) -> None:
        """Open what was written since."""
        self._index.reload()


ENGINES: dict[str, Callable[[Path], Engine]] = {
    "odek": Odek,
    "semantic": Semantic,
    "fts5": Fts5,
    "tantivy": Tantivy,
    "bm25s": Bm25s,
    "rp": Projection,
}


def missing(engine: str) -> str:
    """Return what to install for an engine, "" if it is there."""
    package, install = {"bm25s": ("bm25s", "pip install bm25s"), "semantic": ("wordllama", INSTALL)}.get(
        engine, ("", "")
    )
    return f"{package} is not installed: {install}" if package and not find_spec(package) else ""


def parameters(engine: str) -> str:
    """Return in a line what decides about an engine's answers."""
    match engine:
        case "odek":
            return terms_fingerprint()
        case "semantic":
            return f"{terms_fingerprint()}; vectors {StaticEmbedder().fingerprint}"
        case "fts5":
            return f"SQLite {sqlite3.sqlite_version}, porter unicode61, words joined by OR, bm25()"
        case "tantivy":
            return f"tantivy {version('tantivy')}, en_stem, words joined by OR"
        case "bm25s":
            return (
                f"bm25s {version('bm25s')}, Lucene's BM25, stemmer {version('PyStemmer')}, stop words, mapped"
            )
        case _:
            return f"{FINGERPRINT}, all cosines by one product"


def _whole(document: Document) -> str:
    return f"{document.text} {document.transcript}" if document.transcript else document.text


def _words(question: str) -> list[str]:
    return re.findall(r"\w+", question)
