"""How fast is Extended Memory? Recall, opening, adding, and memory, by the number of atoms.

Each size is measured in a process that has just begun, over a store that another one wrote. Texts are
seeded: words drawn by Zipf's law, 12 to a statement; questions take three of a statement's words.

- ``recall_ms``: question → atoms that are given, warm (p50, p95);
- ``open_and_answer_ms``: the store opened and the first question answered, imports done;
- ``add_one_ms``: one statement, stored and searchable; ``add_each_of_20_ms``: each in a batch of 20;
- ``memory_mb``: what the process has more than one that has imported the same (private and shared).

    python benchmarks/bench_atoms.py [--sizes 1000,16000,100000] [--directory PATH]

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
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import trio

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from odek.config.extended_settings import ExtendedSettings  # noqa: E402 - found beside this file
from odek.embedding.local import ProjectionEmbedder  # noqa: E402
from odek.memory.extended.atom import Atom, encode  # noqa: E402
from odek.memory.extended.atom_index import open_atom_index  # noqa: E402
from odek.memory.extended.atom_store import EXTENDED  # noqa: E402
from odek.memory.extended.service import ExtendedMemory, ExtendedParts  # noqa: E402
from odek.memory.extended.write import Draft  # noqa: E402

SIZES = (1_000, 16_000, 100_000)
QUESTIONS = 300
VOCABULARY = 20_000
WORDS = 12
TARGETS = {
    "recall_ms": {"1000": 0.5, "16000": 1.0, "100000": 4.0},
    "open_and_answer_ms": {"100000": 150},
    "add_one_ms": {"100000": 40},
    "add_each_of_20_ms": {"100000": 3},
    "memory_mb": {"100000": 120},
}


def main() -> None:
    """Measure and print; with ``--as`` be the process that is measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of atoms (%(default)s)")
    parser.add_argument("--directory", type=Path, help="on the disk to measure; a temporary one without it")
    parser.add_argument("--as", dest="part", choices=("write", "measure"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    if arguments.part == "write":
        write(arguments.directory, sizes[0])
    elif arguments.part == "measure":
        print(json.dumps(trio.run(measure, arguments.directory, sizes[0])))
    else:
        with tempfile.TemporaryDirectory(dir=arguments.directory) as scratch:
            print(json.dumps(report(Path(scratch), sizes), indent=2))


def report(scratch: Path, sizes: list[int]) -> dict[str, object]:
    """Return the figures of each size beside the targets."""
    found: dict[str, object] = {}
    for size in sizes:
        command = [sys.executable, __file__, "--sizes", str(size), "--directory", str(scratch / str(size))]
        subprocess.run([*command, "--as", "write"], check=True)
        done = subprocess.run([*command, "--as", "measure"], check=True, stdout=subprocess.PIPE)
        found[str(size)] = json.loads(done.stdout)
    return {
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "atoms": found,
        "targets": TARGETS,
    }


class Statements:
    """Seeded texts."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        names = random.Random(1)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = ["".join(names.choices(letters, k=names.randint(3, 9))) for _ in range(VOCABULARY)]
        self._weights = [1 / (rank + 10) for rank in range(VOCABULARY)]

    def text(self) -> str:
        """Return a statement."""
        return " ".join(self._random.choices(self._words, self._weights, k=WORDS))

    def question(self, text: str) -> str:
        """Return a question about a statement."""
        return "what about " + " ".join(self._random.sample(text.split(), 3)) + "?"


def write(directory: Path, size: int) -> None:
    """Write a store of so many atoms, and its index."""
    statements = Statements(size)
    chunks = directory / EXTENDED / "chunks"
    chunks.mkdir(parents=True)
    for number in range(size):
        atom = Atom(
            id=f"{number:032x}",
            text=statements.text(),
            type="fact",
            source_class="user_said",
            created_at="2026-05-01T10:00:00Z",
            project="/work/alpha",
        )
        (chunks / f"{atom.id}.md").write_bytes(encode(atom))
    open_atom_index(directory).rebuild()


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[ExtendedMemory]:
    """Yield the layer without a model."""
    parts = ExtendedParts(
        memory=directory,
        settings=ExtendedSettings(enabled=True),
        index=open_atom_index(directory),
        reader=open_atom_index(directory),
        embedder=ProjectionEmbedder(),
        project="/work/alpha",
        emit=lambda _: None,
        mask=str,
        now=lambda: datetime.now(UTC),
    )
    async with trio.open_nursery() as jobs:
        yield ExtendedMemory(parts, jobs)


async def measure(directory: Path, size: int) -> dict[str, float]:
    """Return the figures of one store."""
    statements = Statements(size)
    texts = [statements.text() for _ in range(size)]
    chosen = random.Random(2).sample(texts, QUESTIONS)
    questions = [statements.question(text) for text in chosen]
    with tempfile.TemporaryDirectory() as empty:
        async with opened(Path(empty)) as warm:  # imports alone
            await warm.add([Draft("a first statement")])
    before = memory_bytes()
    begun = time.perf_counter()
    async with opened(directory) as memory:
        await memory.recall(questions[0])
        figures = {"open_and_answer_ms": passed_ms(begun)}
        times: list[float] = []
        hits = 0
        for question, text in zip(questions, chosen, strict=True):
            begun = time.perf_counter()
            recalled = await memory.recall(question)
            times.append(passed_ms(begun))
            hits += text in {each.atom.text for each in recalled.atoms[:3]}
        figures |= {
            "recall_ms": round(statistics.median(times), 3),
            "recall_p95_ms": round(statistics.quantiles(times, n=20)[18], 3),
            "hit_at_3": round(hits / len(times), 3),
        }
        after = memory_bytes()
        figures["memory_mb"] = round((after[0] - before[0]) / 1e6, 1)
        figures["private_mb"] = round((after[1] - before[1]) / 1e6, 1)
        ones: list[float] = []
        for _ in range(9):
            draft = Draft(statements.text())
            begun = time.perf_counter()
            await memory.add([draft])
            ones.append(passed_ms(begun))
        figures["add_one_ms"] = statistics.median(ones)
        drafts = [Draft(statements.text()) for _ in range(20)]
        begun = time.perf_counter()
        await memory.add(drafts)
        figures["add_each_of_20_ms"] = round(passed_ms(begun) / len(drafts), 2)
    return figures


def memory_bytes() -> tuple[int, int]:
    """Return what of this process is in memory, and what of that is its own. Linux."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
    return sizes["Rss"], sizes["Private_Clean"] + sizes["Private_Dirty"]


def passed_ms(begun: float) -> float:
    """Return the milliseconds since ``begun``."""
    return round((time.perf_counter() - begun) * 1000, 2)


if __name__ == "__main__":
    main()
