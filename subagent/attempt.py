"""One child at its task, from its start to its outcome."""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, assert_never

import trio

from subagent.errors import (
    ChildError,
    ChildFailedError,
    ChildLimitError,
    ChildLostError,
    ChildTimeoutError,
    ProtocolError,
    describe_status,
)
from subagent.limits import Limits, TreeSample, excess
from subagent.process import ProcessTree
from subagent.reports import (
    ChildProgress,
    ChildReady,
    ChildSampled,
    ChildStarted,
    ChildTask,
    Outcome,
    SupervisorEvent,
    TaskFailed,
    TaskSucceeded,
    Usage,
)
from subagent.spawner import Spawner
from subagent.wire import ChildMessage, Failed, Finished, Progress, Ready, Task, child_messages, encode

__all__ = ["Attempt"]

EXIT_SECONDS = 1.0
"""For a child to end by itself after its result or its last output; no measurement behind this."""

DRAIN_SECONDS = 0.5
"""For reading on after a child's exit: what is in the pipe takes a moment; who else holds it may for ever."""

STDERR_TAIL_BYTES = 16 * 1024
"""Kept of standard error: a traceback and what led to it."""

CHUNK_BYTES = 65_536
"""What a pipe holds."""


class Attempt:
    """Runs one task in one child. It never raises for what the child does."""

    def __init__(self, task: ChildTask, limits: Limits, emit: Callable[[SupervisorEvent], None]) -> None:
        self._task = task
        self._limits = task.limits or limits
        self._emit = emit
        self._began = trio.current_time()
        self._tree: ProcessTree | None = None
        self._verdict: Finished | ChildError | None = None
        self._progress: Any = None
        self._ready = False
        self._returncode: int | None = None
        self._drained_at = math.inf  # when reading ends, whoever still holds the pipes
        self._stderr = bytearray()
        self._stderr_ended = trio.Event()
        self._reading = trio.CancelScope()  # ended some time after the child has
        self._ending = trio.CancelScope()  # cancelled when a limit is reached
        self._cpu_seconds = 0.0
        self._peak_memory_bytes = 0

    @property
    def guard_pid(self) -> int | None:
        """The root of the child's tree while it runs."""
        return None if self._tree is None else self._tree.guard_pid

    def observe(self, sample: TreeSample) -> None:
        """Take note of what the tree uses now; ends it when that is too much."""
        self._cpu_seconds = max(self._cpu_seconds, sample.cpu_seconds)
        self._peak_memory_bytes = max(self._peak_memory_bytes, sample.memory_bytes)
        self._emit(ChildSampled(self._task.id, sample))
        if (words := excess(self._limits, sample)) is not None:
            self._decide(ChildLimitError(f"it {words}"))
            self._ending.cancel(reason=words)

    async def run(self, spawner: Spawner) -> Outcome:
        """Return the outcome once nothing of the child is left."""
        try:
            async with self._task.around():
                await self._run_child(spawner)
        except ChildError as error:  # there is no place for it
            self._decide(error)
        return self._outcome()

    async def _run_child(self, spawner: Spawner) -> None:
        """Run the child within its limits and note what came of it."""
        with trio.move_on_after(self._limits.wall_seconds) as clock, self._ending:
            try:
                message = encode(Task(self._task.id, self._task.payload))
                async with spawner.open_child(self._task.launch) as tree:
                    self._tree = tree
                    self._emit(ChildStarted(self._task.id, tree.pid))
                    await self._converse(tree, message)
            except ChildError as error:  # it was not even started, or cannot be told its task
                self._decide(error)
        if clock.cancelled_caught:
            late = "did not finish" if self._ready else "was not ready"
            self._decide(ChildTimeoutError(f"it {late} within {self._limits.wall_seconds:g} s"))

    def _decide(self, verdict: Finished | ChildError) -> None:
        """Note what came of it; what was first counts."""
        if self._verdict is None:
            self._verdict = verdict

    async def _converse(self, tree: ProcessTree, task: bytes) -> None:
        stdin, stdout, stderr = tree.pipes()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_stderr, stderr)
            nursery.start_soon(_send, stdin, task)
            nursery.start_soon(self._watch_exit, tree)
            await self._read(stdout)
            if not isinstance(self._verdict, ProtocolError):  # who talks nonsense is not waited for
                await stdin.aclose()  # nothing more for it to do
                await self._wait_end(tree)
            nursery.cancel_scope.cancel()

    async def _wait_end(self, tree: ProcessTree) -> None:
        """Let the child end by itself, and have its last words if it has no result."""
        with trio.move_on_after(EXIT_SECONDS):
            with suppress(ChildLostError):
                self._returncode = await tree.wait_exited()
        if not isinstance(self._verdict, Finished):
            with trio.move_on_at(min(self._drained_at, trio.current_time() + DRAIN_SECONDS)):
                await self._stderr_ended.wait()

    async def _read(self, stdout: trio.abc.ReceiveStream) -> None:
        """Take in messages until the last one, the end of the stream, or one that is none."""
        decoder = child_messages(
            max_line_bytes=self._limits.line_bytes, max_stream_bytes=self._limits.output_bytes
        )
        try:
            with self._reading:
                while chunk := await stdout.receive_some(CHUNK_BYTES):
                    for message in decoder.feed(chunk):
                        self._take_in(message)
                        if self._verdict is not None:
                            return
            for message in decoder.finish():
                self._take_in(message)
        except ProtocolError as error:
            self._decide(error)

    def _take_in(self, message: ChildMessage) -> None:
        match message:
            case Ready():
                self._ready = True
                self._emit(ChildReady(self._task.id, trio.current_time() - self._began))
            case Progress(payload):
                self._progress = payload
                self._emit(ChildProgress(self._task.id, payload))
            case Finished():
                self._decide(message)
            case Failed(error):
                self._decide(ChildFailedError(" ".join(error.split()) or "it failed without saying why"))
            case _:
                assert_never(message)

    async def _watch_exit(self, tree: ProcessTree) -> None:
        """Stop reading some time after the child's exit, whoever holds the pipe."""
        with suppress(ChildLostError):
            self._returncode = await tree.wait_exited()
        self._drained_at = trio.current_time() + DRAIN_SECONDS
        await trio.sleep_until(self._drained_at)
        self._reading.cancel(reason="the child has exited")

    async def _keep_stderr(self, stderr: trio.abc.ReceiveStream) -> None:
        while chunk := await stderr.receive_some(CHUNK_BYTES):
            self._stderr += chunk
            del self._stderr[:-STDERR_TAIL_BYTES]
        self._stderr_ended.set()

    def _outcome(self) -> Outcome:
        used = None if self._tree is None else self._tree.usage
        usage = Usage(
            max(self._cpu_seconds, used.cpu_seconds if used else 0.0),
            max(self._peak_memory_bytes, used.peak_memory_bytes if used else 0),
            trio.current_time() - self._began,
        )
        if isinstance(self._verdict, Finished):
            return TaskSucceeded(self._task.id, self._verdict.payload, usage)
        stderr = self._stderr.decode("utf-8", "replace")
        error = self._verdict or ChildFailedError(self._how_it_ended())
        if isinstance(error, ChildFailedError):
            error = ChildFailedError(str(error), returncode=self._returncode)
        return TaskFailed(self._task.id, error, usage, self._progress, stderr)

    def _how_it_ended(self) -> str:
        if self._returncode is None:
            return "it closed its output without a result"
        return f"it {describe_status(self._returncode)} without a result"


async def _send(stdin: trio.abc.SendStream, message: bytes) -> None:
    try:
        await stdin.send_all(message)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return  # it has closed its input or ended; what it wrote tells the rest
