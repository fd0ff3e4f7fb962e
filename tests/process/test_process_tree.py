"""Real commands under a real warden: nothing of a tree outlives its block."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from subagent.background import open_background
from subagent.errors import ChildLostError, ChildStartError
from subagent.process import GRACE_SECONDS, ProcessTree, open_process_tree
from tests.support.processes import ESCAPES, SLEEPER, Marked, open_descriptors, zombie_children
from tests.support.waiting import HANG_SECONDS, open_stopwatch, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


async def read_all(tree: ProcessTree) -> bytes:
    """Return what the tree writes until nobody of it can write any more."""
    assert tree.stdout is not None
    return b"".join([chunk async for chunk in tree.stdout])


@pytest.mark.parametrize(
    ("command", "status"), [("true", 0), ("exit 3", 3), ("kill -KILL $$", -9), ("kill -TERM $$", -15)]
)
async def test_the_exit_status_is_the_commands_own(command: str, status: int, tmp_path: Path) -> None:
    """A code is positive, a signal negative, whoever asks and how often."""
    async with open_process_tree(["sh", "-c", command], cwd=tmp_path, env=dict(os.environ)) as tree:
        assert await tree.wait_exited() == status
        assert await tree.wait_exited() == status
        assert await tree.background() == ()


async def test_output_is_merged_and_the_environment_is_exact(tmp_path: Path) -> None:
    """The command sees the given variables, directory and arguments, and no terminal."""
    code = (
        "import os, sys; print(sorted(os.environ), os.getcwd(), sys.argv[1:], flush=True); "
        "print('e', file=sys.stderr)"
    )
    argv = [sys.executable, "-S", "-c", code, "", "two words", "ünï"]
    async with open_process_tree(argv, cwd=tmp_path, env={"A": "1=2", "LC_ALL": "C.UTF-8"}) as tree:
        out = (await read_all(tree)).decode()
    assert out == f"['A', 'LC_ALL', 'SUBAGENT_TREE'] {tmp_path} ['', 'two words', 'ünï']\ne\n"


async def test_pipes_and_passed_descriptors_reach_the_command(tmp_path: Path) -> None:
    """Standard input, a separate standard error and an extra descriptor work, and end."""
    extra_read, extra_write = os.pipe()
    with os.fdopen(extra_read, "rb") as extra:
        async with open_process_tree(
            ["bash", "-c", f"cat; echo err >&2; echo extra >&{extra_write}"],
            cwd=tmp_path,
            env=dict(os.environ),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[extra_write],
        ) as tree:
            os.close(extra_write)
            assert tree.stdin is not None
            assert tree.stderr is not None
            await tree.stdin.send_all(b"in")
            await tree.stdin.aclose()
            assert await read_all(tree) == b"in"
            assert await tree.stderr.receive_some() == b"err\n"
            assert extra.read() == b"extra\n"


async def test_the_command_holds_no_descriptor_but_its_own(tmp_path: Path) -> None:
    """Neither the warden's pipes nor anything else of ours leaks into it."""
    argv = ["sh", "-c", "ls /proc/self/fd"]
    async with open_process_tree(argv, cwd=tmp_path, env=dict(os.environ)) as tree:
        assert (await read_all(tree)).split() == [b"0", b"1", b"2", b"3"]  # 3 is the listing itself


@pytest.mark.parametrize(
    ("argv", "directory", "words"),
    [
        (["no-such-command"], ".", "cannot run 'no-such-command': No such file"),
        (["true"], "gone", "gone': No such file"),
        (["echo", "a\0b"], ".", "NUL"),
        (["echo", "x" * 200_000], ".", "Argument list too long"),
    ],
)
async def test_what_cannot_start_says_why(
    argv: list[str], directory: str, words: str, tmp_path: Path
) -> None:
    """One line names the command or the directory, and nothing is left open."""
    before = open_descriptors()
    with pytest.raises(ChildStartError, match=words):
        async with open_process_tree(argv, cwd=tmp_path / directory, env=dict(os.environ)):
            pytest.fail("it did start")
    assert open_descriptors() <= before
    assert zombie_children() == []


@pytest.mark.parametrize("escape", ESCAPES)
async def test_nothing_outlives_the_block(escape: str, tmp_path: Path) -> None:
    """However a process leaves its parent, it is gone when a cancel has left the block."""
    marked = Marked()
    marked.watch(tmp_path)
    with trio.CancelScope() as scope:
        async with open_process_tree(["bash", "-c", ESCAPES[escape]], cwd=tmp_path, env=marked.environment):
            await wait_until(lambda: len(marked.living()) >= 2 and (tmp_path / "up").exists())
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert marked.living() == set()
    assert zombie_children() == []


@pytest.mark.parametrize(
    ("command", "grace_seconds"), [("trap '' TERM; sleep 300; sleep 300", GRACE_SECONDS), ("sleep 300", 60)]
)
async def test_ending_takes_bounded_time(command: str, grace_seconds: float, tmp_path: Path) -> None:
    """A tree that is deaf to SIGTERM is gone soon after its grace, a willing one does not use it."""
    argv, environment = ["bash", "-c", command], dict(os.environ)
    async with open_stopwatch() as watch:
        async with open_process_tree(argv, cwd=tmp_path, env=environment, grace_seconds=grace_seconds):
            watch.start()
        assert watch.seconds < 2


async def test_a_process_may_clean_up_after_sigterm(tmp_path: Path) -> None:
    """SIGTERM comes first, also to a stopped process, and the grace is enough to act on it."""
    command = "trap 'echo cleaned > note; exit 0' TERM; echo ready; kill -STOP $$; sleep 300"
    async with open_process_tree(["bash", "-c", command], cwd=tmp_path, env=dict(os.environ)) as tree:
        assert tree.stdout is not None
        assert await tree.stdout.receive_some() == b"ready\n"
    assert (tmp_path / "note").read_text() == "cleaned\n"


async def test_a_background_child_does_not_hold_up_the_exit_status(tmp_path: Path) -> None:
    """The command's end is reported though a child still holds its output."""
    marked = Marked()
    argv = ["bash", "-c", f"{SLEEPER}; echo hi"]
    async with open_process_tree(argv, cwd=tmp_path, env=marked.environment) as tree:
        with trio.fail_after(HANG_SECONDS):
            assert await tree.wait_exited() == 0
        assert [process.name for process in await tree.background()] == ["sleep"]
        assert len(marked.living()) == 1
    assert marked.living() == set()


async def test_killing_the_warden_does_not_free_the_tree(tmp_path: Path) -> None:
    """A command that kills its guard is found by its group and its mark, and reported as lost."""
    marked = Marked()
    before = open_descriptors()
    command = "setsid sleep 300 & sleep 300 & kill -KILL $PPID; sleep 300"
    with pytest.raises(ChildLostError):
        async with open_process_tree(["bash", "-c", command], cwd=tmp_path, env=marked.environment) as tree:
            await tree.wait_exited()
    assert marked.living() == set()
    assert open_descriptors() <= before
    assert zombie_children() == []


async def test_a_stopped_warden_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """A guard that cannot act any more is replaced by the owner itself."""
    marked = Marked()
    argv = ["bash", "-c", "setsid sleep 300 & read line; kill -STOP $PPID; echo done; sleep 300"]
    environment = marked.environment
    async with open_stopwatch() as watch:
        async with open_process_tree(argv, cwd=tmp_path, env=environment, stdin=subprocess.PIPE) as tree:
            assert tree.stdin is not None
            assert tree.stdout is not None
            await tree.stdin.send_all(b"go\n")
            assert await tree.stdout.receive_some() == b"done\n"
            watch.start()
        assert watch.seconds < 3
    assert marked.living() == set()


async def test_a_warden_survives_what_a_command_does_to_its_group(tmp_path: Path) -> None:
    """`kill 0` and a hang-up end the command, and its status still arrives."""
    for command, status in (("kill -KILL 0", -9), ("kill -HUP $PPID; kill -INT $PPID; exit 4", 4)):
        async with open_process_tree(["bash", "-c", command], cwd=tmp_path, env=dict(os.environ)) as tree:
            assert await tree.wait_exited() == status


@pytest.mark.parametrize("rounds", range(12))
async def test_a_cancel_at_any_moment_of_the_start_leaves_nothing(rounds: int, tmp_path: Path) -> None:
    """From the first instruction to a running command: no process, zombie or descriptor remains."""
    marked = Marked()
    before = open_descriptors()
    with trio.move_on_after(rounds * 0.003):
        async with open_process_tree(["sleep", "300"], cwd=tmp_path, env=marked.environment) as tree:
            await tree.wait_exited()
    assert marked.living() == set()
    assert zombie_children() == []
    assert open_descriptors() <= before


async def test_trees_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Ending one of two that run side by side leaves the other alive."""
    one, other = Marked(), Marked()
    argv = ["bash", "-c", "setsid sleep 300 & sleep 300"]
    async with open_process_tree(argv, cwd=tmp_path, env=other.environment):
        async with open_process_tree(argv, cwd=tmp_path, env=one.environment):
            await wait_until(lambda: len(one.living()) == len(other.living()) == 3)
        assert one.living() == set()
        assert len(other.living()) == 3
    assert other.living() == set()


async def test_a_background_tree_lives_until_its_keeper_closes(tmp_path: Path) -> None:
    """An adopted tree survives its block, never blocks on its output, and ends with the keeper."""
    marked = Marked()
    before = open_descriptors()
    command = "(head -c 300000 /dev/zero; echo > written; sleep 300) &"
    async with open_background() as background:
        async with open_process_tree(["bash", "-c", command], cwd=tmp_path, env=marked.environment) as tree:
            await tree.wait_exited()
            background.adopt(tree)
        await wait_until((tmp_path / "written").exists)
        assert marked.living()
    assert marked.living() == set()
    assert open_descriptors() <= before


async def test_a_background_tree_that_ends_by_itself_is_let_go(tmp_path: Path) -> None:
    """Nothing of it is kept once its last process is gone, while the keeper lives on."""
    before = open_descriptors()
    async with open_background() as background:
        argv = ["bash", "-c", "sleep 300 & echo $!"]
        async with open_process_tree(argv, cwd=tmp_path, env=dict(os.environ)) as tree:
            assert tree.stdout is not None
            pid = int(await tree.stdout.receive_some())
            await tree.wait_exited()
            background.adopt(tree)
        os.kill(pid, signal.SIGKILL)
        await wait_until(lambda: open_descriptors() <= before and not zombie_children())
