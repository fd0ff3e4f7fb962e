"""The fan-out: slots, order, accounting, and children that cannot be started."""

import os
import resource
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trio

from subagent.errors import (
    ChildFailedError,
    ChildLimitError,
    ChildStartError,
    ChildTimeoutError,
    ProtocolError,
)
from subagent.limits import Limits
from subagent.reports import (
    ChildEnded,
    ChildSampled,
    ChildStarted,
    ChildTask,
    SupervisorEvent,
    TaskFailed,
    TaskSucceeded,
)
from subagent.spawner import FreshSpawner, Launch
from subagent.supervisor import Supervisor
from tests.support.faults import SPAWNERS, open_spawner
from tests.support.processes import Marked, open_descriptors, zombie_children
from tests.support.waiting import HANG_SECONDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


def task(name: str, code: str, cwd: Path, limits: Limits | None = None) -> ChildTask:
    """Return a task whose child runs ``code``."""
    return ChildTask(id=name, launch=Launch(cwd, {}), payload=code, limits=limits)


def nothing(_: SupervisorEvent) -> None:
    """Take no notice."""


async def test_two_hundred_delegations_never_wait_for_a_slot_that_nobody_holds(tmp_path: Path) -> None:
    """However its children end, and also when it is cancelled, a run gives back what it took."""
    codes = ["ready(); finish(1)", "sys.exit(1)", "write(b'?\\n')", "os.kill(os.getpid(), 9)", "failed('x')"]
    before = open_descriptors()
    async with open_spawner("warm") as spawner:
        supervisor = Supervisor(spawner, max_concurrency=3)
        inside = open_descriptors()
        done = 0
        for round_ in range(50):
            tasks = [task(f"{round_} {n}", codes[(round_ + n) % len(codes)], tmp_path) for n in range(4)]
            if round_ % 10 == 9:
                with trio.CancelScope() as scope:

                    def cancel(_: SupervisorEvent, scope: trio.CancelScope = scope) -> None:
                        scope.cancel()

                    await supervisor.run(tasks, cancel)
            with trio.fail_after(HANG_SECONDS):
                done += len(await supervisor.run(tasks, nothing))
        assert done == 200
        assert len(open_descriptors() - inside) <= 4  # the template has been started meanwhile
        assert zombie_children() == []
    assert open_descriptors() <= before


@pytest.mark.parametrize("kind", SPAWNERS)
async def test_no_more_than_the_slots_run_at_once(kind: str, tmp_path: Path) -> None:
    """Tasks start in their order, a few at a time, and each tells its story in order."""
    events: list[SupervisorEvent] = []
    at_once = most = 0

    def count(event: SupervisorEvent) -> None:
        nonlocal at_once, most
        events.append(event)
        at_once += isinstance(event, ChildStarted) - isinstance(event, ChildEnded)
        most = max(most, at_once)

    tasks = [task(str(n), f"ready(); progress({n}); finish({n})", tmp_path) for n in range(9)]
    async with open_spawner(kind) as spawner:
        outcomes = await Supervisor(spawner, max_concurrency=3).run(tasks, count)
    assert [outcome.result for outcome in outcomes if isinstance(outcome, TaskSucceeded)] == [*range(9)]
    assert 1 <= most <= 3
    for each in tasks:
        story = [type(event).__name__ for event in events if event.id == each.id]
        assert [name for name in story if name != "ChildSampled"] == [
            "ChildStarted",
            "ChildReady",
            "ChildProgress",
            "ChildEnded",
        ]


@pytest.mark.parametrize("kind", SPAWNERS)
async def test_what_a_child_used_is_known_however_it_ended(kind: str, tmp_path: Path) -> None:
    """CPU time and peak memory of a killed tree count, those of a grandchild too."""
    burn = "end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
    codes = {
        "done": "ready()\n" + burn + "kept = b'x' * 60_000_000; finish('done')",
        "killed": "ready()\n" + burn + "kept = b'x' * 60_000_000; os.kill(os.getpid(), 9)",
        "grandchild": f"ready()\nif os.fork() == 0:\n exec({burn!r})\n kept = b'x' * 60_000_000\n"
        " time.sleep(300)\ntime.sleep(300)",
    }
    limits = Limits(wall_seconds=60, cpu_seconds=0.25)
    tasks = [
        task(name, code, tmp_path, limits if name == "grandchild" else None) for name, code in codes.items()
    ]
    events: list[SupervisorEvent] = []
    async with open_spawner(kind) as spawner:
        outcomes = await Supervisor(spawner, max_concurrency=1).run(tasks, events.append)
    assert isinstance(outcomes[0], TaskSucceeded)
    assert isinstance(outcomes[2], TaskFailed)
    assert isinstance(outcomes[2].error, ChildLimitError)
    for outcome in outcomes:
        assert 0.25 <= outcome.usage.cpu_seconds < 2
    for outcome in outcomes[:2]:
        assert 60_000_000 < outcome.usage.peak_memory_bytes < 200_000_000
    assert any(isinstance(event, ChildSampled) for event in events)


async def test_what_a_failed_child_said_is_kept(tmp_path: Path) -> None:
    """Its last progress and the end of its standard error come with the failure."""
    code = "ready(); progress(1); progress({'at': 2}); os.write(2, b'x' * 100_000 + b'the end'); sys.exit(4)"
    async with open_spawner("fresh") as spawner:
        (outcome,) = await Supervisor(spawner, max_concurrency=1).run([task("1", code, tmp_path)], nothing)
    assert isinstance(outcome, TaskFailed)
    assert isinstance(outcome.error, ChildFailedError)
    assert outcome.error.returncode == 4
    assert outcome.progress == {"at": 2}
    assert len(outcome.stderr) == 16 * 1024
    assert outcome.stderr.endswith("the end")


@pytest.mark.parametrize(
    ("argv", "directory", "words"),
    [
        (["no-such-program"], ".", "cannot run 'no-such-program'"),
        (["./no-program"], ".", "Exec format error"),
        (["true"], "gone", "No such file"),
    ],
)
async def test_a_child_that_cannot_start_is_an_outcome(
    argv: list[str], directory: str, words: str, tmp_path: Path
) -> None:
    """A missing program, one that is none, a directory that is gone: one line each."""
    program = tmp_path / "no-program"
    program.write_bytes(b"\x7fnot a program")
    program.chmod(0o755)
    supervisor = Supervisor(FreshSpawner(argv), max_concurrency=1)
    (outcome,) = await supervisor.run([task("1", "", tmp_path / directory)], nothing)
    assert isinstance(outcome, TaskFailed)
    assert isinstance(outcome.error, ChildStartError)
    assert words in str(outcome.error)


async def test_a_task_that_cannot_be_sent_starts_nothing(tmp_path: Path) -> None:
    """A payload that is no JSON is an outcome of its own."""
    events: list[SupervisorEvent] = []
    broken = ChildTask(id="1", launch=Launch(tmp_path, {}), payload=object())
    async with open_spawner("fresh") as spawner:
        (outcome,) = await Supervisor(spawner, max_concurrency=1).run([broken], events.append)
    assert isinstance(outcome, TaskFailed)
    assert isinstance(outcome.error, ProtocolError)
    assert [type(event) for event in events] == [ChildEnded]


@contextmanager
def few_descriptors(spare: int) -> Generator[None]:
    """Leave this process only ``spare`` descriptors to open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + spare + 2, hard))
    taken: list[int] = []
    with suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    for _ in range(spare):
        os.close(taken.pop())
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)


@pytest.mark.parametrize("kind", SPAWNERS)
@pytest.mark.parametrize("spare", [0, 3, 8])
async def test_running_out_of_descriptors_is_an_outcome(kind: str, spare: int, tmp_path: Path) -> None:
    """No child, one line, nothing leaked; and the next one works again."""
    async with open_spawner(kind) as spawner:
        supervisor = Supervisor(spawner, max_concurrency=1)
        tasks = [task("1", "ready(); finish(1)", tmp_path)]
        await supervisor.run(tasks, nothing)
        before = open_descriptors()
        with few_descriptors(spare):
            (outcome,) = await supervisor.run(tasks, nothing)
        assert isinstance(outcome, TaskFailed)
        assert isinstance(outcome.error, ChildStartError)
        assert open_descriptors() <= before
        (outcome,) = await supervisor.run(tasks, nothing)
        assert isinstance(outcome, TaskSucceeded)


async def test_a_child_that_sits_on_its_task_is_bounded(tmp_path: Path) -> None:
    """A task larger than the pipe, and a child that never reads it."""
    marked = Marked()
    big = ChildTask(
        id="1",
        launch=Launch(tmp_path, marked.environment),
        payload="x" * 1_000_000,
        limits=Limits(wall_seconds=0.3),
    )
    supervisor = Supervisor(FreshSpawner(["sleep", "300"]), max_concurrency=1)
    (outcome,) = await supervisor.run([big], nothing)
    assert isinstance(outcome, TaskFailed)
    assert isinstance(outcome.error, ChildTimeoutError)
    assert marked.living() == set()


async def test_a_listener_that_fails_ends_the_children(tmp_path: Path) -> None:
    """An error in our own program is not swallowed, and leaves nothing running either."""
    marked = Marked()

    def fail(event: SupervisorEvent) -> None:
        if event.id == "1":
            raise LookupError("the listener")

    sleepers = [
        ChildTask(id=str(n), launch=Launch(tmp_path, marked.environment), payload="ready(); time.sleep(300)")
        for n in range(3)
    ]
    async with open_spawner("fresh") as spawner:
        with pytest.RaisesGroup(LookupError, flatten_subgroups=True, allow_unwrapped=True):
            await Supervisor(spawner, max_concurrency=3).run(sleepers, fail)
    assert marked.living() == set()
