"""What do vectors add to words, and what do they cost?

By the number of rows of 256 numbers, each size in a process that has just begun:

- ``open_ms``: the file opened and checked, and the first question answered, imports done;
- ``query_ms``: a question compared with all rows, and the nearest of them (p50, p95);
- ``add_ms``: one more row written; ``seen_ms``: seen by another reader at its next question;
- ``private_mb``: memory of a reader besides the file, which all readers share.

With ``--sets DIRECTORY``, by words alone and together with the word vectors of
``odek[semantic]``: of each ``NAME.docs.jsonl`` (``id``, ``text``) the share of the questions
in ``NAME.queries.jsonl`` (``text``, ``relevant``) with a relevant document among the first
three, the mean reciprocal rank in ten, the share of what was found that the floor keeps, and
of the other sets' questions those that find nothing.

    python benchmarks/bench_vectors.py [--sizes 500,5000,50000] [--sets DIRECTORY]

prints one JSON object.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import trio

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from odek.embedding.static import StaticEmbedder  # noqa: E402 - found beside this file
from odek.index.document import ANY, Document  # noqa: E402
from odek.index.engine import Index, open_index  # noqa: E402
from odek.index.vectors import VectorIndex  # noqa: E402

SIZES = (500, 5_000, 50_000)
DIMS = 256
QUESTIONS = 300
FOUND = 3
NO_FLOOR = -1e9


def main() -> None:
    """Measure and print; with ``--file`` be a process of the measurement."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of rows (%(default)s)")
    parser.add_argument("--sets", type=Path, help="questions and documents with known answers")
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rows:
        write(arguments.file, arguments.rows)
        return
    if arguments.file:
        print(json.dumps(costs(arguments.file)))
        return
    report: dict[str, Any] = {"machine": f"{platform.machine()}, {os.cpu_count()} CPUs", "rows": {}}
    for size in arguments.sizes.split(","):
        with tempfile.TemporaryDirectory() as directory:
            command = [sys.executable, __file__, "--file", str(Path(directory) / "vectors")]
            subprocess.run([*command, "--rows", size], check=True)
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        report["rows"][size] = json.loads(done.stdout)
    if arguments.sets:
        report["sets"] = trio.run(qualities, arguments.sets)
    print(json.dumps(report, indent=2))


def write(path: Path, size: int) -> None:
    """Write ``size`` rows."""
    rows = np.random.default_rng(1).standard_normal((size, DIMS), dtype=np.float32)
    VectorIndex(path, "bench").put(dict(enumerate(rows)), dict.fromkeys(range(size), (1, 0)))


def costs(path: Path) -> dict[str, object]:
    """Return what the rows in a file cost."""
    questions = np.random.default_rng(2).standard_normal((QUESTIONS, DIMS), dtype=np.float32)
    before_mb = private_mb()
    reader = VectorIndex(path, "bench")
    opened = milliseconds(lambda: nearest(reader, questions[0]))
    queries = [milliseconds(partial(nearest, reader, question)) for question in questions]
    used_mb = private_mb() - before_mb
    writer = VectorIndex(path, "bench")
    size = len(writer.versions())
    added = milliseconds(lambda: writer.put({size: questions[0]}, {size: (1, 0)}))
    seen = milliseconds(lambda: nearest(reader, questions[0]))
    return {
        "open_ms": opened,
        "query_ms": spread(queries),
        "add_ms": added,
        "seen_ms": seen,
        "private_mb": round(used_mb, 1),
    }


def nearest(index: VectorIndex, question: "np.ndarray[Any, np.dtype[np.float32]]") -> None:
    """Ask once."""
    closeness = index.closeness(question, ANY)
    assert closeness is not None  # noqa: S101 - a benchmark of nothing
    closeness.nearest(FOUND)


async def qualities(directory: Path) -> dict[str, object]:
    """Return how well each set's documents are found."""
    embedder = StaticEmbedder()
    names = set_names(directory)
    asked = {name: lines(directory / f"{name}.queries.jsonl") for name in names}
    report: dict[str, object] = {}
    for name in names:
        documents = [
            Document(id=line["id"], kind="episode", text=line["text"])
            for line in lines(directory / f"{name}.docs.jsonl")
        ]
        others = [line for other in names if other[:4] != name[:4] for line in asked[other]]
        others = random.Random(1).sample(others, min(len(others), QUESTIONS))
        with tempfile.TemporaryDirectory() as scratch:
            index = open_index(Path(scratch), "bench", partial(list, documents), space=embedder.fingerprint)
            index.rebuild()
            missing = index.without_vectors(len(documents))
            vectors = await embedder.embed([text for _, text in missing])
            index.set_vectors(dict(zip((version for version, _ in missing), vectors, strict=True)))
            figures: dict[str, object] = {"documents": len(documents), "questions": len(asked[name])}
            for label, maker in (("words", None), ("words and vectors", embedder)):
                figures[label] = await quality(index, asked[name], others, maker)
        report[name] = figures
    return report


async def quality(
    index: Index,
    asked: Sequence[dict[str, Any]],
    others: Sequence[dict[str, Any]],
    maker: StaticEmbedder | None,
) -> dict[str, float]:
    """Return how well the questions ``asked`` are answered, and how quiet it is about the ``others``."""

    async def vector(text: str) -> Any:
        return (await maker.embed([text]))[0] if maker is not None else None

    ranks: list[float] = []
    found, kept = 0, 0
    for line in asked:
        relevant, question = set(line["relevant"]), await vector(line["text"])
        ids = [hit.id for hit in index.search(line["text"], 10, floor=NO_FLOOR, vector=question)]
        ranks.append(next((1 / (at + 1) for at, name in enumerate(ids) if name in relevant), 0.0))
        right = relevant.intersection(ids[:FOUND])
        above = {hit.id for hit in index.search(line["text"], FOUND, vector=question)}
        found, kept = found + len(right), kept + len(right & above)
    quiet = [not index.search(line["text"], FOUND, vector=await vector(line["text"])) for line in others]
    return {
        "hit_at_3": round(statistics.mean(rank > 1 / (FOUND + 1) for rank in ranks), 3),
        "mrr_at_10": round(statistics.mean(ranks), 3),
        "kept_by_floor": round(kept / max(found, 1), 3),
        "quiet": round(statistics.mean(quiet), 3) if quiet else 0.0,
    }


def set_names(directory: Path) -> list[str]:
    """Return the names of the sets in a directory."""
    return sorted(path.name.removesuffix(".queries.jsonl") for path in directory.glob("*.queries.jsonl"))


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def milliseconds(work: Any) -> float:
    """Return how long ``work`` takes."""
    started = time.perf_counter()
    work()
    return round((time.perf_counter() - started) * 1e3, 3)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile."""
    ordered = sorted(values)
    return {"p50": ordered[len(ordered) // 2], "p95": ordered[int(len(ordered) * 0.95)]}


def private_mb() -> float:
    """Return how much memory this process has besides files, in megabytes."""
    pages = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in pages if line.startswith("Anonymous")) / 1_024


if __name__ == "__main__":
    main()
