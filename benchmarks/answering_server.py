"""A chat-completions endpoint for benchmarks: a process that answers at once and says when it was asked.

An agent that offers ``delegate_tasks`` is told to delegate as many tasks as its question
names, and then gets a last answer; a subagent gets its answer, or waits for it if its
task says "hold". The address is printed first; then, for each request, a JSON object a
line: ``at``, seconds of the monotonic clock at its first byte, and ``who`` asked.
A line on standard input lets go of those that wait.
"""

import json
import re
import sys
import time
from functools import partial
from typing import Any

import trio

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
RECEIVE_BYTES = 65_536


async def main() -> None:
    """Serve until standard input ends."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    released = Gate()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, partial(serve, released), [listener])
        print(f"http://127.0.0.1:{listener.socket.getsockname()[1]}/v1", flush=True)
        async for _ in trio.lowlevel.FdStream(sys.stdin.fileno()):
            released.open()
        nursery.cancel_scope.cancel()


class Gate:
    """Where subagents wait for their answers."""

    def __init__(self) -> None:
        self._opened = trio.Event()

    def open(self) -> None:
        """Let go of all that wait; who comes later waits again."""
        self._opened.set()
        self._opened = trio.Event()

    async def wait(self) -> None:
        """Wait for the next opening."""
        await self._opened.wait()


async def serve(gate: Gate, stream: trio.SocketStream) -> None:
    """Answer the requests of one connection."""
    received = bytearray()
    while True:
        at = 0.0
        while (length := whole_length(received)) is None:
            try:
                chunk = await stream.receive_some(RECEIVE_BYTES)
            except trio.BrokenResourceError:
                return
            if not chunk:
                return
            at = at or time.monotonic()
            received += chunk
        request = json.loads(received[received.index(b"\r\n\r\n") : length])
        del received[:length]
        await answer(gate, stream, request, at)


def whole_length(received: bytearray) -> int | None:
    """Return the length of the first request, or None while it is incomplete."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    found = re.search(rb"content-length: *(\d+)", received[:end], re.IGNORECASE)
    length = end + 4 + (int(found[1]) if found else 0)
    return length if len(received) >= length else None


async def answer(gate: Gate, stream: trio.SocketStream, request: dict[str, Any], at: float) -> None:
    """Report the request and answer it."""
    last = request["messages"][-1]
    delegates = any(tool["function"]["name"] == "delegate_tasks" for tool in request.get("tools", ()))
    print(json.dumps({"at": at, "who": "parent" if delegates else "child"}), flush=True)
    if not delegates and "hold" in last["content"]:
        await gate.wait()
    delta: dict[str, Any] = {"content": "done"}
    if delegates and last["role"] == "user":
        count, hold = int(re.findall(r"\d+", last["content"])[-1]), "hold" in last["content"]
        tasks = [{"goal": f"{'hold' if hold else 'answer'}: task {n}"} for n in range(1, count + 1)]
        function = {"name": "delegate_tasks", "arguments": json.dumps({"tasks": tasks})}
        delta = {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}
    choice = {"index": 0, "delta": delta, "finish_reason": "tool_calls" if "tool_calls" in delta else "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    body = b"data: %s\n\ndata: [DONE]\n\n" % json.dumps({"choices": [choice], "usage": usage}).encode()
    await stream.send_all(HEAD % len(body) + body)


if __name__ == "__main__":
    trio.run(main)
