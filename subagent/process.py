"""A child process that is ended with everything that it started.

Each command runs under a warden of its own (``subagent.warden``). It ends the tree when
the block is left, in whatever way, and also when this process is killed.
"""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import msgspec
import trio

from subagent import warden
from subagent.errors import ChildLostError, ChildStartError

__all__ = [
    "GRACE_SECONDS",
    "Descendant",
    "ProcessTree",
    "TreeGuard",
    "TreeUsage",
    "open_process_tree",
    "open_warden_pipes",
    "warden_request",
]

GRACE_SECONDS = 0.5
"""Between SIGTERM and SIGKILL: enough to remove temporary files, short enough to wait for."""

KILL_SECONDS = 1.0
"""After the grace, for the warden to end the tree. Beyond it, the warden itself is in trouble."""

START_SECONDS = 10.0
"""For the warden to start the command. It takes 20 ms; no measurement behind the rest."""

SETTLE_SECONDS = 0.1
"""For the last helpers of an ended command to end too, before they count as its background."""

STRAY_ROUND_SECONDS = 0.02
"""Between two looks for processes whose warden was killed."""

TREE_VARIABLE = "SUBAGENT_TREE"
"""Marks every process of a tree in its environment: how they are found without their warden."""


class Descendant(msgspec.Struct, frozen=True):
    """A living process of a tree; ``name`` is the short name that the kernel keeps."""

    pid: int
    name: str


class TreeUsage(msgspec.Struct, frozen=True):
    """What a whole tree has used; the peak is that of its largest process."""

    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0


class TreeGuard(Protocol):
    """The warden's process as its owner sees it; ``trio.Process`` is one.

    The streams are the command's. ``returncode`` is 0 for a warden that left nothing
    of its tree, None while it works.
    """

    @property
    def pid(self) -> int: ...  # noqa: D102 - as the class says
    @property
    def returncode(self) -> int | None: ...  # noqa: D102
    @property
    def stdin(self) -> trio.abc.SendStream | None: ...  # noqa: D102
    @property
    def stdout(self) -> trio.abc.ReceiveStream | None: ...  # noqa: D102
    @property
    def stderr(self) -> trio.abc.ReceiveStream | None: ...  # noqa: D102

    async def wait(self) -> int: ...  # noqa: D102
    def kill(self) -> None: ...  # noqa: D102


class ProcessTree:
    """A running command and all that it starts. Built by ``open_process_tree``.

    ``pid`` is the command's. ``stdin``, ``stdout`` and ``stderr`` are there if they were
    asked for as pipes. A pipe of output ends when nothing of the tree has it open any
    more, which may be long after the command's end. ``guard_pid`` is the root of the whole
    tree, for looking at it in ``/proc``. ``usage`` is known once ``end`` has returned,
    unless the warden was killed.
    """

    def __init__(
        self,
        guard: TreeGuard,
        control: trio.lowlevel.FdStream,
        status: trio.lowlevel.FdStream,
        grace_seconds: float,
    ) -> None:
        self.pid = 0
        self.stdin = guard.stdin
        self.stdout = guard.stdout
        self.stderr = guard.stderr
        self._guard = guard
        self._control = control
        self._status = _StatusReader(status)
        self._grace_seconds = grace_seconds
        self._mark = f"{TREE_VARIABLE}={uuid4().hex}"
        self._exit_status: int | None = None
        self._exit_lock = trio.Lock()
        self.usage: TreeUsage | None = None
        self.detached = False

    async def wait_exited(self) -> int:
        """Return the command's exit status once it has ended, negative for a signal.

        What it left running does not matter, nor who else waits.

        Raises:
            ChildLostError: the warden was killed.
        """
        async with self._exit_lock:
            while self._exit_status is None:
                if not await self._read_status():
                    raise ChildLostError(
                        f"the warden of process {self.pid} was killed, so its exit status is unknown"
                    )
            return self._exit_status

    async def _read_status(self) -> bool:
        """Take in one message; returns False when the warden has no more to say."""
        match await self._status.receive():
            case ["exited", code]:
                self._exit_status = int(code)
            case ["used", cpu_seconds, peak_bytes]:
                self.usage = TreeUsage(float(cpu_seconds), int(peak_bytes))
            case _:
                return False
        return True

    def pipes(self) -> tuple[trio.abc.SendStream, trio.abc.ReceiveStream, trio.abc.ReceiveStream]:
        """Return standard input, output and error, for a command that has all three as pipes.

        Raises:
            ChildStartError: it has not.
        """
        if self.stdin is None or self.stdout is None or self.stderr is None:
            raise ChildStartError(f"process {self.pid} was started without pipes to speak with")
        return self.stdin, self.stdout, self.stderr

    @property
    def guard(self) -> TreeGuard:
        """The warden."""
        return self._guard

    @property
    def guard_pid(self) -> int:
        """The warden's pid; everything of the tree descends from it."""
        return self._guard.pid

    async def wait_gone(self) -> None:
        """Return once nothing of the tree is left."""
        await self._guard.wait()

    async def background(self) -> tuple[Descendant, ...]:
        """Return what lives on after the command has ended.

        Waits a moment for helpers that are about to end. Empty without ``/proc``.
        """
        with trio.move_on_after(SETTLE_SECONDS):
            await self.wait_gone()
        if self._guard.returncode is not None:
            return ()
        tree = await trio.to_thread.run_sync(warden.descendants, self._guard.pid)
        return tuple(Descendant(pid, name) for pid, _, state, name in tree if state not in "ZX")

    def detach(self) -> None:
        """Leave the tree running when the block is left; the caller now owes it an ``end()``.

        It still ends when this process dies.
        """
        self.detached = True

    async def end(self) -> None:
        """End the whole tree, and return once that is done; cannot be cancelled.

        Takes a few milliseconds, or ``grace_seconds`` and a little more when something
        ignores SIGTERM. Doing it again does nothing.
        """
        with trio.CancelScope(shield=True):  # bounded by the two deadlines below
            self._control.close()
            with trio.move_on_after(self._grace_seconds + KILL_SECONDS):
                await self._guard.wait()
            if self._guard.returncode != 0:  # killed by the command, stopped, or defeated
                self._guard.kill()
                await self._guard.wait()  # SIGKILL cannot be refused
                await self._end_strays()
            else:  # it has said all, and nobody else has the pipe
                async with self._exit_lock:
                    while await self._read_status():
                        pass
            self._status.close()
            for stream in (self.stdin, self.stdout, self.stderr):
                if stream is not None:
                    await stream.aclose()

    async def start(self, request: warden.Request) -> None:
        """Have the warden start the command; ``open_process_tree`` does this.

        Raises:
            ChildStartError: it could not; says why.
        """
        request.env[TREE_VARIABLE.encode()] = self._mark.partition("=")[2].encode()
        shown = os.fsdecode(request.argv[0])
        try:
            message = warden.encode_request(request)
        except ValueError as error:
            raise ChildStartError(f"cannot run {shown!r}: {error}") from None
        answer: list[str] | None = None
        with trio.move_on_after(START_SECONDS) as limit:
            with suppress(trio.BrokenResourceError):  # then there is no answer either
                await self._control.send_all(message)
            answer = await self._status.receive()
            if answer and answer[0] == "forked":
                self.pid = int(answer[1])
                answer = await self._status.receive()
        match answer:
            case ["started"]:
                pass
            case None if self.pid:
                pass  # the command did run, and its first act was to kill its warden
            case ["failed", stage, number]:
                place = os.fsdecode(request.cwd) if stage == "enter" else shown
                raise ChildStartError(f"cannot {stage} {place!r}: {os.strerror(int(number))}")
            case _ if limit.cancelled_caught:
                raise ChildStartError(f"{shown!r} did not start within {START_SECONDS:g} s")
            case _:
                raise ChildStartError(f"the warden of {shown!r} died before it could start the command")

    async def _end_strays(self) -> None:
        """Kill what a dead warden left: the command's group, and whatever bears the mark."""
        if self.pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        with trio.move_on_after(KILL_SECONDS):
            while await trio.to_thread.run_sync(_kill_marked, self._mark.encode()):  # noqa: ASYNC110 - nobody tells
                await trio.sleep(STRAY_ROUND_SECONDS)


class _StatusReader:
    """The warden's messages, each split into words."""

    def __init__(self, stream: trio.lowlevel.FdStream) -> None:
        self._stream = stream
        self._buffer = b""

    async def receive(self) -> list[str] | None:
        """Return the next message, or None when the warden is gone. Cancelling it loses nothing."""
        while b"\n" not in self._buffer:
            try:
                chunk = await self._stream.receive_some()
            except trio.ClosedResourceError:  # the tree has been ended before
                return None
            if not chunk:
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode().split()

    def close(self) -> None:
        self._stream.close()


@asynccontextmanager
async def open_process_tree(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.STDOUT,
    pass_fds: Sequence[int] = (),
    grace_seconds: float = GRACE_SECONDS,
) -> AsyncGenerator[ProcessTree]:
    """Run a command; when the block is left, nothing that it started is.

    The command is found through ``PATH`` of ``env``, which is its whole environment but
    for a mark. It has a session of its own and no terminal. Leaving the block sends
    SIGTERM to the tree, SIGKILL after ``grace_seconds``, and waits for the end. So does
    the death of this process, however it comes, only that nobody waits.

    Args:
        argv: The command and its arguments.
        cwd: The directory to run it in.
        env: Its environment.
        stdin: As for ``subprocess.Popen``, and so are ``stdout`` and ``stderr``.
        stdout: A pipe, read from the tree's ``stdout``.
        stderr: Goes where stdout goes.
        pass_fds: Descriptors that the command inherits under the same numbers.
        grace_seconds: From SIGTERM to SIGKILL.

    Raises:
        ChildStartError: there is no such command or directory, or the system refuses.
    """
    request = warden_request(argv, cwd=cwd, env=env, pass_fds=pass_fds, grace_seconds=grace_seconds)
    try:
        tree = await _start_warden(stdin, stdout, stderr, pass_fds, grace_seconds)
    except OSError as error:
        raise ChildStartError(f"cannot start a process for {argv[0]!r}: {error.strerror}") from error
    try:
        await tree.start(request)
        yield tree
    finally:
        if not tree.detached:
            await tree.end()


def warden_request(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    pass_fds: Sequence[int] = (),
    grace_seconds: float = GRACE_SECONDS,
) -> warden.Request:
    """Return what a warden is to run, as bytes."""
    return warden.Request(
        [os.fsencode(word) for word in argv],
        {os.fsencode(name): os.fsencode(value) for name, value in env.items()},
        os.fsencode(cwd),
        grace_seconds,
        list(pass_fds),
    )


def open_warden_pipes(
    theirs: ExitStack, ours: ExitStack
) -> tuple[int, int, trio.lowlevel.FdStream, trio.lowlevel.FdStream]:
    """Return what a warden is steered by: the two ends that it gets, and the two that stay here.

    It reads orders from the first and reports on the second; ours are the other ends, in this order. The
    stacks close them.
    """
    control_read, control_write = os.pipe()
    theirs.callback(os.close, control_read)
    control = trio.lowlevel.FdStream(control_write)
    ours.callback(control.close)
    status_read, status_write = os.pipe()
    theirs.callback(os.close, status_write)
    status = trio.lowlevel.FdStream(status_read)
    ours.callback(status.close)
    return control_read, status_write, control, status


async def _start_warden(
    stdin: int, stdout: int, stderr: int, pass_fds: Sequence[int], grace_seconds: float
) -> ProcessTree:
    """Start a warden that has no command yet; from here on the caller owns it."""
    with ExitStack() as ends_of_warden, ExitStack() as our_ends:
        control_read, status_write, control, status = open_warden_pipes(ends_of_warden, our_ends)
        guard = await trio.lowlevel.open_process(
            [sys.executable, "-I", "-S", warden.__file__, str(control_read), str(status_write)],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=(control_read, status_write, *pass_fds),
            # Not the command's: that comes through the pipe, byte for byte. And not ours:
            # it can be read in /proc by everyone whom we run.
            env={name: os.environ[name] for name in _LIBRARY_PATHS if name in os.environ},
            cwd="/",
            start_new_session=True,  # Ctrl-C in the terminal is for us to handle
        )
        our_ends.pop_all()
    return ProcessTree(guard, control, status, grace_seconds)


_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # without them some interpreters do not start


def _kill_marked(mark: bytes) -> int:
    """Kill every process that has ``mark`` in its environment; returns how many there were."""
    found = 0
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # gone, or another user's
            if mark in environ.read_bytes().split(b"\0"):
                os.kill(int(environ.parent.name), signal.SIGKILL)
                found += 1
    return found
