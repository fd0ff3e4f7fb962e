"""One output stream of the process, written whole and at once."""

import errno
from typing import Final, TextIO

from odek.cli.layout import terminal_columns
from odek.cli.style import Style
from odek.errors import OdekError
from odek.storage.files import describe

__all__ = ["OutputClosedError", "OutputFailedError", "Screen"]

_GONE: Final = {errno.EPIPE, errno.EIO, errno.EBADF}  # the reader left; the terminal hung up


class OutputClosedError(BrokenPipeError):
    """Whoever read the output is gone, as with ``| head -1``; nothing is wrong, there is no use to go on."""


class OutputFailedError(OdekError):
    """The output could not be written, for instance because the disk is full."""


class Screen:
    """Writes text to ``file``. After a failed write it is silent, so that closing cannot fail again."""

    def __init__(self, file: TextIO, style: Style, *, name: str, required: bool) -> None:
        """Wrap ``file``, called ``name`` in messages; failures of a stream not ``required`` are ignored."""
        self.style = style
        self._file = file
        self._name = name
        self._required = required
        self._is_open = True

    @property
    def columns(self) -> int:
        """The width of the terminal now."""
        return terminal_columns(self._file)

    def write(self, text: str) -> None:
        """Write ``text`` now; characters beyond the stream's encoding are written as escapes.

        Raises:
            OutputClosedError: nobody reads any more.
            OutputFailedError: the text could not be written.
        """
        if not self._is_open or not text:
            return
        try:
            self._file.write(self._encodable(text))
            self._file.flush()
        except (OSError, ValueError) as error:  # ValueError: the file object is closed
            self._is_open = False
            if not self._required:
                return
            if isinstance(error, ValueError) or error.errno in _GONE:
                raise OutputClosedError(errno.EPIPE, f"{self._name} is closed") from None
            raise OutputFailedError(f"cannot write to {self._name}: {describe(error)}") from None

    def _encodable(self, text: str) -> str:
        encoding = self._file.encoding or "utf-8"
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            return text.encode(encoding, "backslashreplace").decode(encoding)
        return text
