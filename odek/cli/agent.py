"""An agent in a terminal: what ``run``, ``continue`` and ``repl`` share."""

import argparse
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio

from odek.app import OpenAgent, Setup, open_agent
from odek.cli import warmup
from odek.cli.display import Display, open_display
from odek.cli.error_groups import unwrapped_errors
from odek.cli.interrupts import Interrupts
from odek.cli.main import EXIT_FAILED, EXIT_LIMIT
from odek.cli.options import flag_values
from odek.cli.renderer import make_renderer
from odek.cli.style import detect_style
from odek.config.files import load
from odek.config.layers import Resolved
from odek.errors import ConfigError, ToolError
from odek.events import AnswerDelta, Event, ModelStarted, Notice
from odek.first_answer import FirstAnswer
from odek.home import home_directory, working_directory
from odek.loop import TurnResult, run_turn
from odek.processes import registered
from odek.trust.approval import ApprovalState

if TYPE_CHECKING:
    from odek.cli.prompt import TerminalApprover

__all__ = ["AgentRun", "Stage", "exit_status", "open_stage", "read_task", "run_once", "run_trio", "start"]

TASK_LIMIT_BYTES = 1024 * 1024
"""Of a task from a pipe. A larger text is a file to attach, not a task."""

TERMINAL = "/dev/tty"


class AgentRun(msgspec.Struct, frozen=True):
    """How to run: from which configuration, where, on which session. A dialogue has no ``task``."""

    resolved: Resolved
    home: Path
    workspace: Path
    json: bool
    attachments: list[str]
    resume: str | None
    task: str
    keep_session: bool
    watch_memory: bool = False


class Stage(msgspec.Struct, frozen=True):
    """An agent with its display and its interrupts."""

    opened: OpenAgent
    display: Display
    interrupts: Interrupts

    async def turn(
        self, text: str, attachments: list[str], *, mentions: bool = True, piped: str = ""
    ) -> TurnResult | None:
        """Run one turn; None when it was cancelled.

        ``mentions`` attaches what ``text`` names by ``@path``; ``piped`` came beside it.

        Raises:
            ConfigError: a file of ``attachments`` cannot be attached.
        """
        if not attachments and not piped and not (mentions and "@" in text):
            return await self._ask(text)
        attach = partial(self.opened.attach, text, attachments, mentions=mentions, piped=piped)
        try:
            attached = await trio.to_thread.run_sync(attach)
        except ToolError as error:
            raise ConfigError(f"--ctx: {error}") from None
        for notice in attached.notices:
            self.display.emit(Notice(notice, "info" if notice.startswith("attached ") else "warning"))
        return await self._ask(attached.text)

    async def _ask(self, text: str) -> TurnResult | None:
        return await self.interrupts.run_turn(partial(run_turn, self.opened.agent, text))


def start(arguments: argparse.Namespace, *, resume: str | None, task: str) -> AgentRun:
    """Resolve the configuration for this command line.

    Raises:
        ConfigError: something in it is wrong.
    """
    home = home_directory(os.environ)
    workspace = working_directory()
    return AgentRun(
        resolved=load(home, workspace, os.environ, flag_values(arguments)),
        home=home,
        workspace=workspace,
        json=arguments.json,
        attachments=[name for names in arguments.ctx or [] for name in names.split(",") if name],
        resume=resume,
        task=task,
        keep_session=not getattr(arguments, "no_session", False),
    )


class Task(msgspec.Struct, frozen=True):
    """What is to be done: ``text``, whether it came ``from_stdin``, or what is ``piped`` in beside it."""

    text: str
    from_stdin: bool = False
    piped: str = ""


def read_task(words: list[str]) -> Task:
    """Return the task: ``words``, or stdin where there are none or "-" stands for them. Blocking.

    Behind other words "-" waits for what is piped in beside them; without it, only what is piped to this
    very command is taken.

    Raises:
        ConfigError: there is no task, or what is piped in is not text.
    """
    named = " ".join(words).strip()
    if named not in {"", "-"}:
        from odek.cli.piped import read_piped

        waits = len(words) > 1 and words[-1] == "-"
        text = " ".join(words[:-1] if waits else words).strip()
        return Task(text, piped="" if sys.stdin.isatty() else read_piped(wait=waits))
    text = ""
    if not sys.stdin.isatty():
        data = sys.stdin.buffer.read(TASK_LIMIT_BYTES + 1)
        if len(data) > TASK_LIMIT_BYTES:
            raise ConfigError(
                f"the task on stdin is longer than {TASK_LIMIT_BYTES:,} bytes; name one and pipe the rest, "
                'as in `… | odek run "explain"`'
            )
        text = data.decode("utf-8", "replace").strip()
    if text in {"", "-"}:
        raise ConfigError('there is no task: name one, as in `odek run "explain @README.md"`')
    return Task(text, from_stdin=True)


def run_once(arguments: argparse.Namespace, *, resume: str | None) -> int:
    """Run one turn in a new or resumed session and return the exit status."""
    task = read_task(arguments.task)
    run = start(arguments, resume=resume, task=task.text)

    async def main(interrupts: Interrupts) -> int:
        async with open_stage(run, interrupts) as stage:
            result = await stage.turn(
                task.text, run.attachments, mentions=not task.from_stdin, piped=task.piped
            )
            return exit_status(result, interrupts)

    return run_trio(main)


def run_trio(main: Callable[[Interrupts], Awaitable[int]]) -> int:
    """Run ``main`` on the event loop until it ends or a signal asks to leave; return the exit status.

    An error comes out alone, not in a group.
    """

    async def run() -> int:
        interrupts = Interrupts()
        with interrupts.leaving:
            return await main(interrupts)
        return interrupts.exit_status

    with unwrapped_errors():
        return trio.run(run)


@asynccontextmanager
async def open_stage(run: AgentRun, interrupts: Interrupts) -> AsyncGenerator[Stage]:
    """Yield an agent ready to work, shown in the terminal, signals watched."""
    config = run.resolved.config
    verbose = config.interaction_mode == "verbose"
    renderer = make_renderer(
        sys.stdout, sys.stderr, os.environ, json=run.json, no_color=config.no_color, verbose=verbose
    )
    async with open_display(renderer) as display, trio.open_nursery() as nursery:
        await nursery.start(interrupts.watch)
        words = _LastWords(display.emit)
        first = FirstAnswer(words.emit)
        first.then(warmup.end)  # until then something is still loaded
        approval = ApprovalState()
        setup = Setup(
            resolved=run.resolved,
            home=run.home,
            workspace=run.workspace,
            emit=first.emit,
            approval=approval,
            approver=_approver(display, approval, words, no_color=config.no_color),
            resume=run.resume,
            task=run.task,
            keep_session=run.keep_session,
            drain=interrupts.drain,
            watch_memory=run.watch_memory,
        )
        async with open_agent(setup) as opened:
            task = opened.agent.mask(run.task)
            with registered(run.home, command="agent", session=opened.session.id, task=task):
                yield Stage(opened, display, interrupts)
        nursery.cancel_scope.cancel()


def exit_status(result: TurnResult | None, interrupts: Interrupts) -> int:
    """Return the exit status that says how a turn ended."""
    if result is None:
        return interrupts.exit_status
    match result.outcome:
        case "answered":
            return 0
        case "limit":
            return EXIT_LIMIT
        case "cancelled":
            return interrupts.exit_status
        case "failed":
            return EXIT_FAILED


class _LastWords:
    """Passes events on and remembers what the model said last: the context of an approval."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._pieces: list[str] = []

    def emit(self, event: Event) -> None:
        """Pass ``event`` on."""
        if isinstance(event, ModelStarted):
            self._pieces.clear()
        elif isinstance(event, AnswerDelta):
            self._pieces.append(event.text)
        self._emit(event)

    def text(self) -> str:
        """Return the words."""
        return "".join(self._pieces)


def _approver(
    display: Display, approval: ApprovalState, words: _LastWords, *, no_color: bool
) -> "TerminalApprover | None":
    """Return who is asked: the person at the process's terminal, if it has one."""
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return None
    from odek.cli.prompt import TerminalApprover  # a run without a terminal asks nobody

    return TerminalApprover(
        display,
        detect_style(sys.stderr, os.environ, no_color=no_color),
        needs_friction=lambda risk: approval.needs_friction(risk, trio.current_time()),
        context=words.text,
        path=TERMINAL,
    )
