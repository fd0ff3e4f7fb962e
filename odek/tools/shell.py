"""The ``shell`` tool: one command, everything that it started, and its output in bounds."""

import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, assert_never

import msgspec
import trio
from msgspec import Meta

from odek.config.settings import ShellSettings
from odek.errors import ToolError
from odek.llm.model import ToolSpec
from odek.sandbox.launcher import Launcher
from odek.text import clip_line
from odek.tools.git import with_git_settings
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.trust.effects import Effects
from odek.trust.secrets import Masker
from subagent.background import Background
from subagent.errors import ChildLostError, ChildStartError
from subagent.process import Descendant, ProcessTree

if TYPE_CHECKING:
    from odek.tools.command_output import CommandOutput

__all__ = ["Shell", "ShellArguments"]

OUTPUT_MAX_BYTES = 100 * 1024 * 1024
"""Of one command, seen or not. Nobody reads beyond it, and no build that we know writes as much."""

COMMAND_MAX_BYTES = 131_071
"""Linux gives no program a single argument longer than 128 KiB, its end mark included."""

DRAIN_SECONDS = 0.1
"""For output that helpers write after the command's end, such as ``> >(tee log)``."""

LINE_INTERVAL_SECONDS = 0.25
"""Between two reports of the newest line; a person reads no faster."""

LINE_WIDTH = 200
"""Of a reported line in characters; no terminal line shows more."""

NAMED_PROCESSES = 8
"""Background processes that a result names; more are counted."""

QUIET_VARIABLES = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
}
"""There is no terminal, and nobody to turn a page, write a message in an editor or answer a question:
git takes the message as it stands, and goes without credentials that it would have to ask for."""


class ShellArguments(msgspec.Struct, frozen=True):
    """What the model says."""

    command: Annotated[str, Meta(description="Command line, run by `bash -c` in the workspace.")]
    timeout_seconds: Annotated[
        Annotated[float, Meta(gt=0, le=3600)] | None, Meta(description="Time limit, if not the default.")
    ] = None


class Exited(msgspec.Struct, frozen=True):
    """The command ended by itself; ``background`` lives on."""

    status: int
    background: tuple[Descendant, ...] = ()


class TimedOut(msgspec.Struct, frozen=True):
    """The command was ended at its time limit."""

    seconds: float


class Flooded(msgspec.Struct, frozen=True):
    """The command was ended because it wrote without end."""


class Lost(msgspec.Struct, frozen=True):
    """The command got rid of its warden."""


Ending = Exited | TimedOut | Flooded | Lost


class Shell(Tool[ShellArguments]):
    """Runs a command line.

    ``environment`` is what commands see, so it holds no secrets. ``background`` keeps
    what a finished command left running. ``masker`` hides secrets where output is cut,
    ``launcher`` says where commands run.
    """

    name = "shell"
    description = (
        "Run a command line with bash in the workspace. There is no terminal, no standard input and no "
        "editor: give git its messages by -m. "
        "Returns the output (stdout and stderr together; the middle of a long one is left out) and an exit "
        "status that is not 0. At its time limit a command is ended with all that it started. Processes "
        "started with & live on after the command, until the agent ends."
    )
    arguments_type = ShellArguments
    timeout_seconds = None  # the limit of each call is its own

    def __init__(
        self,
        workspace: Path,
        settings: ShellSettings,
        environment: Mapping[str, str],
        background: Background,
        masker: Masker,
        launcher: Launcher,
    ) -> None:
        self._workspace = workspace
        self._settings = settings
        self._environment = with_git_settings({**environment, **QUIET_VARIABLES})
        self._background = background
        self._masker = masker
        self._launcher = launcher

    def spec(self) -> ToolSpec:
        """Return the tool as the model sees it, with what it should know of the place where commands run."""
        return msgspec.structs.replace(super().spec(), description=self.description + self._launcher.told)

    async def prepare(self, arguments: ShellArguments) -> PreparedCall:
        """Check the command line; it is classified elsewhere, by its declared effect."""
        command = arguments.command
        check_command(command)
        timeout_seconds = arguments.timeout_seconds or self._settings.timeout_seconds
        return PreparedCall(
            summary=command,
            preview=command,
            effects=Effects(command=command),
            run=partial(self._run, command, timeout_seconds),
            place=self._launcher.place,
        )

    async def _run(self, command: str, timeout_seconds: float, scope: CallScope) -> ToolOutput:
        from odek.tools.command_output import CommandOutput

        output = CommandOutput(self._settings.output_limit_bytes, self._masker)
        try:
            async with self._launcher.open(command, cwd=self._workspace, env=self._environment) as tree:
                ending = await follow(tree, output, timeout_seconds, scope.on_line)
                if isinstance(ending, Exited) and ending.background:
                    self._background.adopt(tree)
        except ChildStartError as error:
            raise ToolError(f"shell: {error}") from error
        except BaseException:
            scope.leave(output.finish())
            raise
        lines = [output.finish(), *describe(ending)]
        return ToolOutput(
            content="\n".join(line for line in lines if line) or "(no output)",
            is_error=not isinstance(ending, Exited) or ending.status != 0,
        )


def check_command(command: str) -> None:
    """Refuse what no shell can be given.

    Raises:
        ToolError: the command is empty, too long, or holds a character that no program can take.
    """
    if not command.strip():
        raise ToolError("shell: the command is empty")
    if "\0" in command:
        raise ToolError("shell: the command contains a NUL character, which no program can be given")
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        raise ToolError("shell: the command contains a lone surrogate, which is not a character") from None
    if size > COMMAND_MAX_BYTES:
        raise ToolError(
            f"shell: the command has {size:,} bytes, more than the {COMMAND_MAX_BYTES:,} that the system "
            "takes; write it to a file and run that"
        )


async def follow(
    tree: ProcessTree, output: "CommandOutput", timeout_seconds: float, on_line: Callable[[str], None]
) -> Ending:
    """Collect the tree's output until its command has ended or must be ended."""
    ending: Ending = TimedOut(timeout_seconds)
    fresh, all_read = trio.Semaphore(0, max_value=1), trio.Event()

    async def collect() -> None:
        assert tree.stdout is not None  # noqa: S101 - it is a pipe by default
        async for chunk in tree.stdout:
            output.feed(chunk)
            if fresh.value == 0:
                fresh.release()
            if output.received_bytes > OUTPUT_MAX_BYTES:
                nursery.cancel_scope.cancel()
                return
        all_read.set()

    async def report() -> None:
        while True:
            await fresh.acquire()
            if line := output.newest_line():
                on_line(clip_line(line, LINE_WIDTH))
            await trio.sleep(LINE_INTERVAL_SECONDS)

    with trio.move_on_after(timeout_seconds):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collect)
            nursery.start_soon(report)
            try:
                ending = Exited(await tree.wait_exited())
            except ChildLostError:
                ending = Lost()
            with trio.move_on_after(DRAIN_SECONDS):
                await all_read.wait()
            nursery.cancel_scope.cancel()
    match ending:
        case TimedOut() if output.received_bytes > OUTPUT_MAX_BYTES:
            return Flooded()
        case Exited(status):
            return Exited(status, await tree.background())
        case _:
            return ending


def describe(ending: Ending) -> list[str]:
    """Return the lines that say how a command ended; none if it simply succeeded."""
    match ending:
        case Exited(status, background):
            lines = (
                [f"still running in the background: {describe_processes(background)}"] if background else []
            )
            return [*lines, describe_status(status)] if status else lines
        case TimedOut(seconds):
            return [f"timed out after {seconds:g} s"]
        case Flooded():
            return [f"ended because it wrote more than {OUTPUT_MAX_BYTES // 1024**2} MiB of output"]
        case Lost():
            return [
                "ended because the process that guards the command was killed; its exit status is unknown"
            ]
        case unreachable:
            assert_never(unreachable)


def describe_status(status: int) -> str:
    """Return an exit status in words; negative means a signal."""
    if status > 0:
        return f"exit status {status}"
    number = -status
    name = signal.Signals(number).name if number in set(signal.Signals) else "without a name"
    return f"ended by signal {name} ({number})"


def describe_processes(processes: tuple[Descendant, ...]) -> str:
    """Return pids and names, the first few of many."""
    named = ", ".join(f"pid {process.pid} ({process.name})" for process in processes[:NAMED_PROCESSES])
    more = len(processes) - NAMED_PROCESSES
    return f"{named} and {more} more" if more > 0 else named
