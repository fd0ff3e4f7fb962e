"""Many processes work on the same atoms at once, and nothing that was acknowledged is lost."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from odek.memory.extended.atom_index import open_atom_index
from odek.memory.extended.atom_store import EXTENDED, AtomStore
from odek.memory.extended.write import ATOMS, atom_id_of

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 120


def start(memory: Path, name: str, rounds: int) -> "subprocess.Popen[str]":
    """Start a worker."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.atom_worker", str(memory), name, str(rounds)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def acknowledged(output: str) -> tuple[set[str], set[str]]:
    """Return the ids that must be there, and those that must not."""
    there: set[str] = set()
    gone: set[str] = set()
    for line in output.splitlines():
        mark, name = line[0], line[1:]
        if mark in "+^":
            there.add(name)
        elif mark == "-":
            there.discard(name)
            gone.add(name)
    return there, gone


def check(memory: Path, there: set[str], gone: set[str]) -> None:
    """Compare files and index with what was acknowledged."""
    store = AtomStore(memory / EXTENDED)
    live = {atom.id: atom for atom in store.all()}
    assert there <= set(live)
    assert not gone & set(live)
    assert all(atom.is_trusted and atom.text for atom in live.values())
    assert store.unreadable() == []
    index = open_atom_index(memory)
    index.reconcile()
    for atom in list(live.values())[:: max(len(live) // 40, 1)]:
        hits = index.search(atom.text, 5, ATOMS, floor=0.0)
        assert atom.id in {atom_id_of(hit.id) for hit in hits}
    for name in list(gone)[:20]:
        hits = index.search("worker noted number about the team", 500, ATOMS, floor=0.0)
        assert name not in {atom_id_of(hit.id) for hit in hits}


@pytest.mark.parametrize(
    ("workers", "rounds"), [(3, 10), pytest.param(8, 60, marks=pytest.mark.slow, id="eight")]
)
def test_what_is_acknowledged_is_there(tmp_path: Path, workers: int, rounds: int) -> None:
    """Adding, forgetting, promoting and consolidating side by side leaves just what each was told."""
    memory = tmp_path / "memory"
    memory.mkdir(mode=0o700)
    started = [start(memory, f"w{number}", rounds) for number in range(workers)]
    there: set[str] = set()
    gone: set[str] = set()
    for process in started:
        output, errors = process.communicate(timeout=LIMIT_SECONDS)
        assert process.returncode == 0, errors
        assert "!" not in output
        mine, not_mine = acknowledged(output)
        there |= mine
        gone |= not_mine
    check(memory, there, gone)


@pytest.mark.slow
def test_a_killed_worker_takes_nothing_with_it(tmp_path: Path) -> None:
    """Killed at any moment, what was acknowledged before is there, and the next one goes on at once."""
    memory = tmp_path / "memory"
    memory.mkdir(mode=0o700)
    there: set[str] = set()
    gone: set[str] = set()
    for number in range(12):
        process = start(memory, f"k{number}", 500)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(number + 1)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        if process.stderr is not None:
            process.stderr.close()
        mine, not_mine = acknowledged("".join(line for line in lines if len(line) == 34))
        there |= mine
        gone |= not_mine
    live = {atom.id for atom in AtomStore(memory / EXTENDED).all()}
    assert len(there - live) <= 12  # one that was being forgotten as the process died, of each
    assert not gone & live
