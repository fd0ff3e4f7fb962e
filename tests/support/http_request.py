"""Reading HTTP requests, for loopback servers of the tests."""

from typing import Any

import msgspec
import trio

__all__ = ["RecordedRequest", "Stream", "read_request"]

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]

_HEAD_LIMIT_BYTES = 64 * 1024  # no client of ours sends more head than a few hundred bytes


class RecordedRequest(msgspec.Struct, frozen=True):
    """A request as it arrived; header names are lower-case, ``json`` is None for an empty body."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.body) if self.body else None


async def read_request(stream: Stream, pending: bytearray) -> RecordedRequest | None:
    """Return the next request of a connection, or None at its end."""
    while (end := pending.find(b"\r\n\r\n")) < 0:
        if len(pending) > _HEAD_LIMIT_BYTES or not (data := await stream.receive_some()):
            return None
        pending += data
    first, *lines = pending[:end].decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    size = int(headers.get("content-length", "0"))
    del pending[: end + 4]
    while len(pending) < size:
        if not (data := await stream.receive_some()):
            return None
        pending += data
    body = bytes(pending[:size])
    del pending[:size]
    return RecordedRequest(method, path, headers, body)
