"""The person's terminal itself, for questions: its keys one by one, whatever stdin is."""

import os
import termios
import tty
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import trio

__all__ = ["Terminal", "TerminalGoneError", "open_terminal"]

_END_OF_INPUT = "\x04"
_READ_BYTES = 1024


class TerminalGoneError(Exception):
    """There is no terminal, or it was closed: nobody can be asked."""


class Terminal:
    """An open terminal in cbreak mode: keys come without Enter, and Ctrl-C is still a signal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.mid_line = False

    @property
    def columns(self) -> int:
        """The width now."""
        try:
            return os.get_terminal_size(self._descriptor).columns or 80
        except OSError:
            return 80

    async def write(self, text: str) -> None:
        """Write all of ``text``, however slowly the terminal takes it.

        Raises:
            TerminalGoneError: the terminal was closed.
        """
        rest = memoryview(text.encode("utf-8", "backslashreplace"))
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._descriptor)
            except OSError as error:
                raise TerminalGoneError from error
        if text:
            self.mid_line = not text.endswith("\n")

    def discard_input(self) -> None:
        """Forget what was typed so far: it cannot have been meant for what is asked next."""
        with suppress(termios.error):
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

    async def read_key(self) -> str:
        r"""Return the next single key, "\n" for Enter.

        Several characters at once are a paste or the sequence of a function key, never an
        answer; they are ignored.

        Raises:
            TerminalGoneError: the terminal was closed, or Ctrl-D was pressed.
        """
        while True:
            keys = await self._read()
            key = keys.rstrip("\r\n") or "\n"
            if len(key) == 1:
                return key

    async def read_line(self) -> str:
        """Return a line, echoing what is typed; Backspace and Ctrl-U edit it.

        Raises:
            TerminalGoneError: the terminal was closed, or Ctrl-D was pressed.
        """
        line = ""
        while True:
            for char in await self._read():
                if char in "\r\n":
                    await self.write("\n")
                    return line
                if char in "\x7f\x08" and line:
                    line = line[:-1]
                    await self.write("\b \b")
                elif char == "\x15":
                    await self.write("\b \b" * len(line))
                    line = ""
                elif char.isprintable() and char.isascii():
                    line += char
                    await self.write(char)

    async def _read(self) -> str:
        while True:
            await trio.lowlevel.wait_readable(self._descriptor)
            try:
                keys = os.read(self._descriptor, _READ_BYTES).decode("utf-8", "replace")
            except BlockingIOError:  # another process took the keys
                continue
            except OSError as error:
                raise TerminalGoneError from error
            if not keys or _END_OF_INPUT in keys:
                raise TerminalGoneError
            return keys


@asynccontextmanager
async def open_terminal(path: str = "/dev/tty") -> AsyncGenerator[Terminal]:
    """Open the terminal at ``path`` for questions; its settings are restored however this is left.

    Raises:
        TerminalGoneError: the process has no terminal.
    """
    try:
        # Non-blocking belongs to this opening alone, stdin and stdout keep their ways.
        descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise TerminalGoneError from error
    try:
        saved = _take_over(descriptor)
        terminal = Terminal(descriptor)
        try:
            terminal.discard_input()
            yield terminal
        finally:
            terminal.discard_input()
            if terminal.mid_line:
                with suppress(OSError):
                    os.write(descriptor, b"\n")
            with suppress(termios.error):
                termios.tcsetattr(descriptor, termios.TCSANOW, saved)
    finally:
        os.close(descriptor)


def _take_over(descriptor: int) -> list[Any]:
    """Switch to single keys and return the settings before."""
    try:
        saved = termios.tcgetattr(descriptor)
        # Not after draining: a terminal stopped by Ctrl-S would stop the whole program.
        tty.setcbreak(descriptor, termios.TCSANOW)
    except termios.error as error:
        raise TerminalGoneError from error
    return saved
