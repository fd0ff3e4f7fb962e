"""Server-sent events: bytes in, events out, in whatever pieces the network gives.

Follows the WHATWG algorithm: CR, LF and CRLF end a line, a colon starts a comment,
several ``data`` lines join with newlines, a blank line ends an event, a byte order
mark at the start is skipped. One liberty: an event that the end of the stream left
without its blank line is given as well, since some servers end that way.
"""

import msgspec

__all__ = ["EVENT_LIMIT_BYTES", "EventTooLongError", "ServerSentEvent", "SseDecoder"]

EVENT_LIMIT_BYTES = 16 * 1024 * 1024
"""Longest line and longest event. A delta is some hundred bytes; a whole answer in one event
stays far below. No measurement behind this figure."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLongError(ValueError):
    """A line or an event went beyond the limit; the stream cannot be read on."""


class ServerSentEvent(msgspec.Struct, frozen=True):
    """One event; ``event`` is its type, "" when none was named."""

    data: str
    event: str = ""


class SseDecoder:
    """Sans-IO decoder: feed it bytes, take events. Invalid UTF-8 becomes U+FFFD."""

    def __init__(self, limit_bytes: int = EVENT_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._tail = bytearray()  # the line that has not ended yet
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._event = b""
        self._skip_newline = False  # the last piece ended in CR: a leading LF belongs to it
        self._at_start = True

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """Take the next bytes and return the events that they complete.

        Raises:
            EventTooLongError: a line or an event is beyond the limit.
        """
        if self._skip_newline and piece:
            piece = piece.removeprefix(b"\n")
            self._skip_newline = False
        lines = piece.splitlines(keepends=True)  # bytes split at CR, LF and CRLF, and at nothing else
        events = []
        for line in lines:
            content = line.rstrip(b"\r\n")
            if len(self._tail) + len(content) > self._limit_bytes:
                raise EventTooLongError(f"a line of more than {self._limit_bytes:,} bytes")
            if len(content) == len(line):
                self._tail += line
                break  # only the last can be without its end
            if self._tail:
                content = bytes(self._tail) + content
                self._tail.clear()
            if (event := self._take_line(content)) is not None:
                events.append(event)
        self._skip_newline = piece.endswith(b"\r") or (self._skip_newline and not piece)
        return events

    def close(self) -> list[ServerSentEvent]:
        """Return the event that the end of the stream completes, if any."""
        last, self._tail = bytes(self._tail), bytearray()
        if last:
            self._take_line(last)
        event = self._take_line(b"")
        return [] if event is None else [event]

    def _take_line(self, line: bytes) -> ServerSentEvent | None:
        if self._at_start:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        if not line:
            return self._end_event()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._data_bytes += len(value) + 1
            if self._data_bytes > self._limit_bytes:
                raise EventTooLongError(f"an event of more than {self._limit_bytes:,} bytes")
        elif name == b"event":
            self._event = value
        return None  # a comment, id, retry, or a field that nobody knows

    def _end_event(self) -> ServerSentEvent | None:
        data, event = self._data, self._event
        self._data, self._data_bytes, self._event = [], 0, b""
        if not data:
            return None
        return ServerSentEvent(
            data=b"\n".join(data).decode("utf-8", "replace"), event=event.decode("utf-8", "replace")
        )
