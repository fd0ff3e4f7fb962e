"""Power cuts during changes of the memory: every state that a weak file system may leave."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from odek.memory.check import repair
from odek.memory.commit import Committer
from tests.support.memory_changes import CHANGES, EPISODE_LIMITS, FACT_LIMITS, State, prepare, state_of
from tests.support.power_cuts import TRACED, Disk, Operation, disks_after_cut, parse_trace
from tests.support.tracing import ChangeHost, can_trace, open_change_host

pytestmark = pytest.mark.skipif(not can_trace(), reason="needs strace, and leave to trace processes")

SHORT_STATES = 250
LONG_STATES = 10_000

LENGTH = 6


def sequences(count: int) -> list[list[str]]:
    """Return each change alone, and so many changes in a row, drawn by chance but always the same."""
    chance = random.Random(3)
    return [[change] for change in CHANGES] + [chance.choices(list(CHANGES), k=LENGTH) for _ in range(count)]


@pytest.fixture(scope="module")
def host() -> Iterator[ChangeHost]:
    """Return the warm process that makes the changes."""
    with open_change_host() as started:
        yield started


class Log:
    """The operations of some changes in a row, and the state after each."""

    def __init__(self, folder: Path, host: ChangeHost, changes: list[str]) -> None:
        self.changes = changes
        directory = folder / "home" / "memory"
        prepare(directory)
        self.base = disk_of(directory)
        self.states: list[State] = [state_of(directory)]
        self.operations: list[Operation] = []
        for change in changes:
            ended, trace = host.run(change, directory, "-xx", "-s", "4194304", f"-etrace={TRACED}")
            if ended != "acknowledged":  # such as removing what an earlier change removed
                assert ended.startswith("refused"), ended
                continue
            self.operations += parse_trace(trace, str(directory))
            self.states.append(state_of(directory))
        # Its content says who holds it, nothing else; it is never in a state that matters.
        self.operations = [operation for operation in self.operations if operation.name != ".lock"]
        shutil.rmtree(folder / "home")

    def disks(self) -> list[tuple[int, Disk]]:
        """Return every disk that a cut may leave, once each."""
        return list(dict.fromkeys(disks_after_cut(self.operations, self.base)))


def disk_of(directory: Path) -> Disk:
    """Return the files of a directory."""
    return tuple(
        sorted((path.name, path.read_bytes()) for path in directory.iterdir() if path.name != ".lock")
    )


def verify(folder: Path, log: Log, acknowledged: int, disk: Disk) -> None:
    """Open what is left: it is the state of what was acknowledged, or the one after it."""
    directory = folder / "cut" / "memory"
    directory.mkdir(parents=True, mode=0o700)
    for name, data in disk:
        (directory / name).write_bytes(data)
        (directory / name).chmod(0o600)
    told = f"{log.changes} after {acknowledged}: {disk}"
    allowed = log.states[acknowledged : acknowledged + 2]
    seen = state_of(directory)
    assert seen in allowed, told
    Committer(directory).recover()
    assert state_of(directory) == seen, told
    report = repair(directory, FACT_LIMITS, EPISODE_LIMITS)
    # The name of a temporary file may be of a process that lives; it is nobody's after an hour.
    assert report.findings == (), (told, report)
    assert state_of(directory) == seen, told
    shutil.rmtree(folder / "cut")


def run(tmp_path: Path, host: ChangeHost, rows: int, at_most: int) -> int:
    """Verify at most so many states, spread over all sequences; return how many."""
    logs = [Log(tmp_path / str(number), host, changes) for number, changes in enumerate(sequences(rows))]
    all_disks = [(log, acknowledged, disk) for log in logs for acknowledged, disk in log.disks()]
    chosen = random.Random(1).sample(all_disks, min(at_most, len(all_disks)))
    for log, acknowledged, disk in chosen:
        verify(tmp_path, log, acknowledged, disk)
    return len(chosen)


def test_a_power_cut_leaves_old_or_new(tmp_path: Path, host: ChangeHost) -> None:
    """Some hundred of the states, drawn from those of every change and of some in a row."""
    assert run(tmp_path, host, rows=4, at_most=SHORT_STATES) == SHORT_STATES


@pytest.mark.slow
def test_every_power_cut_leaves_old_or_new(tmp_path: Path, host: ChangeHost) -> None:
    """Every state of every change and of many in a row, at least ten thousand."""
    assert run(tmp_path, host, rows=30, at_most=10**9) >= LONG_STATES


def test_the_model_finds_a_writer_that_does_not_sync(tmp_path: Path) -> None:
    """Without an fsync of the file, a cut may leave a torn one: the model is not blind."""
    base: Disk = (("user.md", b"old"),)
    synced = [
        Operation("create", "t"),
        Operation("write", "t", data=b"new text"),
        Operation("fsync", "t"),
        Operation("rename", "t", "user.md"),
        Operation("fsync_directory"),
    ]
    unsynced = [operation for operation in synced if operation.kind != "fsync"]

    good = {dict(disk)["user.md"] for _, disk in disks_after_cut(synced, base)}
    bad = {dict(disk)["user.md"] for _, disk in disks_after_cut(unsynced, base)}

    assert good == {b"old", b"new text"}
    assert bad > good
