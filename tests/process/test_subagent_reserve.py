"""Children that wait for their tasks: who gets them, and that none is left over."""

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from subagent.errors import ChildStartError
from subagent.process import ProcessTree
from subagent.reports import ChildTask, TaskSucceeded
from subagent.reserve import Reserve, open_reserve
from subagent.spawner import FreshSpawner, Launch
from subagent.supervisor import Supervisor
from tests.support import child_program
from tests.support.processes import Marked, open_descriptors, zombie_children
from tests.support.waiting import HANG_SECONDS, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


class CountingSpawner:
    """Fresh children, and how many there have been."""

    def __init__(self) -> None:
        self._spawner = FreshSpawner([sys.executable, "-I", "-S", child_program.__file__])
        self.pids: list[int] = []
        self.guards: list[int] = []

    @asynccontextmanager
    async def open_child(self, launch: Launch) -> AsyncGenerator[ProcessTree]:
        """Yield a fresh child."""
        async with self._spawner.open_child(launch) as tree:
            self.pids.append(tree.pid)
            self.guards.append(tree.guard_pid)
            yield tree

    async def wait_started(self, count: int) -> None:
        """Return when ``count`` children have been started in all."""
        await wait_until(lambda: len(self.pids) >= count)


@asynccontextmanager
async def open_watched(
    directory: Path, *, idle_seconds: float = 60
) -> AsyncGenerator[tuple[Reserve, CountingSpawner, Marked]]:
    """Yield a reserve whose children work in ``directory``; afterwards nothing of it is left."""
    before = open_descriptors()
    marked, spawner = Marked(), CountingSpawner()
    marked.watch(directory)
    with trio.fail_after(HANG_SECONDS):
        async with open_reserve(spawner, idle_seconds=idle_seconds) as reserve:
            yield reserve, spawner, marked
    assert marked.living() == set()
    assert open_descriptors() <= before
    assert zombie_children() == []


async def worker(reserve: Reserve, launch: Launch) -> int:
    """Return the pid of the child that does a task."""
    task = ChildTask(id="one", launch=launch, payload="finish(os.getpid())")
    (outcome,) = await Supervisor(reserve, max_concurrency=1).run([task], lambda _: None)
    assert isinstance(outcome, TaskSucceeded), outcome
    return int(outcome.result)


async def test_a_task_begins_in_a_child_that_waits(tmp_path: Path) -> None:
    """In the order in which they were started, and each is taken once; then there are new ones."""
    launch = Launch(tmp_path, {"A": "b"})
    async with open_watched(tmp_path) as (reserve, spawner, _):
        reserve.fill(launch, 2)
        await spawner.wait_started(2)
        workers = [await worker(reserve, Launch(tmp_path, {"A": "b"})) for _ in range(3)]
        assert sorted(workers[:2]) == sorted(spawner.pids[:2])
        assert workers[2] == spawner.pids[2]


async def test_filling_again_starts_only_what_is_missing(tmp_path: Path) -> None:
    """Whoever fills says how many are to wait, not how many more."""
    launch = Launch(tmp_path, {})
    async with open_watched(tmp_path) as (reserve, spawner, _):
        reserve.fill(launch, 2)
        reserve.fill(launch, 2)
        await spawner.wait_started(2)
        await worker(reserve, launch)
        reserve.fill(launch, 2)
        await spawner.wait_started(3)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert len(spawner.pids) == 3


@pytest.mark.parametrize("other", [{"env": {"A": "c"}}, {"secret": b"another"}, {"cwd": "elsewhere"}])
async def test_a_child_with_another_launch_is_not_taken(other: dict[str, object], tmp_path: Path) -> None:
    """Directory, environment and secret are those that were asked for."""
    (tmp_path / "elsewhere").mkdir()
    wanted = {"cwd": tmp_path, "env": {"A": "b"}, "secret": b"one"} | other
    wanted["cwd"] = tmp_path / str(wanted["cwd"])
    async with open_watched(tmp_path) as (reserve, spawner, _):
        reserve.fill(Launch(tmp_path, {"A": "b"}, secret=b"one"), 1)
        await spawner.wait_started(1)
        assert await worker(reserve, Launch(**wanted)) == spawner.pids[1]  # type: ignore[arg-type]


async def test_who_comes_while_a_child_starts_waits_for_that_one(tmp_path: Path) -> None:
    """Nothing is started twice."""
    launch = Launch(tmp_path, {})
    async with open_watched(tmp_path) as (reserve, spawner, _):
        reserve.fill(launch, 1)
        await worker(reserve, launch)
        assert len(spawner.pids) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_child_that_dies_waiting_is_nobodys(number: signal.Signals, tmp_path: Path) -> None:
    """The task gets another one."""
    launch = Launch(tmp_path, {})
    async with open_watched(tmp_path) as (reserve, spawner, _):
        reserve.fill(launch, 1)
        await spawner.wait_started(1)
        os.kill(spawner.pids[0], number)
        # Its warden is ended by whoever has noticed.
        await wait_until(lambda: not Path(f"/proc/{spawner.guards[0]}").exists())
        assert await worker(reserve, launch) == spawner.pids[1]


async def test_a_child_does_not_wait_for_ever(tmp_path: Path) -> None:
    """One that nobody needs is ended; one that works is not."""
    launch = Launch(tmp_path, {})
    async with open_watched(tmp_path, idle_seconds=0.2) as (reserve, spawner, marked):
        reserve.fill(launch, 1)
        async with reserve.open_child(launch) as taken:
            reserve.fill(launch, 1)
            await spawner.wait_started(2)
            await wait_until(lambda: spawner.pids[1] not in marked.living())
            assert taken.pid in marked.living()


async def test_a_launch_that_cannot_be_is_told_to_who_needs_it(tmp_path: Path) -> None:
    """Filling with it harms nobody."""
    gone = Launch(tmp_path / "gone", {})
    async with open_watched(tmp_path) as (reserve, _, _):
        reserve.fill(gone, 1)
        with pytest.raises(ChildStartError, match="gone"):
            async with reserve.open_child(gone):
                pytest.fail("it did start")


@pytest.mark.parametrize("rounds", range(8))
async def test_a_cancel_at_any_moment_leaves_nothing(rounds: int, tmp_path: Path) -> None:
    """Whether the child is being started, waits, is taken or works."""
    launch = Launch(tmp_path, {})
    task = ChildTask(id="one", launch=launch, payload="time.sleep(300)")
    async with open_watched(tmp_path) as (reserve, _, _):
        reserve.fill(launch, 2)
        with trio.move_on_after(rounds * 0.012):
            await Supervisor(reserve, max_concurrency=1).run([task], lambda _: None)
