"""A real pseudo-terminal, without a program on it."""

import errno
import fcntl
import os
import pty
import struct
import termios
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

import trio

from tests.support.waiting import HANG_SECONDS

__all__ = ["Terminal", "open_terminal"]


class Terminal:
    """Both ends of a pseudo-terminal: ``file`` is what a program has, ``read`` what a person sees."""

    def __init__(self, master: int, file: TextIO) -> None:
        self._master = master
        self.file = file

    @property
    def path(self) -> str:
        """The device file."""
        return os.ttyname(self.file.fileno())

    def resize(self, columns: int, rows: int = 40) -> None:
        """Change the size of the window."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self) -> str:
        """Return what was written since the last call, line ends as written."""
        pieces: list[bytes] = []
        while True:
            try:
                pieces.append(os.read(self._master, 65536))
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EIO:  # EIO: nobody has the other end open
                    raise
                break
        return b"".join(pieces).decode().replace("\r\n", "\n")

    async def wait_for(self, *texts: str) -> str:
        """Wait until ``texts`` have been written, one after the other; return all since the last call."""
        seen, at = "", 0
        for text in texts:
            with trio.move_on_after(HANG_SECONDS):
                while text not in seen[at:]:
                    await trio.lowlevel.wait_readable(self._master)
                    seen += self.read()
            assert text in seen[at:], f"{text!r} was not written, but {seen!r}"
            at = seen.index(text, at) + len(text)
        return seen

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def hang_up(self) -> None:
        """Close the window."""
        os.close(self._master)
        self._master = -1

    def close(self) -> None:
        """Close both ends."""
        self.file.close()
        if self._master >= 0:
            os.close(self._master)


@contextmanager
def open_terminal(columns: int = 80) -> Generator[Terminal]:
    """Open a terminal of ``columns`` columns; nothing may write more than a few kilobytes unread."""
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    terminal = Terminal(master, os.fdopen(slave, "w", encoding="utf-8"))
    terminal.resize(columns)
    try:
        yield terminal
    finally:
        terminal.close()
