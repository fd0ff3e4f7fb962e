"""Many processes on one store, some of them killed: every acknowledged change is there, once."""

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odek.memory.check import check, repair
from odek.memory.episodes import EpisodeLimits, EpisodeStore, Provenance
from odek.memory.facts import FactStore
from odek.memory.journal import Journal
from tests.support.memory_writer import LIMITS

ROOT = Path(__file__).parents[2]
EPISODES = EpisodeLimits(max_episodes=0)


class Expected:
    """What must be there, and what may be, after the changes that were acknowledged."""

    def __init__(self) -> None:
        self.facts: set[str] = set()
        self.gone: set[str] = set()
        self.episodes: set[str] = set()
        self.unsure: set[str] = set()

    def take(self, output: str, *, killed: bool) -> None:
        """Add the lines of one writer; the change a killed one was at may be made or not."""
        texts: dict[str, None] = {}
        for line in output.splitlines():
            match line.split("\t"):
                case ["add", text]:
                    texts[text] = None
                case ["replace", old, new]:
                    del texts[old]
                    texts[new] = None
                    self.gone.add(old)
                case ["remove", text]:
                    del texts[text]
                    self.gone.add(text)
                case ["episode", session_id]:
                    self.episodes.add(session_id)
        if killed and texts:
            last = next(reversed(texts))
            del texts[last]
            self.unsure |= {last, f"changed {last}"}
        self.facts |= texts.keys()


@contextmanager
def writers(directory: Path, count: int, rounds: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Start the writers, and begin when all are there."""
    command = [sys.executable, "-m", "tests.support.memory_writer", str(directory)]
    started = [
        subprocess.Popen(
            [*command, f"w{n}", str(rounds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for n in range(count)
    ]
    try:
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def run(directory: Path, count: int, rounds: int, victims: int) -> None:
    """Let writers work, kill some in the middle of it, and compare."""
    chance = random.Random(f"{count} {rounds}")
    expected = Expected()
    with writers(directory, count, rounds) as started:
        for victim in chance.sample(started, victims):
            assert victim.stdout is not None
            lines = [victim.stdout.readline() for _ in range(chance.randrange(1, rounds))]
            victim.kill()
            rest = victim.stdout.read()  # not communicate: it forgets what readline has buffered
            victim.communicate()
            killed = not rest.endswith("done\n")
            expected.take("".join(lines) + rest, killed=killed)
            started.remove(victim)
        for process in list(started):
            output, errors = process.communicate(timeout=600)
            assert output.endswith("done\n"), errors
            expected.take(output, killed=False)
            started.remove(process)

    stored = Counter(fact.text for fact in FactStore(directory, LIMITS).read("user").entries)
    assert expected.facts <= stored.keys()
    assert not stored.keys() & (expected.gone - expected.unsure)
    assert set(stored.values()) <= {1}
    episodes = EpisodeStore(directory, EPISODES)
    ids = [episode.session_id for episode in episodes.read_index()]
    assert expected.episodes <= set(ids)
    assert len(ids) == len(set(ids))
    assert all(episodes.read(session_id).text.startswith("The person did") for session_id in ids)
    report = repair(directory, LIMITS, EPISODES)
    assert report.findings == ()
    assert check(directory, LIMITS, EPISODES).findings == ()
    assert not list(directory.glob(".*.tmp"))
    assert Journal(directory).read().damaged_lines == 0


def test_nothing_acknowledged_is_lost_when_writers_are_killed(tmp_path: Path) -> None:
    """Sixteen processes add, replace, remove and store episodes; five of them are killed on the way."""
    run(tmp_path / "home" / "memory", count=16, rounds=8, victims=5)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_in_the_long_run(tmp_path: Path) -> None:
    """The same with five hundred rounds each."""
    run(tmp_path / "home" / "memory", count=16, rounds=500, victims=6)


READER = """
import sys
from pathlib import Path
from odek.memory.episodes import EpisodeStore
from odek.memory.facts import FactLimits, FactStore
facts, episodes = FactStore(Path(sys.argv[1]), FactLimits()), EpisodeStore(Path(sys.argv[1]))
print("ready", flush=True)
seen = 0
while not seen or (Path(sys.argv[1]).parent / "go on").exists():
    for fact in facts.read("user").entries:
        assert fact.text.startswith("A" * 50) and fact.text.endswith("Z" * 50), fact
    found = episodes.read("20260101-a")
    number = found.episode.turns
    assert found.text == f"The person did {number}." and not found.is_edited, found
    assert found.episode.provenance.sources == (f"source {number}",), found
    seen += 1
print(seen)
"""


def test_a_reader_never_sees_half_of_a_change(tmp_path: Path) -> None:
    """While text and origin of an episode change together, a reader sees only pairs that belong."""
    directory, go_on = tmp_path / "home" / "memory", tmp_path / "home" / "go on"
    facts, episodes = FactStore(directory, LIMITS), EpisodeStore(directory)

    def store(number: int) -> None:
        origin = Provenance(untrusted=True, sources=(f"source {number}",))
        episodes.write("20260101-a", f"The person did {number}.", turns=number, provenance=origin)

    facts.add("user", "A" * 50 + " 0 " + "Z" * 50)
    store(1)
    go_on.touch()
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(directory)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "ready\n"
    for number in range(2, 100):
        facts.replace(facts.read("user").entries[0], "A" * 50 + f" {number} " + "Z" * 50)
        store(number)
    go_on.unlink()
    output, _ = reader.communicate(timeout=60)

    assert reader.returncode == 0
    assert int(output) > 5
