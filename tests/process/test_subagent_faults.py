"""Children that go wrong: the right error, in bounded time, and nothing is left of them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from subagent.reports import (
    ChildReady,
    ChildStarted,
    ChildTask,
    Outcome,
    SupervisorEvent,
    TaskFailed,
    TaskSucceeded,
)
from subagent.spawner import Launch
from subagent.supervisor import Supervisor
from tests.support.faults import FAULTS, SPAWNERS, open_spawner
from tests.support.processes import Marked, open_descriptors, zombie_children
from tests.support.waiting import HANG_SECONDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


BOUND_SECONDS = 20.0
"""Of each child: a few are usual, a busy machine takes several times that, and waiting in vain a minute."""


@pytest.fixture
def marked(tmp_path: Path) -> Iterator[Marked]:
    """A mark for all children, of which nothing may be left in the end."""
    marked = Marked()
    marked.watch(tmp_path)
    before = open_descriptors()
    yield marked
    assert marked.living() == set()
    assert zombie_children() == []
    assert open_descriptors() <= before
    assert list(tmp_path.iterdir()) == []


def task(name: str, marked: Marked, cwd: Path) -> ChildTask:
    """Return the task that goes wrong in the named way."""
    fault = FAULTS[name]
    launch = Launch(cwd=cwd, env=marked.environment, title=f"child {name}")
    return ChildTask(id=name, launch=launch, payload=fault.code, limits=fault.limits)


def check(outcome: Outcome) -> None:
    """Fail unless this is what is to come of the fault, in bounded time and accounted for."""
    fault = FAULTS[outcome.id]
    match outcome:
        case TaskSucceeded(result="done"):
            assert fault.error is None, outcome
        case TaskFailed(error=error):
            assert type(error) is fault.error, outcome
            assert fault.words in str(error)
            assert "\n" not in str(error)
        case other:
            pytest.fail(str(other))
    assert outcome.usage.seconds < BOUND_SECONDS, outcome
    assert 0 <= outcome.usage.cpu_seconds < 5
    assert outcome.usage.peak_memory_bytes > 1_000_000


@pytest.mark.parametrize("kind", SPAWNERS)
async def test_faults_are_typed_errors_and_do_not_harm_their_neighbours(
    kind: str, marked: Marked, tmp_path: Path
) -> None:
    """All at once, each has its own outcome, in the order of the tasks, and good ones succeed."""
    good = [
        ChildTask(
            id=f"good {n}", launch=Launch(tmp_path, marked.environment), payload=f"ready(); finish({n})"
        )
        for n in range(5)
    ]
    names = list(FAULTS)
    tasks = [task(name, marked, tmp_path) for name in names]
    async with open_spawner(kind) as spawner:
        with trio.fail_after(HANG_SECONDS):
            outcomes = await Supervisor(spawner, max_concurrency=8).run([*tasks, *good], lambda _: None)
        assert marked.living() == set()
        assert zombie_children() == []
    assert [outcome.id for outcome in outcomes] == [*names, *(each.id for each in good)]
    assert [outcome.result for outcome in outcomes[-5:] if isinstance(outcome, TaskSucceeded)] == [*range(5)]
    for outcome in outcomes[:-5]:
        check(outcome)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SPAWNERS)
@pytest.mark.parametrize("name", FAULTS)
async def test_each_fault_alone(name: str, kind: str, marked: Marked, tmp_path: Path) -> None:
    """Without neighbours the outcome is the same, and nothing is left while the spawner lives."""
    async with open_spawner(kind) as spawner:
        supervisor = Supervisor(spawner, max_concurrency=1)
        (outcome,) = await supervisor.run([task(name, marked, tmp_path)], lambda _: None)
        assert marked.living() == set()
        assert zombie_children() == []
    check(outcome)


@pytest.mark.parametrize("kind", SPAWNERS)
@pytest.mark.parametrize("moment", [ChildStarted, ChildReady])
async def test_cancelling_leaves_nothing_of_any_fault(
    moment: type[SupervisorEvent], kind: str, marked: Marked, tmp_path: Path
) -> None:
    """A cancel at the start or at work ends every child that is there, whatever it does."""
    # At the start none has done anything yet: there two stand for all.
    names = list(FAULTS) if moment is ChildReady else list(FAULTS)[:2]
    async with open_spawner(kind) as spawner:
        for name in names:
            with trio.CancelScope() as scope:

                def cancel(event: SupervisorEvent, scope: trio.CancelScope = scope) -> None:
                    if isinstance(event, moment):
                        scope.cancel()

                supervisor = Supervisor(spawner, max_concurrency=1)
                with trio.fail_after(HANG_SECONDS):
                    await supervisor.run([task(name, marked, tmp_path)], cancel)
            assert marked.living() == set(), name
            assert zombie_children() == [], name
