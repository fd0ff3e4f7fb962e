"""The output of a command as text: cleaned, bounded, with its newest line at hand."""

import codecs
import re

__all__ = ["CommandOutput"]

LINE_LIMIT_CHARS = 65_536
"""A line that is longer is cleaned in pieces of this size, so that memory stays bounded."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_ESCAPE = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]?"  # CSI: colour, cursor
    r"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC: title, link, clipboard
    r"|[ -/]*[0-~]?"  # character sets and the like
    r")"
)


class CommandOutput:
    """Takes a command's output in chunks and keeps what is worth reading.

    Escape sequences and control characters go, invalid UTF-8 is replaced, and of a line
    that carriage returns wrote again and again the last state stays. Of the result the
    first and the last half of ``limit_bytes`` are kept, whatever the whole amounts to.
    How the output is cut into chunks makes no difference, unless a line is longer than
    ``LINE_LIMIT_CHARS``.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.received_bytes = 0
        self._head_bytes = limit_bytes // 2
        self._tail_bytes = limit_bytes - self._head_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head = bytearray()
        self._tail = bytearray()
        self._cleaned_bytes = 0
        self._unfinished = ""
        self._last_line = ""

    def feed(self, chunk: bytes | bytearray) -> None:
        """Take the next bytes as they came."""
        self.received_bytes += len(chunk)
        text = self._unfinished + self._decoder.decode(chunk)
        end = text.rfind("\n") + 1
        self._keep(text[:end])
        self._unfinished = text[end:]
        if len(self._unfinished) > LINE_LIMIT_CHARS:
            self._shorten_unfinished()

    def newest_line(self) -> str:
        """Return the newest line that says something, or ""; a progress bar counts as it stands."""
        if "\r" in self._unfinished:
            for state in reversed(self._unfinished.split("\r")):
                if line := _clean(state).strip():
                    return line
        return self._last_line

    def finish(self) -> str:
        """Return the text, without the white space at its end; nothing may be fed after that."""
        self._keep(self._unfinished + self._decoder.decode(b"", final=True))
        self._unfinished = ""
        tail = self._tail[-self._tail_bytes :]
        left_out = self._cleaned_bytes - len(self._head) - len(tail)
        if not left_out:
            return (self._head + tail).decode().rstrip()
        head_text = self._head.decode("utf-8", "ignore")
        tail_text = tail.decode("utf-8", "ignore").rstrip()
        return f"{head_text}\n[… {left_out:,} bytes left out …]\n{tail_text}"

    def _shorten_unfinished(self) -> None:
        """Bound a line that does not end: drop what was overwritten, keep the rest in pieces."""
        returned = "\r" if self._unfinished.endswith("\r") else ""
        self._unfinished = _last_state(self._unfinished) + returned
        while len(self._unfinished) > LINE_LIMIT_CHARS:
            self._keep(self._unfinished[:LINE_LIMIT_CHARS])
            self._unfinished = self._unfinished[LINE_LIMIT_CHARS:]

    def _keep(self, text: str) -> None:
        cleaned = _clean(text)
        said = cleaned.rstrip()
        if said:
            self._last_line = said[said.rfind("\n") + 1 :].strip()
        encoded = cleaned.encode()
        self._cleaned_bytes += len(encoded)
        room = self._head_bytes - len(self._head)
        self._head += encoded[:room]
        self._tail += encoded[room:]
        if len(self._tail) > 2 * self._tail_bytes:  # not each time: that would copy it for each chunk
            del self._tail[: -self._tail_bytes]


def _clean(text: str) -> str:
    """Return ``text`` as a terminal would leave it, as far as plain text can say it."""
    if not _CONTROL.search(text):
        return text
    text = _ESCAPE.sub("", text)
    if "\r" in text:
        text = "\n".join(map(_last_state, text.split("\n")))
    return _CONTROL.sub("", text)


def _last_state(line: str) -> str:
    """Return what carriage returns leave of a line; those at its very end overwrite nothing."""
    body = line.rstrip("\r")
    return body[body.rfind("\r") + 1 :]
