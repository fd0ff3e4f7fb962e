"""The shell tool with real commands: results, limits, and nothing left behind."""

import re
import shutil
import sys
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from odek.config.settings import ShellSettings
from odek.errors import ToolError
from odek.sandbox.launcher import Here
from odek.tools.shell import Shell
from odek.tools.tool import CallScope
from odek.trust.effects import Effects
from odek.trust.secrets import Masker
from subagent.background import open_background
from tests.support.processes import ESCAPES, SLEEPER, Marked, open_descriptors, zombie_children
from tests.support.tool_calls import call, prepare
from tests.support.waiting import HANG_SECONDS, LIMITS_SECONDS, open_stopwatch, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


@pytest.fixture
def marked(tmp_path: Path) -> Marked:
    """A mark that every command of the test bears."""
    marked = Marked()
    marked.watch(tmp_path)
    return marked


@pytest.fixture
async def shell(marked: Marked, tmp_path: Path) -> AsyncIterator[Shell]:
    """The tool in an empty workspace."""
    async with open_background() as background:
        yield Shell(
            tmp_path, ShellSettings(output_limit_bytes=2048), marked.environment, background, Masker(), Here()
        )


@pytest.mark.parametrize(
    ("command", "content", "is_error"),
    [
        ("echo out; echo err >&2", "out\nerr", False),
        ("true", "(no output)", False),
        ("echo some; exit 7", "some\nexit status 7", True),
        ("false", "exit status 1", True),
        ("kill -KILL $$", "ended by signal SIGKILL (9)", True),
        ("kill -40 $$", "ended by signal without a name (40)", True),
        ("no-such-program", "bash: line 1: no-such-program: command not found\nexit status 127", True),
        ("cat; echo $TERM $PAGER $GIT_PAGER; tty", "dumb cat cat\nnot a tty\nexit status 1", True),
        ("shopt -q login_shell || echo none; [[ a == a ]] && echo bash", "none\nbash", False),
        ("printf 'a\\0b\\033[31mc\\033[0m\\377'", "abc\ufffd", False),
    ],
)
async def test_the_result_is_the_output_and_how_it_ended(
    shell: Shell, command: str, content: str, is_error: bool
) -> None:
    """Output first, then the status if it is not 0, which also makes the result an error."""
    output = await call(shell, command=command)
    assert (output.content, output.is_error) == (content, is_error)


async def test_what_a_helper_writes_a_moment_after_the_end_is_output_too(shell: Shell) -> None:
    """A shell does not wait for its process substitutions; they are not in the background for that."""
    contents: list[str] = []
    while (
        "one" not in contents and len(contents) < 20
    ):  # on a busy machine the moment may be too long for once
        contents.append((await call(shell, command="echo one &> >(sleep 0.02; cat)")).content)
    assert contents[-1] == "one"


@pytest.mark.skipif(shutil.which("git") is None, reason="git asks for an editor")
async def test_git_waits_for_no_editor(shell: Shell) -> None:
    """Messages that are there already are taken; a missing one is git's own error, at once."""
    identity = "export GIT_{AUTHOR,COMMITTER}_{NAME,EMAIL}=x EDITOR='sleep 30' VISUAL='sleep 30'"
    await call(shell, command="git init -q; touch a b; git add a")

    with trio.fail_after(HANG_SECONDS):
        first = await call(
            shell, command=f"{identity}; git commit -q -m one; git add b; git commit --amend -q"
        )
        second = await call(
            shell, command=f"{identity}; git log --format=%s; touch c; git add c; git commit -q"
        )

    assert first.content == "(no output)"
    assert second.content == "one\nAborting commit due to empty commit message.\nexit status 1"


async def test_a_call_declares_its_command_and_shows_it_whole(shell: Shell) -> None:
    """The effect is the command as it will run; whoever shows the summary cuts it to a line."""
    command = "echo one\necho " + "x" * 300
    prepared = await prepare(shell, command=command)
    assert prepared.effects == Effects(command=command)
    assert prepared.preview == prepared.summary == command


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"command": "  \n"}, "empty"),
        ({"command": "echo a\0b"}, "NUL"),
        ({"command": "x" * 200_000}, "200,000 bytes, more than the 131,071"),
        ({"command": "true", "timeout_seconds": 0}, "timeout_seconds"),
        ({"command": "true", "timeout_seconds": 3601}, "timeout_seconds"),
        ({}, "command"),
    ],
)
async def test_arguments_that_make_no_sense_are_refused(
    shell: Shell, arguments: dict[str, object], words: str
) -> None:
    """The model reads one sentence that names the trouble."""
    with pytest.raises(ToolError, match=words):
        await prepare(shell, **arguments)


async def test_the_longest_possible_command_runs(shell: Shell) -> None:
    """What is not refused as too long does run."""
    output = await call(shell, command="echo ok #".ljust(131_071, "x"))
    assert output.content == "ok"


async def test_a_workspace_that_is_gone_is_an_error_for_the_model(shell: Shell, tmp_path: Path) -> None:
    """The directory is named; nothing ran elsewhere."""
    await trio.Path(tmp_path).rmdir()
    with pytest.raises(ToolError, match=re.escape(f"cannot enter '{tmp_path}': No such file")):
        await call(shell, command="pwd")


async def test_without_bash_the_systems_shell_is_used(tmp_path: Path) -> None:
    """A system that has only sh runs commands too."""
    async with open_background() as background:
        shell = Shell(tmp_path, ShellSettings(), {"PATH": str(tmp_path)}, background, Masker(), Here())
        output = await call(shell, command="echo $0")
    assert output.content == "/bin/sh"


async def test_a_long_output_keeps_head_and_tail(shell: Shell) -> None:
    """The middle is left out, its size is named, and the status still comes last."""
    output = await call(shell, command="seq 1 100000; exit 1")
    assert output.content.startswith("1\n2\n3\n")
    assert output.content.endswith("\n99999\n100000\nexit status 1")
    assert "[… 586,847 bytes left out …]" in output.content


async def test_a_background_process_does_not_hold_up_the_result(shell: Shell, marked: Marked) -> None:
    """The call returns, names the process, and the process lives on until the agent ends."""
    with trio.fail_after(HANG_SECONDS):
        output = await call(shell, command=f"{SLEEPER}; echo hi")
    assert re.fullmatch(r"hi\nstill running in the background: pid \d+ \(sleep\)", output.content)
    assert not output.is_error
    assert len(marked.living()) == 1


async def test_background_processes_end_with_their_owner(marked: Marked, tmp_path: Path) -> None:
    """Several of them, deaf ones too, are gone about a second after the agent ends."""
    async with open_stopwatch() as watch:
        async with open_background() as background:
            shell = Shell(tmp_path, ShellSettings(), marked.environment, background, Masker(), Here())
            for command in ("sleep 300 &", "setsid bash -c \"trap '' TERM; sleep 300; :\" &", "yes &"):
                await call(shell, command=command)
            assert len(marked.living()) >= 3
            watch.start()
        assert watch.seconds < 2
    assert marked.living() == set()


async def test_a_background_process_can_be_stopped_by_a_later_command(shell: Shell, marked: Marked) -> None:
    """The pid that the result names is good for kill."""
    output = await call(shell, command="sleep 300 &")
    (pid,) = re.findall(r"pid (\d+)", output.content)
    await call(shell, command=f"kill {pid}")
    await wait_until(lambda: not marked.living(), seconds=2)


@pytest.mark.parametrize("escape", ESCAPES)
async def test_nothing_survives_the_time_limit(escape: str, shell: Shell, marked: Marked) -> None:
    """At the limit the whole tree is gone and the output so far is told."""
    for limit_seconds in LIMITS_SECONDS:
        with trio.fail_after(HANG_SECONDS):
            output = await call(
                shell, command=f"echo begun; {ESCAPES[escape]}", timeout_seconds=limit_seconds
            )
        assert output.is_error
        assert output.content.endswith(f"timed out after {limit_seconds:g} s")
        assert marked.living() == set()
        if output.content.startswith("begun"):
            return
    pytest.fail("the command has not even begun")


@pytest.mark.parametrize("escape", ESCAPES)
async def test_nothing_survives_a_cancel(escape: str, shell: Shell, marked: Marked, tmp_path: Path) -> None:
    """When the cancelled call has returned, its tree is gone."""
    async with open_stopwatch() as watch:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:

                async def run() -> None:
                    await call(shell, command=ESCAPES[escape])
                    pytest.fail("it should have been cancelled")

                nursery.start_soon(run)
                await wait_until(lambda: len(marked.living()) >= 2 and (tmp_path / "up").exists())
                watch.start()
                scope.cancel()
        assert watch.seconds < 2
    assert scope.cancelled_caught
    assert marked.living() == set()


async def test_an_endless_output_is_ended_in_bounded_memory(tmp_path: Path, marked: Marked) -> None:
    """A flood is cut off, and while it lasts memory does not grow with it."""
    async with open_background() as background:
        shell = Shell(tmp_path, ShellSettings(), marked.environment, background, Masker(), Here())
        tracemalloc.start()
        try:
            output = await call(
                shell, command="yes 'a line of sixty-four bytes, which is what most programs write'"
            )
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert output.is_error
    assert output.content.endswith("ended because it wrote more than 100 MiB of output")
    assert peak_bytes < 4 * 1024 * 1024
    assert marked.living() == set()


async def test_binary_output_is_text_within_the_limit(shell: Shell) -> None:
    """Bytes of no meaning become valid text without control characters, not much beyond the limit."""
    output = await call(shell, command="head -c 300000 /dev/urandom")
    assert len(output.content.encode()) < 2048 + 60
    assert all(char.isprintable() or char in "\n\t" or ord(char) >= 0xA0 for char in output.content)


async def test_the_newest_line_is_reported_while_the_command_runs(tmp_path: Path, shell: Shell) -> None:
    """Lines arrive before the end, clean and whole, and not more often than a person can read."""
    lines: list[str] = []
    command = (
        "printf '\\033[1mfirst\\033[0m\\nhal'; while [ ! -e go ]; do sleep 0.01; done; "
        'for i in $(seq 1 3000); do echo "line $i"; done; echo last; while [ ! -e stop ]; do sleep 0.01; done'
    )
    prepared = await prepare(shell, command=command)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(prepared.run, CallScope("1", lines.append))
        await wait_until(lambda: lines == ["first"])
        (tmp_path / "go").touch()
        await wait_until(lambda: lines[-1] == "last")
        (tmp_path / "stop").touch()
    assert len(lines) < 20


async def test_a_command_that_kills_its_guard_is_told_so(shell: Shell, marked: Marked) -> None:
    """The result says what happened, and the tree is gone all the same."""
    output = await call(shell, command="echo before; setsid sleep 300 & kill -KILL $PPID; sleep 300")
    assert output.is_error
    assert output.content.startswith("before\nended because the process that guards")
    assert marked.living() == set()


async def test_parallel_calls_are_independent(shell: Shell, marked: Marked, tmp_path: Path) -> None:
    """Cancelling one of two calls leaves the other to finish."""
    contents: list[str] = []

    async def run(command: str) -> None:
        contents.append((await call(shell, command=command)).content)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, "mkfifo held; read line < held; echo got $line")
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as doomed:
                doomed.start_soon(run, "setsid sleep 300 & sleep 300")
                held = tmp_path / "held"
                await wait_until(lambda: held.exists() and len(marked.living()) == 4)
                scope.cancel()
        assert len(marked.living()) == 1
        await call(shell, command="echo word > held")
    assert contents == ["got word"]


async def test_many_calls_leak_nothing(shell: Shell, marked: Marked) -> None:
    """Neither descriptors nor zombies nor tasks pile up, over endings of every kind."""
    await call(shell, command="true")
    before = open_descriptors()
    tasks = trio.lowlevel.current_statistics().tasks_living
    for number in range(50):
        match number % 5:
            case 0:
                await call(shell, command="true", timeout_seconds=0.001)
            case 1:
                with trio.move_on_after(0.01):
                    await call(shell, command="sleep 300")
            case 2:
                await call(shell, command="kill -KILL $PPID")
            case _:
                await call(shell, command="echo text; exit 1")
    assert open_descriptors() <= before
    assert trio.lowlevel.current_statistics().tasks_living == tasks
    assert zombie_children() == []
    assert marked.living() == set()


async def test_git_runs_nothing_that_a_folder_names(shell: Shell, tmp_path: Path) -> None:
    """A folder that looks like a bare repository brings a configuration; its programs stay where they are."""
    folder = tmp_path / "evil"
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    hook = f"touch {tmp_path}/ran; false"
    lines = [
        "[core]",
        "repositoryformatversion = 0",
        "bare = false",
        "worktree = ..",
        f'fsmonitor = "{hook}"',
    ]
    (folder / "config").write_text("\n".join(lines))

    await call(shell, command="cd evil && git status; git -C . status")

    assert not (tmp_path / "ran").exists()
