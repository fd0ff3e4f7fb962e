"""Both ends of the wire: a child that serves, fresh and forked, under a supervisor."""

import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from subagent.errors import ChildFailedError
from subagent.reports import ChildProgress, ChildReady, ChildTask, SupervisorEvent, TaskFailed, TaskSucceeded
from subagent.spawner import FreshSpawner, Launch, Spawner
from subagent.supervisor import Supervisor
from subagent.warm import open_warm_spawner
from subagent.wire import Progress, Task, child_messages, encode
from tests.support.processes import Marked
from tests.support.waiting import HANG_SECONDS, open_stopwatch

ROOT = Path(__file__).parents[2]
ARGV = [sys.executable, "-m", "tests.support.serving_child"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


@asynccontextmanager
async def open_spawner(kind: str) -> AsyncGenerator[Spawner]:
    """Yield a spawner of serving children, started either way."""
    notices: list[str] = []
    async with open_warm_spawner(
        preload=["trio", "msgspec", "tests.support.serving_child"],
        entry="tests.support.serving_child:main" if kind == "warm" else "none:none",
        fallback=FreshSpawner(ARGV),
        on_notice=notices.append,
    ) as spawner:
        yield spawner
    assert len(notices) == (kind == "fresh")


def environment(marked: Marked) -> dict[str, str]:
    """Return a child's environment, in which it finds this project."""
    return {**marked.environment, "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize("kind", ["warm", "fresh"])
async def test_tasks_are_answered_alike_by_fresh_and_forked_children(kind: str, tmp_path: Path) -> None:
    """Results, progress, failures and the secret travel; what tools print does not disturb."""
    secret = b"key " * 50_000  # much more than a pipe takes that nobody has asked for more
    launch = Launch(tmp_path, environment(Marked()), secret=secret)
    payloads = [{"do": "answer", "with": {"ü": None}}, {"do": "raise"}, {"do": "unsendable"}, {"do": "flood"}]
    tasks = [ChildTask(id=str(n), launch=launch, payload=payload) for n, payload in enumerate(payloads)]
    events: list[SupervisorEvent] = []
    async with open_spawner(kind) as spawner:
        with trio.fail_after(HANG_SECONDS):
            outcomes = await Supervisor(spawner, max_concurrency=4).run(tasks, events.append)
    answered, raised, unsendable, flooded = outcomes
    assert isinstance(answered, TaskSucceeded)
    assert answered.result == ["0", {"ü": None}, secret.decode()]
    assert isinstance(raised, TaskFailed)
    assert isinstance(raised.error, ChildFailedError)
    assert (str(raised.error), raised.error.returncode) == ("no such file", 1)
    assert "ExceptionGroup" in raised.stderr
    assert isinstance(unsendable, TaskFailed)
    assert "cannot be sent as JSON" in str(unsendable.error)
    assert isinstance(flooded, TaskSucceeded)
    assert flooded.result == "flooded"
    assert [event.payload for event in events if isinstance(event, ChildProgress) and event.id == "0"] == [
        {"step": 1}
    ]
    assert {event.id for event in events if isinstance(event, ChildReady)} == {"0", "1", "2", "3"}


@pytest.mark.parametrize("kind", ["warm", "fresh"])
async def test_a_cancelled_child_cleans_up(kind: str, tmp_path: Path) -> None:
    """The cancel of the parent is a cancel in the child, with time for its ``finally``."""
    task = ChildTask(id="1", launch=Launch(tmp_path, environment(Marked())), payload={"do": "clean up"})
    async with open_spawner(kind) as spawner:
        with trio.fail_after(HANG_SECONDS), trio.CancelScope() as scope:

            def cancel(event: SupervisorEvent) -> None:
                if isinstance(event, ChildProgress):
                    scope.cancel()

            await Supervisor(spawner, max_concurrency=1).run([task], cancel)
    assert [path.name for path in tmp_path.iterdir()] == ["cleaned"]  # noqa: ASYNC240 - one name


@pytest.mark.parametrize("do", ["clean up", "refuse to end"])
async def test_a_child_without_a_warden_ends_with_its_input(do: str, tmp_path: Path) -> None:
    """Started by hand, it ends soon after its parent's pipe closes, also when its task refuses to."""
    child = await trio.lowlevel.open_process(
        ARGV, cwd=tmp_path, env=environment(Marked()), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    async with child.stdin, child.stdout:
        with trio.fail_after(HANG_SECONDS):
            await child.stdin.send_all(encode(Task("1", {"do": do})))
            decoder = child_messages()
            while Progress("at work") not in decoder.feed(await child.stdout.receive_some()):
                pass
            await child.stdin.aclose()
            async with open_stopwatch() as watch:
                status = await child.wait()
                assert watch.seconds < 4
    assert status == (3 if do == "clean up" else -14)


async def test_a_child_that_blocks_its_loop_is_ended(tmp_path: Path) -> None:
    """Neither its input nor SIGTERM reaches it; its warden does."""
    marked = Marked()
    task = ChildTask(id="1", launch=Launch(tmp_path, environment(marked)), payload={"do": "block"})
    async with open_spawner("warm") as spawner:
        with trio.fail_after(HANG_SECONDS), trio.CancelScope() as scope:

            def cancel(event: SupervisorEvent) -> None:
                if isinstance(event, ChildProgress):
                    scope.cancel()

            await Supervisor(spawner, max_concurrency=1).run([task], cancel)
    assert marked.living() == set()


async def test_a_child_without_a_task_ends(tmp_path: Path) -> None:
    """Closing its input at once is an end without a word."""
    child = await trio.run_process(
        ARGV, cwd=tmp_path, env=environment(Marked()), stdin=b"", capture_stdout=True, check=False
    )
    assert (child.returncode, child.stdout) == (3, b"")
