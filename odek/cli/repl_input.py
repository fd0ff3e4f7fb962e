"""What the person types into the repl, one input of one or many lines at a time."""

import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from odek.cli.history import ReplHistory
from odek.errors import OdekError, StoreError
from odek.storage.files import describe

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import Application
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.key_binding import KeyBindings

__all__ = ["LineInput", "ReplInput", "TerminalInput", "needs_more", "open_repl_input"]

_FENCES: Final = ("```", "~~~")
_READ_BYTES: Final = 1 << 16

STOP_SECONDS: Final = 0.2
"""A signal to the own process arrives within milliseconds even on a busy machine; nobody notices the wait."""

INPUT_LIMIT_BYTES: Final = 1024 * 1024
"""Of one input from a pipe, as of a task from one: a larger text is a file to attach."""


class ReplInput(Protocol):
    """Where the repl reads from."""

    async def read(self) -> str | None:
        """Return the next input, without its last line end, or None when there is no more."""
        ...


@asynccontextmanager
async def open_repl_input(
    history_path: Path,
    commands: Mapping[str, str],
    *,
    mask: Callable[[str], str],
    no_color: bool = False,
) -> AsyncGenerator[ReplInput]:
    """Open the input: an editor when stdin and stdout are a terminal that obeys, else plain lines.

    Args:
        history_path: file of earlier inputs.
        commands: name of a command, such as ``/help``, to what it does, for completion.
        mask: takes secrets out of what goes into the history.
        no_color: draw the editor without colour.
    """
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if at_terminal and os.environ.get("TERM", "") not in {"", "dumb"}:
        history = ReplHistory(history_path, mask)
        entries = await trio.to_thread.run_sync(history.load)
        yield TerminalInput(history, entries, commands, no_color=no_color)
    else:
        yield LineInput(sys.stdin.fileno(), prompts=at_terminal)


def needs_more(text: str) -> bool:
    """Say whether ``text`` goes on: its last line ends in a backslash, or fenced code is open."""
    return _asks_for_more(text) or bool(_fence_after("", text))


def _asks_for_more(line: str) -> bool:
    return bool((len(line) - len(line.rstrip("\\"))) % 2)


def _fence_after(fence: str, text: str) -> str:
    """Return the mark of the fenced code that is open behind ``text``, of that before it or "" for none."""
    for line in text.splitlines():
        mark = line.strip()[:3]
        if mark in _FENCES and fence in {"", mark}:
            fence = "" if fence else mark
    return fence


class LineInput:
    """Reads lines of UTF-8 from a file or pipe, or from a terminal that can do no more; that one ``prompts``.

    It reads from the descriptor: a thread that waits inside a file object's lock when the
    program ends would make the interpreter abort.
    """

    def __init__(self, descriptor: int, *, prompts: bool = False) -> None:
        self._descriptor = descriptor
        self._prompts = prompts
        self._buffer = bytearray()

    async def read(self) -> str | None:
        """Return the next line, joined with those that it says belong to it, or None at the end.

        Raises:
            OdekError: the input cannot be read, is not UTF-8, or is too long.
        """
        lines: list[str] = []
        fence, room_bytes = "", INPUT_LIMIT_BYTES
        while (line := await self._prompted(room_bytes, ". " if lines else "> ")) is not None:
            room_bytes -= len(line.encode()) + 1
            fence = _fence_after(fence, line)
            asks = _asks_for_more(line)
            lines.append(line[:-1] if asks else line)
            if not (asks or fence):
                return "\n".join(lines)
        return "\n".join([*lines, ""]) if lines else None

    async def _prompted(self, limit_bytes: int, prompt: str) -> str | None:
        if self._prompts:
            print(prompt, end="", flush=True)
        line = await self._next_line(limit_bytes)
        if self._prompts and line is None:
            print()  # what comes next begins a line of its own
        return line

    async def _next_line(self, limit_bytes: int) -> str | None:
        try:
            searched = 0
            while (end := self._buffer.find(b"\n", searched)) < 0:
                searched = len(self._buffer)
                if searched > limit_bytes:
                    break
                # A cancelled read leaves its thread behind; only the end of the program cancels it.
                more = await trio.to_thread.run_sync(
                    os.read, self._descriptor, _READ_BYTES, abandon_on_cancel=True
                )
                if not more:
                    break
                self._buffer += more
            line = self._buffer[: end if end >= 0 else None]
            if len(line) > limit_bytes:
                raise OdekError(
                    f"an input on stdin is longer than {INPUT_LIMIT_BYTES:,} bytes; attach it as a file"
                )
            del self._buffer[: len(line) + 1]
            return line.removesuffix(b"\r").decode() if line or end >= 0 else None
        except UnicodeDecodeError as error:
            raise OdekError(
                f"stdin is not UTF-8: byte 0x{error.object[error.start]:02x}; convert it first"
            ) from None
        except OSError as error:
            raise OdekError(f"cannot read stdin: {describe(error)}") from error


class TerminalInput:
    """Reads from the terminal with editing, history and completion.

    Enter sends, unless the input needs more; Alt-Enter makes a new line; pasted lines stay
    together; Ctrl-C clears; Ctrl-Z suspends the program; Ctrl-D on an empty line ends.
    """

    def __init__(
        self, history: ReplHistory, entries: list[str], commands: Mapping[str, str], *, no_color: bool = False
    ) -> None:
        self._history = history
        self._session = _make_session(entries, commands, no_color=no_color)
        self._application: Application[str] | None = None
        self._stop = False

    async def read(self) -> str | None:
        """Return the next input, or None when the person leaves."""
        self._stop = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._end_editor_on_cancel)
            # Not abandoned: the editor itself puts the terminal back, so it has to end first.
            text = await trio.to_thread.run_sync(self._edit)
            nursery.cancel_scope.cancel()
        if text is not None and text.strip():
            await self._remember(text)
        return text

    async def _remember(self, text: str) -> None:
        try:
            await trio.to_thread.run_sync(self._history.append, text)
        except StoreError:
            return  # a lost line of history is not worth an interruption

    def _edit(self) -> str | None:
        """Run the editor, which has an event loop of its own, in this thread."""
        try:
            return self._session.prompt("> ", pre_run=self._started)
        except EOFError:
            return None
        finally:
            self._application = None

    def _started(self) -> None:
        self._application = self._session.app
        if self._stop:  # cancelled before the editor could be told
            self._session.app.exit(exception=EOFError)

    async def _end_editor_on_cancel(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self._stop = True
            application = self._application
            if application is not None and application.loop is not None:
                with suppress(RuntimeError):  # its loop has just ended by itself
                    application.loop.call_soon_threadsafe(_leave, application)


def _leave(application: "Application[str]") -> None:
    if application.is_running and application.future is not None and not application.future.done():
        application.exit(exception=EOFError)


def _make_session(entries: list[str], commands: Mapping[str, str], *, no_color: bool) -> "PromptSession[str]":
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import InMemoryHistory
    from prompt_toolkit.output import ColorDepth

    return PromptSession(
        history=InMemoryHistory(entries),
        multiline=True,
        key_bindings=_key_bindings(),
        completer=_completer(commands),
        complete_while_typing=False,
        prompt_continuation=". ",
        color_depth=ColorDepth.DEPTH_1_BIT if no_color else ColorDepth.DEPTH_4_BIT,
    )


def _key_bindings() -> "KeyBindings":
    from prompt_toolkit.application import run_in_terminal
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    bindings = KeyBindings()

    @bindings.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if not needs_more(buffer.text):
            buffer.validate_and_handle()
            return
        if buffer.document.is_cursor_at_the_end and _asks_for_more(buffer.text):
            buffer.delete_before_cursor()
        buffer.newline(copy_margin=False)

    @bindings.add("escape", "enter")
    def _alt_enter(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @bindings.add("c-z")
    def _suspend(_event: KeyPressEvent) -> None:
        run_in_terminal(_stop_job)  # as the shell left it; draws the input again afterwards

    @bindings.add("c-c")
    def _clear(event: KeyPressEvent) -> None:
        event.current_buffer.reset()

    return bindings


def _stop_job() -> None:
    """Stop this process, and those around it in its job; return when it goes on."""
    os.kill(0, signal.SIGTSTP)
    # Another thread takes the signal, a moment later; a job without a shell around it never stops.
    time.sleep(STOP_SECONDS)


def _completer(commands: Mapping[str, str]) -> "Completer":
    from prompt_toolkit.completion import Completer, Completion

    class CommandCompleter(Completer):
        """Completes the name of a command at the start of the input."""

        def get_completions(self, document: Any, complete_event: Any) -> Any:
            del complete_event
            typed = document.text_before_cursor
            if typed.startswith("/") and " " not in typed:
                for name, meaning in commands.items():
                    if name.startswith(typed):
                        yield Completion(name, start_position=-len(typed), display_meta=meaning)

    return CommandCompleter()
