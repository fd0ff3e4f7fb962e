"""A real loopback HTTP server that plays a chat-completions endpoint by a script.

    script = [tool_call_answer([("shell", {"command": "ls"})]), text_answer("Done.")]
    async with open_model_server(script) as server:
        …point the client, or a child process, at server.base_url…
    assert server.requests[0].json["messages"][-1]["content"] == "list the files"

Each request takes the next answer of the script, in order of arrival, and is recorded.
A request beyond the script is answered 400, which no client tries again, unless a
``default`` answer was given. An answer is an async callable that is handed the
`Exchange`; the constructors below make the usual ones.
"""

import itertools
import socket
import ssl
import struct
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio

from tests.support.http_request import RecordedRequest, Stream, read_request

__all__ = [
    "DONE",
    "Answer",
    "Exchange",
    "ModelServer",
    "RecordedRequest",
    "by_request",
    "call_delta",
    "chunk",
    "cut",
    "drip",
    "error_answer",
    "event",
    "event_stream",
    "gated",
    "json_answer",
    "open_model_server",
    "raw_bytes",
    "stall",
    "status",
    "text_answer",
    "tool_call_answer",
    "usage_chunk",
]


DONE = b"data: [DONE]\n\n"
_STREAM_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}


class Exchange:
    """One request and the means to answer it, down to single bytes."""

    def __init__(self, stream: Stream, request: RecordedRequest) -> None:
        self.stream = stream
        self.request = request
        self.keep_alive = True

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        await self.stream.send_all(data)

    async def send_head(self, code: int, headers: Mapping[str, str]) -> None:
        """Send a status line and headers."""
        lines = [f"HTTP/1.1 {code} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
        await self.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def start_stream(self) -> None:
        """Send the head of a chunked event stream."""
        await self.send_head(200, {**_STREAM_HEADERS, "Transfer-Encoding": "chunked"})

    async def send_part(self, data: bytes) -> None:
        """Send one chunk of a chunked body; b"" ends it."""
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def reset(self) -> None:
        """Cut the connection hard: the peer sees a reset, not an end."""
        plain = self.stream.transport_stream if isinstance(self.stream, trio.SSLStream) else self.stream
        plain.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await plain.aclose()

    async def wait_disconnect(self) -> None:
        """Return when the client has gone."""
        self.keep_alive = False
        try:
            while await self.stream.receive_some(4096):
                pass
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass


Answer = Callable[[Exchange], Awaitable[None]]


class ModelServer:
    """The running server: where it is, what it was asked, who is connected."""

    def __init__(self, port: int, script: Iterable[Answer], default: Answer | None, scheme: str) -> None:
        self.port = port
        self.scheme = scheme
        self.requests: list[RecordedRequest] = []
        self.open_connections = 0
        self.connections = 0
        self._script = deque(script)
        self._default = default
        self._changed = trio.Event()

    @property
    def origin(self) -> str:
        """``http://127.0.0.1:PORT``, or https."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """What ``--base-url`` wants."""
        return f"{self.origin}/v1"

    @property
    def answers_left(self) -> int:
        """Answers of the script that nobody has asked for yet."""
        return len(self._script)

    def extend(self, answers: Iterable[Answer]) -> None:
        """Add answers to the script."""
        self._script.extend(answers)

    def replace(self, answers: Iterable[Answer]) -> None:
        """Put answers in the place of what is left of the script."""
        self._script = deque(answers)

    def answer_with(self, default: Answer) -> None:
        """Answer what is beyond the script with ``default`` from here on."""
        self._default = default

    async def wait_requests(self, count: int) -> None:
        """Return when ``count`` requests have arrived in all."""
        await self._wait(lambda: len(self.requests) >= count)

    async def wait_open_connections(self, count: int) -> None:
        """Return when at most ``count`` connections are open."""
        await self._wait(lambda: self.open_connections <= count)

    async def _wait(self, reached: Callable[[], bool]) -> None:
        while not reached():
            await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    def _next_answer(self) -> Answer:
        if self._script:
            return self._script.popleft()
        return self._default or error_answer(400, "the test's script holds no further answer")

    async def serve(self, stream: Stream) -> None:
        """Answer the requests of one connection until either side ends it."""
        self.open_connections += 1
        self.connections += 1
        try:
            async with stream:
                pending = bytearray()
                while (request := await read_request(stream, pending)) is not None:
                    self.requests.append(request)
                    self._notify()
                    exchange = Exchange(stream, request)
                    await self._next_answer()(exchange)
                    if not exchange.keep_alive:
                        break
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client went away in the middle, which is what many tests want
        finally:
            self.open_connections -= 1
            self._notify()


@asynccontextmanager
async def open_model_server(
    script: Iterable[Answer] = (),
    *,
    default: Answer | None = None,
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> AsyncGenerator[ModelServer]:
    """Serve ``script`` on a loopback port until the block is left; with ``tls`` by https."""
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(port, host="127.0.0.1")
        found = listener.socket.getsockname()[1]
        server = ModelServer(found, script, default, "http" if tls is None else "https")
        listeners = [listener if tls is None else trio.SSLListener(listener, tls)]
        await nursery.start(trio.serve_listeners, server.serve, listeners)
        try:
            yield server
        finally:
            nursery.cancel_scope.cancel()


# Pieces of an event stream.


def event(payload: Any) -> bytes:
    """Return one server-sent event that carries ``payload`` as JSON."""
    return b"data: " + msgspec.json.encode(payload) + b"\n\n"


def chunk(delta: Mapping[str, Any] | None = None, *, finish_reason: str | None = None, **extra: Any) -> bytes:
    """Return one chat-completion chunk with ``delta`` in its only choice."""
    choice = {"index": 0, "delta": dict(delta or {}), "finish_reason": finish_reason}
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], **extra})


def usage_chunk(prompt_tokens: int = 7, completion_tokens: int = 3, **more: Any) -> bytes:
    """Return the closing chunk that carries usage and no choice."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens, **more}
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage})


def call_delta(
    index: int, name: str | None = None, arguments: str | None = None, call_id: str | None = None
) -> dict[str, Any]:
    """Return one well-formed tool-call delta; what is None is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    call: dict[str, Any] = {"index": index, "function": function}
    if call_id is not None:
        call |= {"id": call_id, "type": "function"}
    return call


# Answers.


def event_stream(*parts: bytes, done: bool = True) -> Answer:
    """Answer with an event stream; each part is one chunk of the HTTP body."""

    async def answer(exchange: Exchange) -> None:
        await exchange.start_stream()
        for part in (*parts, DONE) if done else parts:
            await exchange.send_part(part)
        await exchange.send_part(b"")

    return answer


def text_answer(
    text: str, *, reasoning: str = "", finish_reason: str = "stop", usage: tuple[int, int] | None = (7, 3)
) -> Answer:
    """Answer with streamed text, one word a chunk."""
    parts = [chunk({"role": "assistant", "content": ""})]
    parts += [chunk({"reasoning_content": piece}) for piece in _words(reasoning)]
    parts += [chunk({"content": piece}) for piece in _words(text)]
    parts.append(chunk(finish_reason=finish_reason))
    return event_stream(*parts, *([usage_chunk(*usage)] if usage else ()))


def tool_call_answer(
    calls: Sequence[tuple[str, Mapping[str, Any] | str]],
    *,
    text: str = "",
    usage: tuple[int, int] | None = (7, 3),
) -> Answer:
    """Answer with streamed tool calls: (name, arguments), arguments as a mapping or as raw text.

    The ids are ``call_1_N``, ``call_2_N``, …; N differs between answers, so that a whole
    session has no id twice.
    """
    serial = next(_serials)
    parts = [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": piece}) for piece in _words(text)),
    ]
    for index, (name, arguments) in enumerate(calls):
        raw = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        half = len(raw) // 2
        call_id = f"call_{index + 1}_{serial}"
        parts.append(chunk({"tool_calls": [call_delta(index, name, "", call_id)]}))
        parts += [
            chunk({"tool_calls": [call_delta(index, None, piece)]}) for piece in (raw[:half], raw[half:])
        ]
    parts.append(chunk(finish_reason="tool_calls"))
    return event_stream(*parts, *([usage_chunk(*usage)] if usage else ()))


def raw_bytes(data: bytes) -> Answer:
    """Answer with these bytes, head included, and close the connection."""

    async def answer(exchange: Exchange) -> None:
        exchange.keep_alive = False
        await exchange.send(data)

    return answer


def status(code: int, headers: Mapping[str, str] | None = None, body: bytes | str = b"") -> Answer:
    """Answer with a plain response of known length."""
    data = body.encode() if isinstance(body, str) else body

    async def answer(exchange: Exchange) -> None:
        await exchange.send_head(code, {"Content-Length": str(len(data)), **(headers or {})})
        await exchange.send(data)

    return answer


def json_answer(payload: Any, code: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Answer with one JSON body."""
    return status(code, {"Content-Type": "application/json", **(headers or {})}, msgspec.json.encode(payload))


def error_answer(
    code: int, message: str, *, error_code: str | None = None, headers: Mapping[str, str] | None = None
) -> Answer:
    """Answer with an error in the usual shape."""
    payload = {"error": {"message": message, "type": "scripted_error", "code": error_code}}
    return json_answer(payload, code, headers)


def stall(*parts: bytes, head: bool = True) -> Answer:
    """Send the parts, then nothing more until the client goes; without ``head`` not even a status line."""

    async def answer(exchange: Exchange) -> None:
        if head:
            await exchange.start_stream()
        for part in parts:
            await exchange.send_part(part)
        await exchange.wait_disconnect()

    return answer


def drip(data: bytes, interval_seconds: float) -> Answer:
    """Send an event stream one byte at a time, ``interval_seconds`` apart."""

    async def answer(exchange: Exchange) -> None:
        await exchange.start_stream()
        for byte in data:
            await exchange.send_part(bytes([byte]))
            await trio.sleep(interval_seconds)
        await exchange.send_part(b"")

    return answer


def cut(*parts: bytes) -> Answer:
    """Start an event stream, send the parts, and reset the connection."""

    async def answer(exchange: Exchange) -> None:
        exchange.keep_alive = False
        await exchange.start_stream()
        for part in parts:
            await exchange.send_part(part)
        await exchange.reset()

    return answer


def gated(gate: trio.Event, answer: Answer) -> Answer:
    """Hold ``answer`` back until ``gate`` is set."""

    async def wait_and_answer(exchange: Exchange) -> None:
        await gate.wait()
        await answer(exchange)

    return wait_and_answer


def by_request(choose: Callable[[RecordedRequest], Answer]) -> Answer:
    """Answer with what ``choose`` returns for the request."""

    async def answer(exchange: Exchange) -> None:
        await choose(exchange.request)(exchange)

    return answer


def _words(text: str) -> list[str]:
    """Split after each space, so that joining gives the text back."""
    pieces = text.split(" ")
    return [piece + " " for piece in pieces[:-1]] + [pieces[-1]] if text else []


_serials = itertools.count(1)
