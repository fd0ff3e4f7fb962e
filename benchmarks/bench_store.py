"""How fast is the memory on disk? Adds by many processes, against SQLite, and opening large stores.

A *round* of a writer adds a fact and, once it has its share of the file, removes its oldest: the file
stays as large as real ones are. SQLite (WAL, synchronous=FULL) inserts and deletes the same rows, a
transaction each, in the same run and on the same disk, with each writer taking its turn.

- ``adds_per_second``: adds that were acknowledged, all writers together;
- ``p50_ms``, ``p99_ms``: time of one add, waiting for other writers included;
- ``open``: the index read by a process that has just begun, the text of one episode, and one episode stored.

    python benchmarks/bench_store.py [--seconds N] [--directory PATH]

prints one JSON object.
"""

import argparse
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from odek.memory.episode import Entry, Episode, Provenance, encode_index, preview
from odek.memory.episodes import EpisodeLimits, EpisodeStore
from odek.memory.facts import Fact, FactLimits, FactStore
from odek.memory.journal import digest

ROOT = Path(__file__).parents[1]
WRITERS = (1, 4, 16)
EPISODES = (500, 5_000, 50_000)
ENTRIES = 48  # of about 70 bytes: a file at its usual cap
REPEATS = 5


def main() -> None:
    """Measure and print; with ``--as`` be one of the writers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement (3)")
    parser.add_argument("--directory", type=Path, help="on the disk to measure; a temporary one without it")
    parser.add_argument(
        "--as", dest="writer", nargs=3, metavar=("KIND", "NAME", "SHARE"), help=argparse.SUPPRESS
    )
    arguments = parser.parse_args()
    if arguments.writer:
        kind, name, share = arguments.writer
        print(json.dumps(write(kind, arguments.directory, name, int(share), arguments.seconds)))
        return
    with tempfile.TemporaryDirectory(dir=arguments.directory) as scratch:
        print(json.dumps(measure(Path(scratch), arguments.seconds), indent=2))


def measure(scratch: Path, seconds: float) -> dict[str, object]:
    """Return the report."""
    adds = {
        str(writers): {kind: run_writers(scratch, kind, writers, seconds) for kind in ("odek", "sqlite")}
        for writers in WRITERS
    }
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "cpus": os.cpu_count(),
        "writers": adds,
        "open": {str(count): open_episodes(scratch / f"episodes-{count}", count) for count in EPISODES},
    }


def run_writers(scratch: Path, kind: str, writers: int, seconds: float) -> dict[str, float]:
    """Let so many processes write at once; return what they reached together."""
    directory = scratch / f"{kind}-{writers}" / "memory"
    directory.mkdir(parents=True, mode=0o700)
    if kind == "sqlite":
        with closing(connect(directory)) as database:
            database.execute("CREATE TABLE facts (id INTEGER PRIMARY KEY, target TEXT, text TEXT UNIQUE)")
    command = [sys.executable, __file__, "--seconds", str(seconds), "--directory", str(directory)]
    share = str(max(ENTRIES // writers, 1))
    started = [
        subprocess.Popen(
            [*command, "--as", kind, f"w{n}", share],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        for n in range(writers)
    ]
    for process in started:
        if process.stdout is None or process.stdout.readline() != "ready\n":
            sys.exit(f"a writer of {kind} did not start")
    for process in started:
        if process.stdin is not None:
            process.stdin.write("go\n")
            process.stdin.flush()
    times: list[float] = []
    fewest = 0
    for process in started:
        output, _ = process.communicate()
        mine = json.loads(output)
        fewest = min(fewest or len(mine), len(mine))
        times += mine
    percentiles = statistics.quantiles(times, n=100)
    return {
        "adds_per_second": round(len(times) / seconds, 1),
        "p50_ms": round(percentiles[49] * 1000, 2),
        "p99_ms": round(percentiles[98] * 1000, 2),
        "max_ms": round(max(times) * 1000, 2),
        "adds_of_the_slowest_writer_per_second": round(fewest / seconds, 1),
    }


def write(kind: str, directory: Path, name: str, share: int, seconds: float) -> list[float]:
    """Add and remove until the time is over; return the seconds of each add."""
    add, remove = sqlite_writer(directory) if kind == "sqlite" else odek_writer(directory)
    add(warm := f"{name} is warm, so that nothing is loaded while the clock runs")
    remove(warm)
    print("ready", flush=True)
    sys.stdin.readline()
    mine: list[str] = []
    times: list[float] = []
    end = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        text = f"fact {len(times)} of {name}: the service listens on port {10_000 + len(times)}"
        add(text)
        times.append(time.perf_counter() - begun)
        mine.append(text)
        if len(mine) > share:
            remove(mine.pop(0))
    return times


def odek_writer(directory: Path) -> tuple[Callable[[str], object], Callable[[str], object]]:
    """Return functions that add and remove a fact."""
    store = FactStore(directory, FactLimits(user=1_000_000))
    return (lambda text: store.add("user", text), lambda text: store.remove(Fact("user", 0, text)))


def sqlite_writer(directory: Path) -> tuple[Callable[[str], object], Callable[[str], object]]:
    """Return functions that insert and delete a row, a transaction each."""
    database = connect(directory)
    return (
        lambda text: database.execute("INSERT INTO facts (target, text) VALUES ('user', ?)", (text,)),
        lambda text: database.execute("DELETE FROM facts WHERE text = ?", (text,)),
    )


def connect(directory: Path) -> sqlite3.Connection:
    """Open the database; a statement is a transaction."""
    database = sqlite3.connect(directory / "facts.db", timeout=60, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    return database


def open_episodes(directory: Path, count: int) -> dict[str, float]:
    """Return the milliseconds of first uses of a store with so many episodes."""
    directory.mkdir(mode=0o700)
    entries = []
    for number in range(count):
        clock = f"{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}"
        text = f"The person fixed defect {number} in module {number % 97} and ran the tests. " * 4
        session_id = f"20260101-{number:032x}"
        (directory / f"{session_id}.md").write_text(text.strip())
        entries.append(
            Entry.of(
                Episode(
                    session_id=session_id,
                    turns=5,
                    created_at=f"2026-01-01T{clock}Z",
                    summary=preview(text),
                    provenance=Provenance(),
                    content_hash=digest(text.strip()),
                )
            )
        )
    (directory / "index.json").write_bytes(encode_index(entries))
    limits = EpisodeLimits(max_episodes=0)
    last = f"20260101-{count - 1:032x}"

    def store_one() -> None:
        EpisodeStore(directory, limits).write(
            "20260102-new", f"The person wrote {time.time_ns()}.", turns=3, provenance=Provenance()
        )

    def read_again(store: EpisodeStore) -> float:
        store.read_index()
        return milliseconds(store.index)

    return {
        "first_read_of_the_index_ms": milliseconds(lambda: EpisodeStore(directory, limits).read_index()),
        "later_read_ms": read_again(EpisodeStore(directory, limits)),
        "first_read_of_a_text_ms": milliseconds(lambda: EpisodeStore(directory, limits).read(last)),
        "store_an_episode_ms": milliseconds(store_one),
        "recover_ms": milliseconds(lambda: EpisodeStore(directory, limits).recover()),
    }


def milliseconds(work: Callable[[], object]) -> float:
    """Return the median time of some tries."""
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return round(statistics.median(times) * 1000, 3)


if __name__ == "__main__":
    main()
