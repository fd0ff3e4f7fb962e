"""How well and how fast are texts found by their words?

By the number of documents of some 75 words, each size and engine in processes that have just begun:

- ``build_s`` and ``files_mb``: made from nothing;
- ``open_ms``: opened, and the first question answered, imports done;
- ``query_ms``: the first three for a question of ten words (p50, p95, p99);
- ``add_ms``: one more document written, and found here; ``seen_ms``: found by another process's
  next question; ``private_mb``: memory of a reader besides the files, which all readers share.

With ``--sets DIRECTORY``, of each ``NAME.docs.jsonl`` (``id``, ``text``) the share of the questions
in ``NAME.queries.jsonl`` (``text``, ``relevant``) with a relevant document among the first one,
three and ten, and the mean reciprocal rank in ten. ``chat_sessions`` are what was said in ``chat_episodes``.

The engines: ``odek``, this index; ``fts5``, SQLite's, as ``porter unicode61`` ranked by ``bm25()``;
``rp``, the cosine of hashed words.

    python benchmarks/bench_recall.py [--sizes 500,5000,50000] [--engines odek,fts5,rp] [--sets DIRECTORY]

prints one JSON object.
"""

import argparse
import json
import os
import platform
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.bench_vectors import lines, milliseconds, private_mb, set_names  # noqa: E402
from odek.embedding.projection import project  # noqa: E402 - found beside this file
from odek.index.document import Document  # noqa: E402
from odek.index.engine import open_index  # noqa: E402

SIZES = (500, 5_000, 50_000)
QUESTIONS = 400
FOUND = 3
RANKED = 10


class Engine(Protocol):
    """Something that finds documents."""

    def build(self, documents: Sequence[Document]) -> None:
        """Keep ``documents``, of which nothing is there yet."""

    def add(self, document: Document) -> None:
        """Keep one more."""

    def search(self, question: str, count: int) -> list[str]:
        """Return the ids of the best documents, best first."""


class Odek:
    """The index of this project."""

    def __init__(self, directory: Path) -> None:
        self._documents: Sequence[Document] = ()
        self._index = open_index(directory / "index", "bench", lambda: self._documents)

    def build(self, documents: Sequence[Document]) -> None:
        """Keep ``documents``."""
        self._documents = documents
        self._index.rebuild()

    def add(self, document: Document) -> None:
        """Keep one more."""
        self._index.add([document])

    def search(self, question: str, count: int) -> list[str]:
        """Return the ids of the best documents."""
        return [hit.id for hit in self._index.search(question, count, floor=-1)]


class Fts5:
    """SQLite's full text search."""

    def __init__(self, directory: Path) -> None:
        self._database = sqlite3.connect(directory / "fts5.db")
        self._database.execute("PRAGMA journal_mode = WAL")
        tokens = "tokenize = 'porter unicode61'"
        self._database.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (id UNINDEXED, text, {tokens})"
        )

    def build(self, documents: Sequence[Document]) -> None:
        """Keep ``documents``."""
        rows = [(document.id, f"{document.text} {document.transcript}") for document in documents]
        with self._database:
            self._database.executemany("INSERT INTO texts VALUES (?, ?)", rows)

    def add(self, document: Document) -> None:
        """Keep one more."""
        self.build([document])

    def search(self, question: str, count: int) -> list[str]:
        """Return the ids of the best documents."""
        asked = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question)) or '""'
        statement = "SELECT id FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT ?"
        return [name for (name,) in self._database.execute(statement, (asked, count))]


class Projection:
    """Cosines of hashed words; all rows in memory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "rp.npz"
        self._ids: list[str] = []
        self._rows = np.zeros((0, 0), np.float32)
        if self._path.exists():
            kept = np.load(self._path)
            self._ids, self._rows = kept["ids"].tolist(), kept["rows"]

    def build(self, documents: Sequence[Document]) -> None:
        """Keep ``documents``."""
        rows = project([f"{document.text} {document.transcript}" for document in documents])
        self._rows = np.concatenate([self._rows, rows]) if self._ids else np.array(rows)
        self._ids += [document.id for document in documents]
        np.savez(self._path, ids=np.array(self._ids), rows=self._rows)

    def add(self, document: Document) -> None:
        """Keep one more."""
        self.build([document])

    def search(self, question: str, count: int) -> list[str]:
        """Return the ids of the best documents."""
        cosines = self._rows @ project([question])[0]
        best = np.argpartition(cosines, -count)[-count:] if count < len(cosines) else np.arange(len(cosines))
        return [self._ids[at] for at in best[np.argsort(-cosines[best], kind="stable")]]


ENGINES: dict[str, Any] = {"odek": Odek, "fts5": Fts5, "rp": Projection}


def main() -> None:
    """Measure and print; with ``--child`` be a process of the measurement."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="documents (%(default)s)")
    parser.add_argument("--engines", default=",".join(ENGINES), help="what is compared (%(default)s)")
    parser.add_argument("--sets", type=Path, help="questions and documents with known answers")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        work, engine, directory, size = arguments.child
        made = ENGINES[engine]
        figures = (build if work == "build" else costs)(made, Path(directory), int(size))
        print(json.dumps(figures))
        return
    names = arguments.engines.split(",")
    report: dict[str, Any] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
        "documents": {
            size: {name: measured(name, size) for name in names}
            for size in filter(None, arguments.sizes.split(","))
        },
    }
    if arguments.sets:
        report["sets"] = {name: qualities(arguments.sets, ENGINES[name]) for name in names}
    print(json.dumps(report, indent=2))


def measured(engine: str, size: str) -> dict[str, Any]:
    """Return what an engine costs, from two processes of their own."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as directory:
        for work in ("build", "costs"):
            command = [sys.executable, __file__, "--child", work, engine, directory, size]
            figures |= json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return figures


def build(made: Any, directory: Path, size: int) -> dict[str, float]:
    """Make the documents and let an engine keep them."""
    documents = corpus(size)
    started = time.perf_counter()
    made(directory).build(documents)
    seconds = time.perf_counter() - started
    used = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    return {"build_s": round(seconds, 2), "files_mb": round(used / 1e6, 1)}


def costs(made: Any, directory: Path, size: int) -> dict[str, Any]:
    """Return what it costs to ask an engine, and to add to it."""
    asked = questions(size)
    with tempfile.TemporaryDirectory() as other:  # what is imported late is imported here
        warm: Engine = made(Path(other))
        warm.build([Document("warm", "episode", "warm")])
        warm.search("warm", 1)
    before_mb = private_mb()
    started = time.perf_counter()
    reader: Engine = made(directory)
    reader.search(asked[0], FOUND)
    opened = round((time.perf_counter() - started) * 1e3, 3)
    times = sorted(milliseconds(partial(reader.search, question, FOUND)) for question in asked)
    used_mb = private_mb() - before_mb
    writer: Engine = made(directory)
    writer.search(asked[0], FOUND)
    added, seen = [], []
    for number in range(5):
        document = Document(f"new{number}", "episode", f"zebra{number} {asked[number]}")
        added.append(milliseconds(partial(writer.add, document)))
        seen.append(milliseconds(partial(reader.search, f"zebra{number}", FOUND)))
    return {
        "open_ms": opened,
        "query_ms": {
            name: times[int(len(times) * share)]
            for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
        },
        "add_ms": statistics.median(added),
        "seen_ms": statistics.median(seen),
        "private_mb": round(used_mb, 1),
    }


def vocabulary() -> list[str]:
    """Return made-up words, the frequent ones first."""
    random_ = random.Random(1)
    syllables = [first + second for first in "bcdfghjklmnprstvwz" for second in "aeiou"]
    return list(
        dict.fromkeys("".join(random_.choices(syllables, k=random_.randint(2, 4))) for _ in range(40_000))
    )


def corpus(size: int) -> list[Document]:
    """Return documents whose words are as unequally frequent as those of a language."""
    random_ = random.Random(2)
    words = vocabulary()
    weights = [1 / (rank + 3) for rank in range(len(words))]
    drawn = iter(random_.choices(words, weights, k=size * 75))
    return [
        Document(f"d{number}", "episode", " ".join(next(drawn) for _ in range(75)), created_at=number)
        for number in range(size)
    ]


def questions(size: int) -> list[str]:
    """Return questions of ten words, most of them from one document."""
    random_ = random.Random(3)
    documents = corpus(min(size, 5_000))
    common = vocabulary()[:20]
    return [
        " ".join([*random_.sample(random_.choice(documents).text.split(), 7), *random_.sample(common, 3)])
        for _ in range(QUESTIONS)
    ]


def qualities(directory: Path, made: Any) -> dict[str, dict[str, float]]:
    """Return how well an engine finds the documents of each set."""
    texts = {
        name: {line["id"]: line["text"] for line in lines(directory / f"{name}.docs.jsonl")}
        for name in set_names(directory)
    }
    said = texts.pop("chat_sessions", {})
    report = {}
    for name, documents in texts.items():
        asked = lines(directory / f"{name}.queries.jsonl")
        kept = [Document(key, "episode", text) for key, text in documents.items()]
        report[name] = quality(made, kept, asked)
        if documents.keys() <= said.keys():
            together = [Document(key, "episode", text, said[key]) for key, text in documents.items()]
            report[f"{name} and sessions"] = quality(made, together, asked)
    return report


def quality(made: Any, documents: Sequence[Document], asked: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return how well an engine answers the questions ``asked``."""
    with tempfile.TemporaryDirectory() as directory:
        engine: Engine = made(Path(directory))
        engine.build(documents)
        ranks = []
        for line in asked:
            ids, relevant = engine.search(line["text"], RANKED), set(line["relevant"])
            ranks.append(next((at for at, name in enumerate(ids, 1) if name in relevant), 0))
    shares = {
        f"hit_at_{most}": statistics.mean(0 < rank <= most for rank in ranks) for most in (1, FOUND, RANKED)
    }
    shares["mrr_at_10"] = statistics.mean(1 / rank if rank else 0 for rank in ranks)
    return {name: round(share, 3) for name, share in shares.items()}


if __name__ == "__main__":
    main()
