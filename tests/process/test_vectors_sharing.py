"""Several processes with the vectors of one index."""

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.vector_process import document, fill, open_shared

ROOT = Path(__file__).parents[2]


class Sharer:
    """Another process that has the index open."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def __call__(self, line: str) -> str:
        """Have it do something; return its answer."""
        self.send(line)
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def send(self, line: str) -> None:
        """Have it do something without waiting."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


@contextmanager
def sharer(directory: Path) -> Iterator[Sharer]:
    """Yield a process that shares the index in ``directory``."""
    arguments = [sys.executable, "-m", "tests.support.vector_process", str(directory)]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            yield Sharer(process)
        finally:
            process.kill()


def build(directory: Path, count: int) -> None:
    """Make an index of the first ``count`` documents, with their vectors."""
    index = open_shared(directory)
    index.rebuild()
    index.add([document(number) for number in range(count)])
    fill(index)


def test_another_process_finds_by_a_new_vector_at_its_next_question(tmp_path: Path) -> None:
    """Added, removed and added again by one, a document is found or not by the other, at once."""
    build(tmp_path, 20)
    with sharer(tmp_path) as writer, sharer(tmp_path) as reader:
        assert reader("find 7") == "d7"
        assert reader("find 500") == ""
        assert writer("add 500") == "ok"
        assert reader("find 500") == "d500"
        assert writer("remove 500") == "ok"
        assert reader("find 500") == ""
        assert writer("add 500") == "ok"
        assert reader("find 500") == "d500"
        assert reader("find 7") == "d7"


def test_two_that_fill_at_once_lose_nothing(tmp_path: Path) -> None:
    """Whoever gives vectors takes none that another gave, nor those of documents that just came."""
    build(tmp_path, 10)
    with sharer(tmp_path) as one, sharer(tmp_path) as other:
        for number in range(100, 112, 2):
            one.send(f"add {number}")
            other.send(f"add {number + 1}")
        for _ in range(100, 112, 2):
            assert one.process.stdout is not None
            assert other.process.stdout is not None
            assert one.process.stdout.readline() == other.process.stdout.readline() == "ok\n"
        assert [one(f"find {number}") for number in range(100, 112)] == [f"d{n}" for n in range(100, 112)]


@pytest.mark.parametrize(
    "rounds", [pytest.param(2, id="short"), pytest.param(60, id="long", marks=pytest.mark.slow)]
)
def test_a_killed_writer_leaves_an_index_that_is_filled_up(tmp_path: Path, rounds: int) -> None:
    """Whatever it was at, what has vectors is found by them, and the rest gets them from the next."""
    build(tmp_path, 20)
    chance = random.Random(3)
    added = 1_000
    for _ in range(rounds):
        with sharer(tmp_path) as writer:
            for number in range(added, added + 5):
                writer.send(f"add {number}")
            assert writer.process.stdout is not None
            for _ in range(chance.randrange(1, 4)):
                writer.process.stdout.readline()
            writer.process.kill()
        added += 5
    with sharer(tmp_path) as next_one:
        assert next_one("fill") == "ok"
        assert next_one("find 1000") == "d1000"
        assert next_one("find 7") == "d7"
    assert open_shared(tmp_path).without_vectors(9) == []
