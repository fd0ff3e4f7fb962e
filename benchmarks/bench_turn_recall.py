"""How long does a turn wait for what it is given of earlier sessions? By the number of episodes.

Each size is measured in a process that has just begun, over a home that another one wrote: an episode
and its session for each, of seeded words drawn by Zipf's law. Questions take words of a session.

- ``recall_ms``: question → the block of text beside the message, warm (p50, p95): each was asked before;
- ``index_ms``: of that the search in the index;
- ``new_question_ms``: the same for questions that nobody asked, whose episodes are read from disk;
- ``fts5_ms``: SQLite's FTS5 for the questions that were asked before: the first three, of a row for each
  episode and its session;
- ``first_ms``: the memory opened and the first question answered, imports done and rules compiled, and no
  garbage collected, as in an agent until its first request (the middle of five processes);
- ``added_ms``: an episode that another process stored and did not index, until a question finds it;
- ``taken_up_ms``: an episode that was stored here, indexed; ``seen_ms``: it is found by a memory that was
  open before, which is what another process has;
- ``all_indexed_s``: from nothing until the index holds every episode and session, behind the agent.

    python benchmarks/bench_turn_recall.py [--sizes 500,5000] [--messages 12] [--directory PATH]

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
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from importlib import import_module
from pathlib import Path
from typing import Any

import trio

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from odek.cli import warmup  # noqa: E402 - found beside this file
from odek.config.memory_settings import MemorySettings  # noqa: E402
from odek.index.document import Filter  # noqa: E402
from odek.memory.context_text import context_text  # noqa: E402
from odek.memory.episode import Entry, Episode, Provenance, encode_index, preview  # noqa: E402
from odek.memory.episodes import EpisodeStore  # noqa: E402
from odek.memory.eviction import EpisodeLimits  # noqa: E402
from odek.memory.facts import FactLimits  # noqa: E402
from odek.memory.journal import digest  # noqa: E402
from odek.memory.service import Memory, MemoryParts, open_memory  # noqa: E402
from odek.sessions.texts import SessionTexts  # noqa: E402
from odek.trust.scan import scan  # noqa: E402

SIZES = (500, 5_000)
QUESTIONS = 300
VOCABULARY = 20_000
SUMMARY_WORDS = 110
SESSION_MESSAGES = 12
FIRST_PROCESSES = 5
MESSAGE_WORDS = 40
FILL_SECONDS = 600.0
IMPORTED = (
    "odek.memory.episode_finder",
    "odek.memory.excerpt",
    "odek.embedding.local",
    "odek.index.engine",
    "Stemmer",
    "tantivy",
)
CREATED_AT = "2026-05-01T10:00:00Z"
# By default the first episode that is stored would evict all but 500.
KEEP_ALL = EpisodeLimits(max_episodes=0)
TARGETS = {
    "recall_ms": {"500": 0.25, "of fts5_ms": 0.5},
    "first_ms": {"500": 10},
    "added_ms": {"500": 30},
    "taken_up_ms": {"500": 30},
}


def main() -> None:
    """Measure and print; with ``--as`` be a process of the measurement."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", default=",".join(map(str, SIZES)), help="numbers of episodes (%(default)s)"
    )
    parser.add_argument(
        "--messages", type=int, default=SESSION_MESSAGES, help="of each session (%(default)s)"
    )
    parser.add_argument("--directory", type=Path, help="on the disk to measure; a temporary one without it")
    parser.add_argument(
        "--as", dest="part", choices=("write", "fill", "first", "measure"), help=argparse.SUPPRESS
    )
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    texts = Texts(arguments.messages)
    match arguments.part:
        case "write":
            write(arguments.directory, sizes[0], texts)
        case "fill":
            print(json.dumps(trio.run(fill, arguments.directory)))
        case "first":
            print(json.dumps(trio.run(first, arguments.directory, texts)))
        case "measure":
            print(json.dumps(trio.run(measure, arguments.directory, sizes[0], texts)))
        case _:
            with tempfile.TemporaryDirectory(dir=arguments.directory) as scratch:
                print(json.dumps(report(Path(scratch), sizes, arguments.messages), indent=2))


def report(scratch: Path, sizes: list[int], messages: int) -> dict[str, object]:
    """Return the figures of each size beside the targets."""
    found: dict[str, object] = {}
    for size in sizes:
        command = [sys.executable, __file__, "--sizes", str(size), "--messages", str(messages)]
        command += ["--directory", str(scratch / str(size)), "--as"]
        subprocess.run([*command, "write"], check=True)
        figures = figures_of([*command, "fill"])
        firsts = [figures_of([*command, "first"])["first_ms"] for _ in range(FIRST_PROCESSES)]
        figures["first_ms"] = sorted(firsts)[FIRST_PROCESSES // 2]
        found[str(size)] = figures | figures_of([*command, "measure"])
    return {
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "messages": messages,
        "episodes": found,
        "targets": TARGETS,
    }


def figures_of(command: list[str]) -> dict[str, Any]:
    """Return what a process of the measurement prints."""
    figures: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return figures


class Texts:
    """Seeded texts: the same for the same number; ``messages`` are said in each session."""

    def __init__(self, messages: int) -> None:
        self._messages = messages
        names = random.Random(1)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = ["".join(names.choices(letters, k=names.randint(3, 9))) for _ in range(VOCABULARY)]
        self._weights = [1 / (rank + 10) for rank in range(VOCABULARY)]

    def of(self, seed: str, count: int) -> str:
        """Return ``count`` words."""
        return " ".join(random.Random(seed).choices(self._words, self._weights, k=count))

    def messages(self, number: int) -> list[str]:
        """Return what is said in a session."""
        return [self.of(f"{number}/{place}", MESSAGE_WORDS) for place in range(self._messages)]

    def question(self, number: int, asked: int) -> str:
        """Return a question about a session."""
        chosen = random.Random(f"{number}?{asked}")
        return "what about " + " ".join(chosen.sample(chosen.choice(self.messages(number)).split(), 4)) + "?"


def write(home: Path, size: int, texts: Texts) -> None:
    """Write a home with so many episodes and their sessions."""
    memory, sessions = home / "memory", home / "sessions"
    for directory in (memory, sessions):
        directory.mkdir(mode=0o700, parents=True)
    entries: list[Entry] = []
    for number in range(size):
        name, summary = f"20260501-{number:032x}", texts.of(f"summary {number}", SUMMARY_WORDS)
        (memory / f"{name}.md").write_text(summary)
        entries.append(
            Entry.of(
                Episode(
                    session_id=name,
                    turns=6,
                    created_at=CREATED_AT,
                    summary=preview(summary),
                    provenance=Provenance(),
                    content_hash=digest(summary),
                )
            )
        )
        messages = [
            {"role": "user" if place % 2 == 0 else "assistant", "content": text}
            for place, text in enumerate(texts.messages(number))
        ]
        session = {"id": name, "created_at": CREATED_AT, "updated_at": CREATED_AT, "messages": messages}
        (sessions / f"{name}.json").write_text(json.dumps(session))
    (memory / "index.json").write_bytes(encode_index(entries))


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[Memory]:
    """Yield the memory without a model."""
    parts = MemoryParts(settings=MemorySettings(), sessions=lambda: SessionTexts(home / "sessions"))
    async with open_memory(home / "memory", FactLimits(), parts) as memory:
        yield memory


async def ask(memory: Memory, query: str) -> str:
    """Do what a turn does, but for the record of why."""
    recalled = await memory.recall(query, explain=False)
    return context_text([], recalled.documents, await memory.fills())


async def fill(home: Path) -> dict[str, float]:
    """Return how long it takes until everything is indexed."""
    begun = time.perf_counter()
    async with opened(home) as memory:
        index = memory.index()
        while (await index.freshen(index.upkeep.kinds, seconds=FILL_SECONDS)).texts:
            pass
    return {"all_indexed_s": round(time.perf_counter() - begun, 1)}


async def first(home: Path, texts: Texts) -> dict[str, float]:
    """Return how long the first question of a process takes."""
    query = texts.question(0, 1)
    warmup.begin()
    import_all()
    begun = time.perf_counter()
    async with opened(home) as memory:
        answer = await ask(memory, query)
        taken = time.perf_counter() - begun
    if not answer:
        raise SystemExit("nothing was found")
    return {"first_ms": round(taken * 1_000, 1)}


def import_all() -> None:
    """Import what questions need, and compile the rules."""
    for name in IMPORTED:
        import_module(name)
    scan("")


async def measure(home: Path, size: int, texts: Texts) -> dict[str, object]:
    """Return the figures of a process that goes on."""
    numbers = random.Random(2).sample(range(size), min(QUESTIONS, size))
    queries = [texts.question(number, 1) for number in numbers]
    import_all()
    async with opened(home) as memory:
        new = [await timed(memory, query) for query in queries]
        warm = [await timed(memory, query) for query in queries]
        index, where, found = memory.index(), Filter(kinds=("episode",), trusted_only=True), []
        for query in queries:
            begun = time.perf_counter()
            await index.search(query, 8, where)
            found.append(time.perf_counter() - begun)
        added = [await added_seconds(home, memory, number) for number in range(5)]
        async with opened(home) as other:
            await ask(other, queries[0])
            taken_up = [await taken_up_seconds(home, other, memory, number) for number in range(5)]
    return {
        "recall_ms": spread(warm),
        "index_ms": spread(found),
        "new_question_ms": spread(new),
        "added_ms": round(statistics.median(added) * 1_000, 1),
        "taken_up_ms": round(statistics.median(here for here, _ in taken_up) * 1_000, 1),
        "seen_ms": round(statistics.median(there for _, there in taken_up) * 1_000, 1),
        "fts5_ms": spread(fts5_seconds(size, queries, texts)),
    }


async def timed(memory: Memory, query: str) -> float:
    """Return the seconds of one question."""
    begun = time.perf_counter()
    await ask(memory, query)
    return time.perf_counter() - begun


async def added_seconds(home: Path, memory: Memory, number: int) -> float:
    """Store an episode as another process would, and return how long it takes until a question finds it."""
    while memory.index().upkeep.is_merging:  # noqa: ASYNC110 - every seventh write; others come later
        await trio.sleep(0.05)
    store = EpisodeStore(home / "memory", KEEP_ALL)
    text = f"The harbour pilot number {number} prefers tea in a xylophone."
    await trio.to_thread.run_sync(
        lambda: store.write(f"added-{number}", text, turns=3, provenance=Provenance())
    )
    begun = time.perf_counter()
    await until_told(memory, f"which harbour pilot, number {number}, drinks tea in a xylophone?", text)
    return time.perf_counter() - begun


async def until_told(memory: Memory, query: str, text: str) -> None:
    """Ask until ``text`` is part of the answer: what was not done in time is done behind a question."""
    while text not in await ask(memory, query):  # noqa: ASYNC110 - each question begins it
        await trio.sleep(0.001)


async def taken_up_seconds(home: Path, memory: Memory, other: Memory, number: int) -> tuple[float, float]:
    """Store an episode; return how long it takes to index it, and until a question of ``other``."""
    store, name = EpisodeStore(home / "memory", KEEP_ALL), f"taken-up-{number}"
    text = f"The lighthouse keeper number {number} collects barometers."
    await trio.to_thread.run_sync(lambda: store.write(name, text, turns=3, provenance=Provenance()))
    begun = time.perf_counter()
    await memory.take_up([name])
    indexed = time.perf_counter()
    await until_told(other, f"which lighthouse keeper, number {number}, collects barometers?", text)
    return indexed - begun, time.perf_counter() - indexed


def fts5_seconds(size: int, queries: Sequence[str], texts: Texts) -> list[float]:
    """Return how long FTS5 takes for each question."""
    found: list[float] = []
    rows = ("\n".join([texts.of(f"summary {n}", SUMMARY_WORDS), *texts.messages(n)]) for n in range(size))
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE VIRTUAL TABLE texts USING fts5(body, tokenize='porter unicode61')")
        database.executemany("INSERT INTO texts VALUES (?)", ((row,) for row in rows))
        for query in [*queries, *queries]:
            begun = time.perf_counter()
            match = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", query.lower())))
            asked = "SELECT body FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT 3"
            database.execute(asked, (match,)).fetchall()
            found.append(time.perf_counter() - begun)
    return found[len(queries) :]


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return the middle and the slow end in milliseconds."""
    ordered = sorted(seconds)
    return {
        name: round(ordered[int(len(ordered) * share)] * 1_000, 3)
        for name, share in (("p50", 0.5), ("p95", 0.95))
    }


if __name__ == "__main__":
    main()
