"""What parent and child say to each other: tagged JSON objects, one a line.

The parent sends one ``Task``. The child answers ``Ready`` once it runs, any number of
``Progress``, and last of all ``Finished`` or ``Failed``. Payloads are any JSON; what
they mean is between the two programs, and names of files arrive in them whatever their
bytes. The decoder knows neither files nor time.
"""

from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar

import msgspec

from subagent.errors import ProtocolError
from subagent.name_json import dump, load

__all__ = [
    "MAX_LINE_BYTES",
    "MAX_STREAM_BYTES",
    "ChildMessage",
    "Failed",
    "Finished",
    "LineDecoder",
    "Message",
    "Progress",
    "Ready",
    "Task",
    "child_messages",
    "encode",
    "parent_messages",
]

MAX_LINE_BYTES = 10 * 1024 * 1024
"""Of one message. Results are cut far below that; beyond it something is wrong."""

MAX_STREAM_BYTES = 100 * 1024 * 1024
"""Of all messages of one child, so that a loop of progress ends too."""

SHOWN_CHARS = 80
"""Of a line that is no message: enough to recognise what printed it."""


class Task(msgspec.Struct, frozen=True, tag="task"):
    """What the child is to do."""

    id: str
    payload: Any = None


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The child runs and has its task."""

    pid: int


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """Something to show while it works."""

    payload: Any = None


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """The task is done; nothing follows."""

    payload: Any = None


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The task cannot be done; nothing follows. ``error`` is one line for a person."""

    error: str


ChildMessage = Ready | Progress | Finished | Failed
Message = Task | ChildMessage

MessageT = TypeVar("MessageT")
_CHILD_DECODER: Final = msgspec.json.Decoder(ChildMessage)
_PARENT_DECODER: Final = msgspec.json.Decoder(Task)


def encode(message: Message, *, max_line_bytes: int = MAX_LINE_BYTES) -> bytes:
    """Return one line, its newline included.

    Raises:
        ProtocolError: the payload is no JSON, or the line is longer than the peer accepts.
    """
    try:
        line = dump(message)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise ProtocolError(f"the payload cannot be sent as JSON: {error}") from error
    if len(line) > max_line_bytes:
        raise ProtocolError(f"a message of {len(line)} bytes is longer than the {max_line_bytes} allowed")
    return line.replace(b"\n", b" ") + b"\n"  # only a raw payload can have one, and only between tokens


class LineDecoder(Generic[MessageT]):
    """Bytes in, messages out, within bounds.

    Once it has raised it is of no further use.
    """

    def __init__(
        self,
        decoder: "msgspec.json.Decoder[MessageT]",
        *,
        max_line_bytes: int = MAX_LINE_BYTES,
        max_stream_bytes: int = MAX_STREAM_BYTES,
    ) -> None:
        self._decoder = decoder
        self._max_line_bytes = max_line_bytes
        self._max_stream_bytes = max_stream_bytes
        self._buffer = bytearray()
        self.received_bytes = 0

    def feed(self, chunk: bytes | bytearray) -> Iterator[MessageT]:
        """Yield the messages that ``chunk`` completes; iterate to the end before the next call.

        Raises:
            ProtocolError: after the messages before it, at what is no message or too long.
        """
        self.received_bytes += len(chunk)
        searched = len(self._buffer)
        self._buffer += chunk
        start = 0
        while (end := self._buffer.find(b"\n", max(start, searched))) >= 0:
            line = bytes(self._buffer[start:end])
            start = end + 1
            yield from self._decode(line)
        del self._buffer[:start]
        self._check_length(len(self._buffer))
        if self.received_bytes > self._max_stream_bytes:
            raise ProtocolError(f"it wrote more than {self._max_stream_bytes} bytes in all")

    def finish(self) -> Iterator[MessageT]:
        """Yield the last message if only its newline is missing.

        Raises:
            ProtocolError: the stream ended within a message.
        """
        line, self._buffer = bytes(self._buffer), bytearray()
        yield from self._decode(line)

    def _decode(self, line: bytes) -> Iterator[MessageT]:
        self._check_length(len(line))
        if not line.strip():
            return
        try:
            yield load(line, self._decoder)
        except (ValueError, RecursionError) as error:
            shown = line[: 4 * SHOWN_CHARS].decode("utf-8", "replace")[:SHOWN_CHARS]
            raise ProtocolError(f"it wrote what is no message: {shown!r} ({error})") from None

    def _check_length(self, length: int) -> None:
        if length > self._max_line_bytes:
            raise ProtocolError(f"it wrote a line longer than {self._max_line_bytes} bytes")


def child_messages(
    *, max_line_bytes: int = MAX_LINE_BYTES, max_stream_bytes: int = MAX_STREAM_BYTES
) -> LineDecoder[ChildMessage]:
    """Return a decoder of what a child writes."""
    return LineDecoder(_CHILD_DECODER, max_line_bytes=max_line_bytes, max_stream_bytes=max_stream_bytes)


def parent_messages() -> LineDecoder[Task]:
    """Return a decoder of what a parent writes."""
    return LineDecoder(_PARENT_DECODER)
