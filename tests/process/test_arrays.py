"""A file of rows among real processes: read while it grows, written by several, its writer killed."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from odek.storage.array_format import HEADER_BYTES, record_type
from odek.storage.arrays import RowFile
from tests.support.array_process import DIMS

ROOT = Path(__file__).parents[2]


def start(*arguments: object) -> "subprocess.Popen[str]":
    """Start a process that writes or reads rows."""
    command = [sys.executable, "-m", "tests.support.array_process", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def assert_prefix(path: Path, at_least: int) -> int:
    """Assert that the file holds whole rows without a gap; return how many."""
    rows = RowFile(path, "s")
    rows.refresh()
    assert rows.keys.tolist() == list(range(rows.size))
    assert (rows.rows[rows.alive] == rows.record_keys[rows.alive][:, None]).all()
    assert rows.size >= at_least
    return rows.size


@pytest.mark.parametrize(
    "count",
    [pytest.param(600, id="short"), pytest.param(20_000, id="long", marks=pytest.mark.slow)],
)
def test_readers_see_a_prefix_while_one_writes(tmp_path: Path, count: int) -> None:
    """Through appends and compactions no reader ever sees a gap, half a row or an older state."""
    readers = [start("read", tmp_path / "rows", count) for _ in range(2)]
    with start("write", tmp_path / "rows", 0, count) as writer:
        assert len(writer.communicate(timeout=300)[0].split()) == count
    for reader in readers:
        states, _ = reader.communicate(timeout=300)
        assert reader.returncode == 0
        assert int(states) > 2


def test_writers_take_turns(tmp_path: Path) -> None:
    """Of two that append and compact at once no row is lost."""
    writers = [start("write", tmp_path / "rows", first, 200) for first in (0, 200)]
    for writer in writers:
        assert len(writer.communicate(timeout=60)[0].split()) == 200

    assert assert_prefix(tmp_path / "rows", 400) == 400


@pytest.mark.parametrize(
    "rounds", [pytest.param(4, id="short"), pytest.param(60, id="long", marks=pytest.mark.slow)]
)
def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path, rounds: int) -> None:
    """After SIGKILL at any moment the next writer goes on behind the last whole row."""
    path = tmp_path / "rows"
    chance = random.Random(7)
    size = 0
    for _ in range(rounds):
        with start("write", path, size, 10_000) as writer:
            assert writer.stdout is not None
            acknowledged = [int(writer.stdout.readline()) for _ in range(chance.randrange(1, 150))]
            writer.kill()
        size = assert_prefix(path, acknowledged[-1] + 1)


def test_a_full_disk_leaves_whole_rows_and_says_so(tmp_path: Path) -> None:
    """The row that did not fit is not there; what was before it is, and there is room for it later."""
    path = tmp_path / "rows"
    record_bytes = record_type(DIMS).itemsize
    limit_bytes = HEADER_BYTES + 10 * record_bytes + record_bytes // 2

    with start("write", path, 0, 50, limit_bytes) as writer:
        *written, said = writer.communicate(timeout=60)[0].splitlines()

    assert len(written) == 10
    assert said.startswith(f"cannot write {path}: ")
    assert assert_prefix(path, 10) == 10
    assert path.stat().st_size == limit_bytes  # half a row is there, and counts for nothing
    RowFile(path, "s").append([10], [(10, 0)], np.full((1, DIMS), 10, np.float32))
    assert assert_prefix(path, 11) == 11
