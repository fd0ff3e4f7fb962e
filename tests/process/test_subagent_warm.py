"""The warm template: what it shows, what it hides, and what happens when it does not serve."""

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from subagent.errors import ChildStartError
from subagent.reports import ChildReady, ChildTask, SupervisorEvent, TaskSucceeded
from subagent.spawner import FreshSpawner, Launch
from subagent.supervisor import Supervisor
from subagent.warm import WarmSpawner, open_warm_spawner
from tests.support import child_program
from tests.support.processes import Marked, open_descriptors, zombie_children
from tests.support.waiting import HANG_SECONDS, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forking a warm process is for Linux")

ENTRY = "tests.support.child_program:main"

READ_SECRET = (  # a child that knows nothing of this library can do it too
    "def read_secret():\n"
    " with open(int(os.environ.pop('SUBAGENT_SECRET_FD')), 'rb') as file: return file.read()\n"
)


@asynccontextmanager
async def open_warm(
    notices: list[str], *, preload: tuple[str, ...] = ("json",), entry: str = ENTRY, rehearsal: str = ""
) -> AsyncGenerator[WarmSpawner]:
    """Yield a warm spawner that falls back to fresh children of the same program."""
    before = open_descriptors()
    async with open_warm_spawner(
        preload=preload,
        entry=entry,
        rehearsal=rehearsal,
        fallback=FreshSpawner([sys.executable, "-I", "-S", child_program.__file__]),
        on_notice=notices.append,
    ) as warm:
        yield warm
    assert open_descriptors() <= before
    assert zombie_children() == []


async def answer(spawner: WarmSpawner, code: str, launch: Launch) -> object:
    """Return what a child finishes with when its program is ``code``."""
    tasks = [ChildTask(id="one", launch=launch, payload=code)]
    with trio.fail_after(HANG_SECONDS):
        (outcome,) = await Supervisor(spawner, max_concurrency=1).run(tasks, lambda _: None)
    assert isinstance(outcome, TaskSucceeded), outcome
    return outcome.result


async def test_a_forked_child_is_a_process_of_its_own(tmp_path: Path) -> None:
    """It has its directory, environment, arguments, session and title, and no descriptor of anybody else."""
    notices: list[str] = []
    code = (
        "with open('/proc/self/cmdline', 'rb') as f: title = f.read().rstrip(b'\\0').decode()\n"
        "finish({'cwd': os.getcwd(), 'env': dict(os.environ), 'argv': sys.argv, 'title': title,\n"
        "'leads': os.getsid(0) == os.getpgid(0) == os.getpid(), 'parent': os.getppid(),\n"
        "'fds': sorted(map(int, os.listdir('/proc/self/fd'))),\n"
        "'term': signal.getsignal(signal.SIGTERM) == signal.SIG_DFL})"
    )
    launch = Launch(cwd=tmp_path, env={"A": "1=2", "B": "ü"}, title="odek subagent: mend the gate")
    async with open_warm(notices) as warm:
        seen = await answer(warm, code, launch)
        assert isinstance(seen, dict)
        assert seen.pop("parent") != warm.template_pid  # a warden is between them
        mark = seen["env"].pop("SUBAGENT_TREE")
    assert len(mark) == 32
    assert seen == {
        "cwd": str(tmp_path),
        "env": {"A": "1=2", "B": "ü"},
        "argv": ["odek subagent: mend the gate"],
        "title": "odek subagent: mend the gate",
        "leads": True,
        "fds": [0, 1, 2, 3],  # 3 is the listing itself
        "term": True,
    }
    assert notices == []


async def test_children_differ_in_their_random_numbers(tmp_path: Path) -> None:
    """Forks of one template do not share their dice."""
    launch = Launch(tmp_path, {})
    async with open_warm([]) as warm:
        drawn = {await answer(warm, "import random; finish(random.random())", launch) for _ in range(3)}
    assert len(drawn) == 3


@pytest.mark.parametrize("kind", ["warm", "fresh"])
async def test_a_secret_reaches_the_child_and_no_other_place(kind: str, tmp_path: Path) -> None:
    """It is in no argument and no environment of anyone, nor in the memory of the template's environment."""
    secret = b"sk-" + os.urandom(16).hex().encode()
    code = (
        ("from subagent.secret import read_secret\n" if kind == "warm" else READ_SECRET)
        + "got = read_secret().decode(); ready()\n"
        + "while not os.path.exists('looked'): time.sleep(0.01)\n"
        + "finish([got, dict(os.environ)])"
    )
    leaks: list[Path] = []

    def look(event: SupervisorEvent) -> None:
        if isinstance(event, ChildReady):
            files = [*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")]
            leaks.extend(path for path in files if secret in content(path))
            (tmp_path / "looked").touch()

    async with open_warm([], entry=ENTRY if kind == "warm" else "nowhere:main") as warm:
        task = ChildTask(id="one", launch=Launch(tmp_path, {"A": "b"}, secret=secret), payload=code)
        with trio.fail_after(HANG_SECONDS):
            (outcome,) = await Supervisor(warm, max_concurrency=1).run([task], look)
    assert leaks == []
    assert isinstance(outcome, TaskSucceeded), outcome
    got, environment = outcome.result
    assert got == secret.decode()
    assert secret.decode() not in json.dumps(environment)


def content(path: Path) -> bytes:
    """Return what is in a file of a process, nothing if it is gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def test_the_template_holds_nothing_of_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither environment nor open files, and it has one thread; after children it is the same."""
    monkeypatch.setenv("ODEK_TEST_API_KEY", "sk-not-for-you")
    with (tmp_path / "open").open("wb"):
        async with open_warm([]) as warm:
            assert await answer(warm, "finish(1)", Launch(tmp_path, dict(os.environ))) == 1
            proc = Path(f"/proc/{warm.template_pid}")
            assert b"sk-not-for-you" not in (proc / "environ").read_bytes()
            assert len([*(proc / "task").iterdir()]) == 1
            files = [str(path.readlink()) for path in (proc / "fd").iterdir()]
            assert sorted(name.partition(":")[0] for name in files) == ["/dev/null"] * 3 + ["socket"]
            assert (proc / "cmdline").read_bytes().startswith(b"subagent template\0")


async def test_the_template_is_started_by_the_first_who_asks(tmp_path: Path) -> None:
    """Nothing runs before; afterwards one template serves everyone, and it ends with its spawner."""
    async with open_warm([]) as warm:
        pids = [warm.template_pid]
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(warm.prepare)
        pids.append(warm.template_pid)
        assert await answer(warm, "finish(1)", Launch(tmp_path, {})) == 1
        pids.append(warm.template_pid)
        assert pids[0] is None
        assert pids[1] == pids[2] is not None
    assert content(Path(f"/proc/{pids[1]}/stat")) == b""


async def test_what_was_rehearsed_is_done_in_every_child(tmp_path: Path) -> None:
    """The rehearsal runs once, in the template, and children begin with what it left behind."""
    async with open_warm([], rehearsal="gc:disable") as warm:
        assert await answer(warm, "import gc; finish(gc.isenabled())", Launch(tmp_path, {})) is False


@pytest.mark.parametrize(
    ("preload", "entry", "rehearsal", "words"),
    [
        (("no_such_module",), ENTRY, "", "No module named 'no_such_module'"),
        (("json",), "tests.support.child_program:nobody", "", "has no attribute 'nobody'"),
        (("json",), ENTRY, "os:getcwdx", "has no attribute 'getcwdx'"),
        (("tests.support.thread_starter",), ENTRY, "", "started 1 threads"),
    ],
)
async def test_a_template_that_cannot_serve_is_replaced_by_fresh_children(
    preload: tuple[str, ...], entry: str, rehearsal: str, words: str, tmp_path: Path
) -> None:
    """The work is done all the same, and one notice says why it takes longer."""
    notices: list[str] = []
    async with open_warm(notices, preload=preload, entry=entry, rehearsal=rehearsal) as warm:
        for _ in range(2):
            assert await answer(warm, "finish('fresh')", Launch(tmp_path, {})) == "fresh"
        assert warm.template_pid is None
    assert len(notices) == 1
    assert words in notices[0]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
async def test_a_template_that_stops_serving_is_replaced(number: signal.Signals, tmp_path: Path) -> None:
    """A running child lives on; the next ones are fresh; one notice."""
    notices: list[str] = []
    marked = Marked()
    marked.watch(tmp_path)
    async with open_warm(notices) as warm:
        async with warm.open_child(Launch(tmp_path, {})) as child:
            stdin, stdout, _ = child.pipes()
            assert warm.template_pid is not None
            os.kill(warm.template_pid, number)
            if number == signal.SIGKILL:
                await wait_until(lambda: bool(notices))
            assert await answer(warm, "finish('fresh')", Launch(tmp_path, {})) == "fresh"
            await stdin.send_all(b'{"payload": "finish(1)"}\n')
            assert await stdout.receive_some() == b'{"type": "finished", "payload": 1}\n'
            assert await child.wait_exited() == 0
        assert await answer(warm, "finish('fresh')", Launch(tmp_path, {})) == "fresh"
        assert len(notices) == 1
    assert marked.living() == set()


async def test_a_launch_that_cannot_be_is_no_fault_of_the_template(tmp_path: Path) -> None:
    """A missing directory or a secret too long is an error of that child alone."""
    notices: list[str] = []
    async with open_warm(notices) as warm:
        for launch, words in (
            (Launch(tmp_path / "gone", {}), "gone': No such file"),
            (Launch(tmp_path, {"A=B": "c"}), "'A=B'"),
            (Launch(tmp_path, {}, secret=b"x" * 2_000_000), "2000000 bytes"),
        ):
            with pytest.raises(ChildStartError, match=words):
                async with warm.open_child(launch):
                    pytest.fail("it did start")
        assert await answer(warm, "finish(1)", Launch(tmp_path, {})) == 1
    assert notices == []


@pytest.mark.parametrize("rounds", range(10))
async def test_a_cancel_at_any_moment_of_the_start_leaves_nothing(rounds: int, tmp_path: Path) -> None:
    """From the first instruction to a running child: no process, zombie or descriptor remains."""
    marked = Marked()
    marked.watch(tmp_path)
    async with open_warm([]) as warm:
        if rounds > 2:
            await warm.prepare()
        before = open_descriptors()
        with trio.move_on_after(rounds * 0.0012):
            async with warm.open_child(Launch(tmp_path, {})) as child:
                await child.wait_exited()
        assert marked.living() == set()
        await warm.prepare()
        if rounds > 2:
            assert open_descriptors() <= before
