"""The child's side: takes its task from its parent, answers, and ends when its parent does.

It makes no difference to it whether it is a fresh program or a fork.
"""

import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from subagent.errors import ProtocolError
from subagent.wire import Failed, Finished, Progress, Ready, Task, encode, parent_messages

__all__ = ["Report", "serve"]

EXIT_SECONDS = 2.0
"""From the end of the parent, or SIGTERM, to ours. The warden is faster; this is for when it is not there."""

OUTBOX_MESSAGES = 256
"""Progress that waits for a slow parent; what is beyond is dropped. No measurement behind this."""

FINISHED, FAILED, ORPHANED = 0, 1, 3
"""Exit statuses: a result was sent; an error was sent; there is no task, or no parent any more."""

Report = Callable[[Any], None]
"""Reports progress, any JSON, without waiting. What a slow parent cannot take is dropped."""


async def serve(run: Callable[[Task, Report], Awaitable[Any]]) -> int:
    """Run the one task of this process and answer; returns the exit status to end with.

    Standard input and output are the wire from the first moment: they are taken away,
    and what the task or its tools print goes to standard error. When the parent is gone,
    or sends SIGTERM, the task is cancelled; a process that still lives
    ``EXIT_SECONDS`` later is ended by SIGALRM.

    Args:
        run: Does the task and returns its result, any JSON. An exception is its failure.
    """
    receive, send = _take_wire()
    status = ORPHANED
    async with receive, send, trio.open_nursery() as nursery:
        # What can be done without a task is done now: it may still be waited for.
        nursery.start_soon(trio.to_thread.run_sync, _begin_first_thread)
        outbox, lines = trio.open_memory_channel[bytes](OUTBOX_MESSAGES)
        written = trio.Event()
        nursery.start_soon(_write, lines, send, written)

        def report(payload: Any) -> None:
            line = encode(Progress(payload))
            try:
                outbox.send_nowait(line)
            except trio.WouldBlock:
                return

        task = await _receive_task(receive)
        if task is not None:
            nursery.start_soon(_end_with_parent, receive, nursery.cancel_scope)
            nursery.start_soon(_end_on_sigterm, nursery.cancel_scope)
            outbox.send_nowait(encode(Ready(os.getpid())))
            line, status_then = await _attempt(run, task, report)
            await outbox.send(line)
            outbox.close()
            await written.wait()
            status = status_then
        nursery.cancel_scope.cancel()
    signal.setitimer(signal.ITIMER_REAL, 0)
    return status


def _begin_first_thread() -> None:
    """Do nothing; whoever next has something to do in a thread finds one."""


def _take_wire() -> tuple[trio.lowlevel.FdStream, trio.lowlevel.FdStream]:
    """Return the two directions of the wire, which nothing that we start can reach."""
    sys.stdout.flush()
    receive, send = os.dup(0), os.dup(1)  # closed by exec, unlike 0 and 1
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return trio.lowlevel.FdStream(receive), trio.lowlevel.FdStream(send)


async def _receive_task(receive: trio.abc.ReceiveStream) -> Task | None:
    """Return the task, or None when the parent went away before it had sent one."""
    decoder = parent_messages()
    async for chunk in receive:
        for task in decoder.feed(chunk):
            return task
    return None


async def _attempt(
    run: Callable[[Task, Report], Awaitable[Any]], task: Task, report: Report
) -> tuple[bytes, int]:
    """Return the last line to send, and the exit status."""
    try:
        return encode(Finished(await run(task, report))), FINISHED
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the task's failure and the parent's to know
        if not isinstance(error, ProtocolError):
            traceback.print_exc()
        return encode(Failed(_words(error))), FAILED


def _words(error: BaseException) -> str:
    """Return an error as one line; of a group, its first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(str(error).split()) or type(error).__name__


async def _write(
    lines: "trio.MemoryReceiveChannel[bytes]", send: trio.abc.SendStream, written: trio.Event
) -> None:
    try:
        async for line in lines:
            await send.send_all(line)
    except trio.BrokenResourceError:
        lines.close()  # nobody listens; that the parent is gone is seen elsewhere
    written.set()


async def _end_with_parent(receive: trio.abc.ReceiveStream, scope: trio.CancelScope) -> None:
    async for _ in receive:
        pass
    _end(scope, "the parent has closed our input")


async def _end_on_sigterm(scope: trio.CancelScope) -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as received:
        async for _ in received:
            _end(scope, "SIGTERM")


def _end(scope: trio.CancelScope, reason: str) -> None:
    scope.cancel(reason=reason)
    # Its default action needs neither the event loop nor the interpreter.
    signal.setitimer(signal.ITIMER_REAL, EXIT_SECONDS)
