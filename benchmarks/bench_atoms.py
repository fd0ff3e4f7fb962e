"""How fast is Extended Memory? Recall, opening, adding, and memory, by the number of atoms.

Each size is measured in a process that has just begun, over a store that another one wrote. Texts are
seeded: words drawn by Zipf's law, 12 to a statement; questions take three of a statement's words.

- ``recall_ms``: question → atoms that are given, warm (p50, p95);
- ``open_and_answer_ms``: the store opened and the first question answered, imports done;
- ``turn_ms``: what the layer adds to a turn without a model: atoms, user model, texts, and what is begun
  beside the answer and after it (p50, p95);
- ``add_one_ms``: one statement, stored and searchable; ``add_each_of_20_ms``: each in a batch of 20 (p50,
  and the worst of the batches, in which the index merges its files);
- ``memory_mb``: what the process has more than one that has imported the same (private and shared).

With ``--sets DIRECTORY``, of the atoms in ``chat_atoms.docs.jsonl`` (``id``, ``text``) the share of the
questions in ``chat_atoms.queries.jsonl`` (``text``, ``relevant``) with a relevant atom among the first three:
of the ``index`` alone, of what it takes for relevant (``index_above_floor``), and of what a turn is given,
with atoms of one day (``turn``), and of a year with any confidence (``turn_aged``).

    python benchmarks/bench_atoms.py [--sizes 1000,16000,100000] [--directory PATH] [--sets DIRECTORY]

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
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import trio

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from odek.config.extended_settings import ExtendedSettings  # noqa: E402 - found beside this file
from odek.embedding.local import ProjectionEmbedder  # noqa: E402
from odek.index.engine import RELEVANCE_FLOOR  # noqa: E402
from odek.memory.extended.atom import Atom, atom_id_of_text, encode  # noqa: E402
from odek.memory.extended.atom_index import open_atom_index  # noqa: E402
from odek.memory.extended.atom_jobs import Said  # noqa: E402
from odek.memory.extended.atom_store import EXTENDED  # noqa: E402
from odek.memory.extended.nudges import NudgeLog  # noqa: E402
from odek.memory.extended.service import ExtendedMemory, ExtendedParts  # noqa: E402
from odek.memory.extended.session_atoms import SessionAtoms  # noqa: E402
from odek.memory.extended.tally import Tally  # noqa: E402
from odek.memory.extended.turns import AtomTurns, AtomTurnsParts  # noqa: E402
from odek.memory.extended.user_model import UserModelFile  # noqa: E402
from odek.memory.extended.write import ATOMS, Draft, atom_id_of  # noqa: E402

SIZES = (1_000, 16_000, 100_000)
QUESTIONS = 300
BATCHES = 9
FOUND = 3
VOCABULARY = 20_000
WORDS = 12
TARGETS = {
    "recall_ms": {"1000": 0.5, "16000": 1.0, "100000": 4.0},
    "open_and_answer_ms": {"100000": 150},
    "turn_ms": {"1000": 5, "16000": 5, "100000": 5},
    "add_one_ms": {"100000": 40},
    "add_each_of_20_ms": {"100000": 3},
    "memory_mb": {"100000": 120},
    "chat_atoms": "turn ≥ index",
}


def main() -> None:
    """Measure and print; with ``--as`` be the process that is measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of atoms (%(default)s)")
    parser.add_argument("--directory", type=Path, help="on the disk to measure; a temporary one without it")
    parser.add_argument("--sets", type=Path, help="where chat_atoms is; not measured without it")
    parser.add_argument("--as", dest="part", choices=("write", "measure"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    if arguments.part == "write":
        write(arguments.directory, sizes[0])
    elif arguments.part == "measure":
        print(json.dumps(trio.run(measure, arguments.directory, sizes[0])))
    else:
        with tempfile.TemporaryDirectory(dir=arguments.directory) as scratch:
            found = report(Path(scratch), sizes)
            if arguments.sets is not None:
                found["chat_atoms"] = trio.run(quality, Path(scratch) / "sets", arguments.sets)
            print(json.dumps(found, indent=2, ensure_ascii=False))


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
    """Yield the atoms."""
    async with opened_session(directory) as (memory, _):
        yield memory


@asynccontextmanager
async def opened_session(directory: Path) -> AsyncIterator[tuple[ExtendedMemory, SessionAtoms]]:
    """Yield the atoms, and the layer in a session without a model."""
    settings = ExtendedSettings(enabled=True)
    parts = ExtendedParts(
        memory=directory,
        settings=settings,
        index=open_atom_index(directory),
        reader=open_atom_index(directory),
        embedder=ProjectionEmbedder(),
        project="/work/alpha",
        emit=lambda _: None,
        mask=str,
        now=now,
    )
    user = UserModelFile(directory / EXTENDED, settings, now)
    async with trio.open_nursery() as jobs:
        memory = ExtendedMemory(parts, jobs)
        turns = AtomTurnsParts(
            memory=memory,
            user=user,
            model=None,
            jobs=None,
            said=lambda: Said((), 0),
            tally=Tally(directory / EXTENDED, memory.counters, now),
            emit=parts.emit,
        )
        yield (
            memory,
            SessionAtoms(
                memory,
                AtomTurns(turns, jobs),
                NudgeLog(directory / EXTENDED, settings, now),
                emit=parts.emit,
                starter=jobs,
                session="bench",
                turn=lambda: 1,
                last_seen="",
            ),
        )


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


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
    async with opened_session(directory) as (memory, session):
        await memory.recall(questions[0])
        figures = {"open_and_answer_ms": passed_ms(begun)}
        times: list[float] = []
        hits = 0
        for question, text in zip(questions, chosen, strict=True):
            begun = time.perf_counter()
            recalled = await memory.recall(question)
            times.append(passed_ms(begun))
            hits += text in {each.atom.text for each in recalled.atoms[:3]}
        figures |= two_of("recall_ms", times) | {"hit_at_3": round(hits / len(times), 3)}
        after = memory_bytes()
        figures["memory_mb"] = round((after[0] - before[0]) / 1e6, 1)
        figures["private_mb"] = round((after[1] - before[1]) / 1e6, 1)
        times = []
        for text in random.Random(3).sample(texts, QUESTIONS):
            question = statements.question(text)
            begun = time.perf_counter()
            await session.context(question, ())
            session.asked()
            session.finished()
            times.append(passed_ms(begun))
        figures |= two_of("turn_ms", times)
        ones: list[float] = []
        for _ in range(9):
            draft = Draft(statements.text())
            begun = time.perf_counter()
            await memory.add([draft])
            ones.append(passed_ms(begun))
        figures["add_one_ms"] = statistics.median(ones)
        times = []
        for _ in range(BATCHES):
            drafts = [Draft(statements.text()) for _ in range(20)]
            begun = time.perf_counter()
            await memory.add(drafts)
            times.append(passed_ms(begun) / len(drafts))
        figures["add_each_of_20_ms"] = round(statistics.median(times), 2)
        figures["add_each_of_20_worst_ms"] = round(max(times), 2)
    return figures


async def quality(directory: Path, sets: Path) -> dict[str, float]:
    """Return how often one of the first three atoms answers, by the index alone and through a turn."""
    docs, asked = lines(sets / "chat_atoms.docs.jsonl"), lines(sets / "chat_atoms.queries.jsonl")
    names = {atom_id_of_text(each["text"], "fact", ""): each["id"] for each in docs}
    figures: dict[str, float] = {}
    chance, begun = random.Random(4), now()
    for name, days in (("turn", 0), ("turn_aged", 365)):
        chunks = directory / name / EXTENDED / "chunks"
        chunks.mkdir(parents=True)
        for each in docs:
            atom = Atom(
                id=atom_id_of_text(each["text"], "fact", ""),
                text=each["text"],
                type="fact",
                source_class="user_said",
                created_at=(begun - timedelta(days=chance.random() * days)).isoformat(timespec="seconds"),
                confidence=round(chance.uniform(0.5, 1.0), 2) if days else 0.7,
            )
            (chunks / f"{atom.id}.md").write_bytes(encode(atom))
        index = open_atom_index(directory / name)
        index.rebuild()
        by_index = by_floor = by_turn = 0
        async with opened_session(directory / name) as (_, session):
            for question in asked:
                relevant = set(question["relevant"])
                hits = index.search(question["text"], FOUND, ATOMS, floor=-1)
                by_index += any(names[atom_id_of(hit.id)] in relevant for hit in hits)
                sure = [hit for hit in hits if hit.relevance >= RELEVANCE_FLOOR]
                by_floor += any(names[atom_id_of(hit.id)] in relevant for hit in sure)
                _, considered = await session.context(question["text"], ())
                given = [each.id for each in considered if each.outcome == "injected"][:FOUND]
                by_turn += any(names[atom_id] in relevant for atom_id in given)
        shares = {"index": by_index, "index_above_floor": by_floor, name: by_turn}
        figures |= {key: round(count / len(asked), 3) for key, count in shares.items()}
    return figures


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def two_of(name: str, times: list[float]) -> dict[str, float]:
    """Return the median of times and their 95th percentile."""
    return {
        name: round(statistics.median(times), 3),
        name.replace("_ms", "_p95_ms"): round(statistics.quantiles(times, n=20)[18], 3),
    }


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
