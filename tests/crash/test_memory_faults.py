"""Writers of the memory that are killed, or whose system calls fail, at every point of a change.

Opened again, the memory holds the state before or the state after, what was acknowledged
is there, nothing is left over, and the next change works.
"""

import shutil
from collections.abc import Iterator
from itertools import count, cycle
from pathlib import Path

import pytest

from odek.memory.check import check, repair
from odek.memory.commit import Committer
from odek.memory.facts import FactStore
from tests.support.memory_changes import CHANGES, EPISODE_LIMITS, FACT_LIMITS, State, prepare, state_of
from tests.support.tracing import Call, ChangeHost, can_trace, open_change_host

pytestmark = pytest.mark.skipif(not can_trace(), reason="needs strace, and leave to trace processes")

CHANGING = ("write", "pwrite64", "fsync", "rename", "unlink", "fchmod", "flock", "ftruncate")
FAILING = (*CHANGING, "openat", "read", "pread64", "newfstatat", "getdents64", "lseek")
ERRORS = {
    "openat": ("EMFILE", "EROFS", "ENOSPC", "EIO"),
    "write": ("ENOSPC", "EIO", "EFBIG"),
    "pwrite64": ("ENOSPC", "EIO"),
    "fsync": ("EIO", "ENOSPC"),
    "rename": ("ENOSPC", "EROFS", "EIO"),
    "unlink": ("EROFS", "EIO"),
}


@pytest.fixture(scope="module")
def host() -> Iterator[ChangeHost]:
    """Return the warm process that makes the changes."""
    with open_change_host() as started:
        yield started


class Ground:
    """A memory to begin with, copied for each try, and its state before and after the change."""

    def __init__(self, folder: Path, host: ChangeHost, change: str) -> None:
        self._folder, self._numbers, self._host, self.change = folder, count(), host, change
        prepare(folder / "template" / "memory")
        self.before = state_of(self.fresh())
        done = self.fresh()
        self.calls = [call for call in host.calls(change, done) if '"acknowledged"' not in call.line]
        self.after = state_of(done)
        assert self.before != self.after

    def fresh(self) -> Path:
        """Return a new copy of the memory."""
        home = self._folder / str(next(self._numbers))
        shutil.copytree(self._folder / "template", home)
        return home / "memory"

    def disturb(self, call: Call, fault: str, *, lasting: bool = False) -> None:
        """Make the change with one call disturbed, or all of its kind from it on; look at what is left."""
        directory = self.fresh()
        options = (f"-einject={call.name}:{fault}:when={call.number}{'+' if lasting else ''}", "-o/dev/null")
        ended, _ = self._host.run(self.change, directory, *options)
        self._verify(directory, ended, f"{self.change}: {fault} at {call.name} {call.number}: {ended}")
        shutil.rmtree(directory.parent)

    def _verify(self, directory: Path, ended: str, told: str) -> None:
        states: tuple[State, ...] = (self.before, self.after)
        if ended == "acknowledged":
            states = (self.after,)
        assert ended == "died" or ended.startswith(("acknowledged", "refused ")), told
        seen = state_of(directory)
        assert seen in states, told
        Committer(directory).recover()
        assert state_of(directory) == seen, told
        assert not list(directory.glob(".*.tmp")), told
        assert not (directory / ".commit.json").exists(), told
        assert all(finding.mendable for finding in check(directory, FACT_LIMITS, EPISODE_LIMITS).findings), (
            told
        )
        FactStore(directory, FACT_LIMITS).add("env", "the next change works")
        assert repair(directory, FACT_LIMITS, EPISODE_LIMITS).findings == (), told
        assert state_of(directory) == seen, told


@pytest.mark.parametrize("change", CHANGES)
def test_a_writer_killed_at_any_step_leaves_old_or_new(tmp_path: Path, host: ChangeHost, change: str) -> None:
    """Killed right before each call that changes something on disk."""
    ground = Ground(tmp_path, host, change)
    for call in ground.calls:
        if call.name.startswith(CHANGING) or "O_CREAT" in call.line:
            ground.disturb(call, "signal=KILL")


@pytest.mark.parametrize("change", CHANGES)
def test_an_error_at_any_step_leaves_old_or_new(tmp_path: Path, host: ChangeHost, change: str) -> None:
    """Each call that changes something fails once, with another error from one to the next."""
    ground = Ground(tmp_path, host, change)
    errors = cycle(["EIO", "ENOSPC", "EROFS", "EMFILE"])
    for call in ground.calls:
        if call.name.startswith(CHANGING) or "O_CREAT" in call.line:
            ground.disturb(call, f"error={next(errors)}")


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_every_call_killed_and_failed(tmp_path: Path, host: ChangeHost, change: str) -> None:
    """Killed at every call; and every error that a call may give, once and from then on."""
    ground = Ground(tmp_path, host, change)
    for call in ground.calls:
        ground.disturb(call, "signal=KILL")
        if not call.name.startswith(FAILING):
            continue
        name = next((known for known in ERRORS if call.name.startswith(known)), "")
        for error in ERRORS.get(name, ("EIO",)):
            ground.disturb(call, f"error={error}")
            ground.disturb(call, f"error={error}", lasting=True)
