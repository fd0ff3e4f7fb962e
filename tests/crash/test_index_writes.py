"""Writers of an index that are killed, or whose system calls fail, anywhere.

Opened again, the index holds what was acknowledged and perhaps the batch after it, or it
is not read and the texts answer; a rebuild makes it whole.
"""

import os
import random
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.index_writer import opened
from tests.support.scratch import scratch
from tests.support.system_calls import missing_strace

ROOT = Path(__file__).parents[2]
COUNT, SIZE = 8, 2
BEGUN = 4
"""Documents that are in the index before."""

CALLS = ("write", "rename", "fdatasync", "openat", "unlink", "ftruncate", "mmap", "flock", "newfstatat")
ERRORS = {"write": "ENOSPC", "rename": "EIO", "fdatasync": "EIO", "openat": "EMFILE", "unlink": "EROFS"}

traced = pytest.mark.skipif(bool(missing_strace()), reason=missing_strace() or "traced")


@pytest.fixture
def template() -> Iterator[Path]:
    """Return an index of some documents, to be copied."""
    with scratch() as made:
        opened(made / "template", BEGUN).rebuild()
        yield made / "template"


@contextmanager
def fresh(template: Path) -> Iterator[Path]:
    """Yield a copy of the index."""
    copy = template.with_name("copy")
    shutil.copytree(template, copy)
    yield copy
    shutil.rmtree(copy)


def command(directory: Path) -> list[str]:
    """Return how to start a writer of all documents."""
    return [sys.executable, "-m", "tests.support.index_writer", str(directory), str(COUNT), str(SIZE), "0"]


def disturbed(directory: Path, fault: str) -> "subprocess.CompletedProcess[str]":
    """Run a writer with a fault in one of its system calls, whichever of its threads makes it."""
    name, _, _ = fault.partition(":")
    tracer = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={name}", "-e", f"inject={fault}"]
    return subprocess.run(
        [*tracer, *command(directory)], capture_output=True, text=True, check=False, cwd=ROOT, timeout=60
    )


def verify(directory: Path, output: str, told: str) -> None:
    """Look at what a writer left that said ``output`` before it ended."""
    added = [line.removeprefix("added ") for line in output.splitlines() if line.startswith("added ")]
    acknowledged = max([0, *map(int, added)])
    index = opened(directory, COUNT)
    found = {hit.id for hit in index.search("everywhere", 100, floor=0)}
    if index.needs_rebuild:
        assert found == {f"d{number}" for number in range(COUNT)}, told
    else:
        assert found == {f"d{number}" for number in range(len(found))}, told
        assert max(acknowledged, BEGUN) <= len(found) <= max(acknowledged + SIZE, BEGUN), told
    assert "\n" not in index.damage, told
    assert index.rebuild(), told
    assert len(index.search("everywhere", 100, floor=0)) == COUNT, told
    assert index.damage == "", told
    assert len(list(directory.glob("g-*"))) == 1, told


def places(number: int) -> Iterator[int]:
    """Yield which calls of a name are disturbed: the first ones, then fewer and fewer."""
    at = 1.0
    for _ in range(number):
        yield int(at)
        at = max(at + 1, at * 1.6)


def killed_in(template: Path, call: str, number: int) -> None:
    """Kill a writer in so many calls of a name, one after the other, and look at what each left."""
    for place in places(number):
        with fresh(template) as directory:
            done = disturbed(directory, f"{call}:signal=KILL:when={place}")
            verify(directory, done.stdout, f"killed in {call} {place}: {done.stdout}")


def failing_in(template: Path, call: str, number: int, lasting: str) -> None:
    """Let so many calls of a name fail, each alone or all from it on, and look at what is left."""
    for place in places(number):
        with fresh(template) as directory:
            done = disturbed(directory, f"{call}:error={ERRORS[call]}:when={place}{lasting}")
            verify(directory, done.stdout, f"{ERRORS[call]} at {call} {place}{lasting}: {done.stdout}")


@traced
@pytest.mark.parametrize("call", ["rename", "fdatasync"])
def test_a_writer_that_is_killed_in_a_call_leaves_a_whole_state(template: Path, call: str) -> None:
    """Killed where it matters most, a writer leaves what it said that it did."""
    killed_in(template, call, 4)


@traced
@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_a_writer_that_is_killed_in_any_call_leaves_a_whole_state(template: Path, call: str) -> None:
    """The long form of the above."""
    killed_in(template, call, 14)


@traced
@pytest.mark.parametrize("call", ["write", "fdatasync"])
def test_a_call_that_fails_leaves_a_whole_state(template: Path, call: str) -> None:
    """A disk that fails a writer costs what it did not acknowledge, and no more."""
    failing_in(template, call, 3, "+")


@traced
@pytest.mark.slow
@pytest.mark.parametrize("call", ERRORS)
@pytest.mark.parametrize("lasting", ["", "+"])
def test_any_call_that_fails_leaves_a_whole_state(template: Path, call: str, lasting: str) -> None:
    """The long form of the above."""
    failing_in(template, call, 12, lasting)


def killed_at_random(directory: Path, random_: random.Random) -> str:
    """Kill a writer some time after it began, and return what it had said."""
    with subprocess.Popen(command(directory), stdout=subprocess.PIPE, cwd=ROOT) as writer:
        assert writer.stdout is not None
        said = writer.stdout.readline().decode()
        writer_seconds = random_.uniform(0, 0.12)
        while writer_seconds > 0 and select.select([writer.stdout], [], [], writer_seconds)[0]:
            data = os.read(writer.stdout.fileno(), 4_096)
            said += data.decode()
            writer_seconds = random_.uniform(0, 0.04) if data else 0
        writer.kill()
        return said + writer.stdout.read().decode()


def killed_at_random_moments(template: Path, times: int, seed: int) -> None:
    """Kill a writer so often, and look at what each left."""
    random_ = random.Random(seed)
    for _ in range(times):
        with fresh(template) as directory:
            said = killed_at_random(directory, random_)
            verify(directory, said, said)


def test_a_writer_that_is_killed_at_any_moment_leaves_a_whole_state(template: Path) -> None:
    """At whatever moment it dies, a writer leaves what it said that it did."""
    killed_at_random_moments(template, 4, seed=1)


@pytest.mark.slow
def test_a_writer_that_is_killed_two_hundred_times_leaves_a_whole_state(template: Path) -> None:
    """The long form of the above."""
    killed_at_random_moments(template, 200, seed=2)
