"""Programs on a terminal of their own: the repl's editor, approvals beside a piped stdin, Ctrl-C."""

import os
import shutil
import subprocess
import sys
import termios
import textwrap
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.support.terminal import Terminal, open_terminal
from tests.support.waiting import HANG_SECONDS

REPL = """
    import signal, sys, trio
    from pathlib import Path
    from odek.cli.repl_input import open_repl_input

    async def main():
        commands = {"/help": "show help", "/exit": "leave"}
        async with open_repl_input(Path(sys.argv[1]), commands, mask=lambda text: text) as source:
            with trio.CancelScope() as scope, trio.open_signal_receiver(signal.SIGTERM) as signals:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(cancel_on_signal, signals, scope)
                    await read(source)
                    nursery.cancel_scope.cancel()
        print("CANCELLED" if scope.cancelled_caught else "LEFT", flush=True)

    async def cancel_on_signal(signals, scope):
        async for _ in signals:
            scope.cancel()

    async def read(source):
        while (text := await source.read()) is not None:
            print("GOT", ascii(text), flush=True)

    trio.run(main)
"""

APPROVAL = """
    import fcntl, sys, termios, trio
    from odek.cli.display import Display
    from odek.cli.prompt import TerminalApprover
    from odek.cli.renderer import make_renderer
    from odek.cli.style import Style
    from odek.trust.approval import ApprovalRequest
    from odek.trust.risk import Part, Risk, Verdict

    fcntl.ioctl(1, termios.TIOCSCTTY, 0)

    async def main():
        renderer = make_renderer(sys.stdout, sys.stderr, {})
        approver = TerminalApprover(Display(renderer), Style(), needs_friction=lambda risk: False)
        verdict = Verdict.of((Part("curl a.b", Risk.NETWORK_EGRESS, "contacts a.b"),))
        request = ApprovalRequest("1", "shell", "curl a.b", "curl a.b", verdict)
        print("ANSWER", await approver.ask([request]), "STDIN", sys.stdin.read(), flush=True)

    try:
        trio.run(main)
    except KeyboardInterrupt:
        print("INTERRUPTED", flush=True)
"""


@asynccontextmanager
async def open_program(
    terminal: Terminal, source: str, *arguments: str, stdin: int | None = None, term: str = "xterm"
) -> AsyncGenerator[trio.Process]:
    """Run ``source`` with ``terminal`` as its output, and as its input unless ``stdin`` is given."""
    root = Path(__file__).parents[2]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(root),
        "TERM": term,
        "PROMPT_TOOLKIT_NO_CPR": "1",  # nobody answers the question for the cursor's position here
        "PYTHONUTF8": "1",
    }
    async with trio.open_nursery() as nursery:
        run = partial(
            trio.run_process,
            [sys.executable, "-c", textwrap.dedent(source), *arguments],
            stdin=terminal.file if stdin is None else stdin,
            stdout=terminal.file,
            stderr=terminal.file,
            env=environment,
            start_new_session=True,
            check=False,
        )
        process: trio.Process = await nursery.start(run)
        yield process
        nursery.cancel_scope.cancel()


async def type_and_wait(terminal: Terminal, keys: str, *results: str) -> None:
    """Type ``keys`` and wait for each of ``results``."""
    terminal.type(keys)
    await terminal.wait_for(*results)


async def test_the_editor_of_the_repl(tmp_path: Path) -> None:
    """Enter sends, code and backslashes go on, pastes stay whole, Ctrl-C clears, Ctrl-D leaves."""
    history = tmp_path / "history"
    with open_terminal() as terminal:
        async with open_program(terminal, REPL, str(history)):
            await terminal.wait_for(">")
            await type_and_wait(terminal, "hello\r", "GOT 'hello'", ">")
            await type_and_wait(terminal, "one \\\rtwo\r", "GOT 'one \\ntwo'", ">")
            await type_and_wait(terminal, "```\rx\r```\r", "GOT '```\\nx\\n```'", ">")
            await type_and_wait(terminal, "a\x1b\rb\r", "GOT 'a\\nb'", ">")
            await type_and_wait(terminal, "\x1b[200~p\nq\x1b[201~\r", "GOT 'p\\nq'", ">")
            await type_and_wait(terminal, "junk\x03kept\r", "GOT 'kept'", ">")
            await type_and_wait(terminal, "\x1b[A\r", "GOT 'kept'", ">")
            await type_and_wait(terminal, "/he\t", "/help")
            await type_and_wait(terminal, "\r", "GOT '/help'", ">")
            await type_and_wait(terminal, "\x04", "LEFT")

    assert history.read_text().startswith('"hello"\n"one \\ntwo"\n')


@pytest.mark.parametrize("term", ["dumb", ""])
async def test_a_terminal_that_may_not_obey_has_plain_lines(tmp_path: Path, term: str) -> None:
    """On one called dumb, or that nobody named, no control sequence is written, and a signal ends it."""
    with open_terminal() as terminal:
        async with open_program(terminal, REPL, str(tmp_path / "history"), term=term) as process:
            seen = await terminal.wait_for("> ")
            terminal.type("one\\\r")
            seen += await terminal.wait_for(". ")
            terminal.type("two\r")
            seen += await terminal.wait_for("GOT 'one\\ntwo'", "> ")
            assert "\x1b" not in seen
            process.terminate()
            await terminal.wait_for("CANCELLED")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash controls the job")
async def test_the_editor_can_be_suspended(tmp_path: Path) -> None:
    """Ctrl-Z gives the terminal back to the shell as it was; behind ``fg`` the half-typed input goes on."""
    program = tmp_path / "repl.py"
    program.write_text(textwrap.dedent(REPL))
    shell = """
        import fcntl, os, termios
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
    """
    with open_terminal() as terminal:
        before = termios.tcgetattr(terminal.file.fileno())
        async with open_program(terminal, shell) as process:
            await type_and_wait(terminal, f"'{sys.executable}' '{program}' '{tmp_path}/history'\r", ">")
            await type_and_wait(terminal, "half", "f")
            await type_and_wait(terminal, "\x1a", "Stopped")
            assert termios.tcgetattr(terminal.file.fileno()) == before
            await type_and_wait(terminal, "fg\r", "half")
            await type_and_wait(terminal, " done\r", "GOT 'half done'", ">")
            await type_and_wait(terminal, "\x04", "LEFT")
            terminal.type("exit\r")
            with trio.fail_after(HANG_SECONDS):
                await process.wait()


async def test_a_cancelled_editor_restores_the_terminal(tmp_path: Path) -> None:
    """When the wait for input is cancelled the editor ends first and the terminal is as before."""
    with open_terminal() as terminal:
        before = termios.tcgetattr(terminal.file.fileno())
        async with open_program(terminal, REPL, str(tmp_path / "history")) as process:
            await terminal.wait_for(">")
            await type_and_wait(terminal, "half", "f")
            process.terminate()
            await terminal.wait_for("CANCELLED")

            assert termios.tcgetattr(terminal.file.fileno()) == before


async def test_approval_does_not_touch_stdin() -> None:
    """The question is asked on the controlling terminal while stdin is a pipe, which stays unread."""
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "wb") as writer:
        writer.write(b"y y y")
    with open_terminal() as terminal, os.fdopen(read_end, "rb"):
        async with open_program(terminal, APPROVAL, stdin=read_end):
            await terminal.wait_for("[?] context ")
            terminal.type("n")
            await terminal.wait_for("ANSWER ['deny'] STDIN y y y")


async def test_ctrl_c_at_a_question_restores_the_terminal() -> None:
    """Ctrl-C is a signal to the program as ever; the terminal is restored before it ends."""
    with open_terminal() as terminal:
        before = termios.tcgetattr(terminal.file.fileno())
        async with open_program(terminal, APPROVAL, stdin=subprocess.DEVNULL):
            await terminal.wait_for("[?] context ")
            terminal.type("\x03")
            await terminal.wait_for("INTERRUPTED")

            assert termios.tcgetattr(terminal.file.fileno()) == before


async def test_without_a_controlling_terminal_approval_is_refused() -> None:
    """A program in a session without a terminal gets a no, at once."""
    source = APPROVAL.replace("fcntl.ioctl(1, termios.TIOCSCTTY, 0)", "")
    with open_terminal() as terminal:
        async with open_program(terminal, source, stdin=subprocess.DEVNULL):
            await terminal.wait_for("ANSWER ['deny']")


@pytest.mark.parametrize("lines", [1, 100_000])
async def test_a_reader_that_leaves_ends_the_program_quietly(lines: int) -> None:
    """With ``| head -1`` the first line is there and nothing is complained about."""
    source = f"""
        import io, os, sys
        from odek.cli.renderer import make_renderer
        from odek.cli.screen import OutputClosedError
        from odek.events import TurnFinished, Usage

        try:
            renderer = make_renderer(sys.stdout, io.StringIO(), {{}})
            renderer.handle(TurnFinished("s", "answered", "line\\n" * {lines}, Usage(), 1, 1))
        except OutputClosedError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    """
    root = Path(__file__).parents[2]
    result = await trio.run_process(
        ["sh", "-c", '"$0" -c "$1" | head -1', sys.executable, textwrap.dedent(source)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(root)},
        capture_stdout=True,
        capture_stderr=True,
    )

    assert (result.stdout, result.stderr) == (b"line\n", b"")
