"""Finds model servers on this machine, to name them to a person who has set nothing up.

A raw request over TCP: the HTTP library would take longer to import than the whole
search may take. Nothing found is ever used without being asked.
"""

import msgspec
import trio

from odek.text import clip_line, visible

__all__ = ["WELL_KNOWN_PORTS", "LocalServer", "find_local_servers"]

WELL_KNOWN_PORTS = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp"}

SEARCH_SECONDS = 0.25
"""A refused connection on this machine takes far less than a millisecond, and a person waits for this."""

_RESPONSE_LIMIT_BYTES = 256 * 1024
_MODELS_SHOWN = 50


class LocalServer(msgspec.Struct, frozen=True):
    """A server that answered; ``models`` are the names that it lists, for a terminal."""

    name: str
    base_url: str
    models: tuple[str, ...]


class _Model(msgspec.Struct):
    id: str


class _ModelList(msgspec.Struct):
    data: list[_Model]


async def find_local_servers(
    ports: dict[int, str] = WELL_KNOWN_PORTS, *, timeout_seconds: float = SEARCH_SECONDS
) -> list[LocalServer]:
    """Return the servers on ``ports`` (port → name) that list their models in time, in that order.

    Quiet about every fault: what does not answer like a model server is left out.
    """
    found: dict[int, LocalServer] = {}

    async def probe(port: int, name: str) -> None:
        try:
            body = await _get_models(port)
            models = tuple(model.id for model in msgspec.json.decode(body, type=_ModelList).data)
        except (OSError, trio.BrokenResourceError, ValueError, RecursionError):
            return
        shown = tuple(clip_line(visible(model), 100) for model in models[:_MODELS_SHOWN])
        found[port] = LocalServer(name, f"http://127.0.0.1:{port}/v1", shown)

    with trio.move_on_after(timeout_seconds):
        async with trio.open_nursery() as nursery:
            for port, name in ports.items():
                nursery.start_soon(probe, port, name)
    return [found[port] for port in ports if port in found]


async def _get_models(port: int) -> bytes:
    """Return the body of ``GET /v1/models``.

    Raises:
        OSError, trio.BrokenResourceError: no connection.
        ValueError: not a whole HTTP response of status 200.
    """
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        # HTTP/1.0: the server neither splits the body in chunks nor keeps the connection.
        await stream.send_all(f"GET /v1/models HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        response = bytearray()
        async for piece in stream:
            response += piece
            if len(response) > _RESPONSE_LIMIT_BYTES or _is_whole(response):
                break
    head, separator, body = bytes(response).partition(b"\r\n\r\n")
    if not separator or head.split(b" ", 2)[1:2] != [b"200"]:
        raise ValueError("no response of status 200")
    return body


def _is_whole(response: bytearray) -> bool:
    """Whether the body is as long as the head announces; servers may keep the connection all the same."""
    head, separator, body = response.partition(b"\r\n\r\n")
    if not separator:
        return False
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length" and value.strip().isdigit():
            return len(body) >= int(value)
    return False
