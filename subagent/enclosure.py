"""A command in an enclosure: a program such as bubblewrap that cuts off what it runs from all else.

Two wardens guard it. The outer one ends the enclosure with its owner, and the enclosure
takes everything in it along; it sees one process and cannot say more. The inner one is
the first process inside: it starts the command, says when that has ended, keeps what it
left running, and ends it all with the usual grace.
"""

import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import trio

from subagent import warden
from subagent.errors import ChildStartError
from subagent.process import (
    GRACE_SECONDS,
    ProcessTree,
    open_process_tree,
    open_warden_pipes,
    warden_request,
)

__all__ = ["open_enclosed_tree"]

COMPLAINT_SECONDS = 1.0
"""For what an enclosure says about why it does not work; it has ended by then. No measurement behind this."""

COMPLAINT_BYTES = 4096


class _EnclosedGuard:
    """The inner warden as its owner sees it: there as long as its enclosure. A ``TreeGuard``."""

    def __init__(self, enclosure: ProcessTree) -> None:
        self._enclosure = enclosure
        self.pid = 0
        self.stdin = enclosure.stdin
        self.stdout = enclosure.stdout
        self.stderr = enclosure.stderr

    @property
    def returncode(self) -> int | None:
        """That of the outer warden."""
        return self._enclosure.guard.returncode

    async def wait(self) -> int:
        """Return once nothing of the enclosure is left."""
        return await self._enclosure.guard.wait()

    def kill(self) -> None:
        """Kill the outer warden; the enclosure dies with it."""
        self._enclosure.guard.kill()


class _EnclosedTree(ProcessTree):
    """A command and all that it starts, inside. Its ``pid`` is the one outside, 0 if that is not known."""

    def __init__(
        self,
        enclosure: ProcessTree,
        control: trio.lowlevel.FdStream,
        status: trio.lowlevel.FdStream,
        grace_seconds: float,
    ) -> None:
        self._inner = _EnclosedGuard(enclosure)
        super().__init__(self._inner, control, status, grace_seconds)
        self._enclosure = enclosure

    async def start(self, request: warden.Request) -> None:
        """Have the inner warden start the command.

        Raises:
            ChildStartError: it could not, or the enclosure does not work here.
        """
        try:
            await super().start(request)
        except ChildStartError:
            if (complaint := await self._complaint()) is not None:
                raise ChildStartError(complaint) from None
            raise
        inside = self.pid
        seen = await trio.to_thread.run_sync(_outside_pids, self._enclosure.pid, inside)
        self._inner.pid, self.pid = seen

    def detach(self) -> None:
        """Leave the enclosure running when the block is left."""
        super().detach()
        self._enclosure.detach()

    async def end(self) -> None:
        """End the tree with its grace, then the enclosure."""
        await super().end()
        await self._enclosure.end()

    async def _complaint(self) -> str | None:
        """Return what the enclosure said when it ended at once; None if it has not."""
        output = b""
        with trio.move_on_after(COMPLAINT_SECONDS), suppress(trio.BrokenResourceError):
            await self._enclosure.wait_exited()
            while self.stdout is not None and len(output) < COMPLAINT_BYTES:
                chunk = await self.stdout.receive_some(COMPLAINT_BYTES)
                if not chunk:
                    break
                output += chunk
        lines = output.decode("utf-8", "replace").strip().splitlines()
        return " ".join(lines[0].split()) if lines else None


@asynccontextmanager
async def open_enclosed_tree(
    enclosure: Sequence[str],
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    grace_seconds: float = GRACE_SECONDS,
) -> AsyncGenerator[ProcessTree]:
    """Run a command in an enclosure, as ``open_process_tree`` does without one.

    Standard output and error are one pipe, and there is no input.

    Args:
        enclosure: A command line that runs ``subagent.warden`` as process 1 of an enclosure
            that dies with its parent; the two descriptors of that are put behind it.
        argv: The command, found inside through ``PATH`` of ``env``.
        cwd: The directory to run it in, as it is named inside.
        env: Its whole environment but for a mark.
        grace_seconds: From SIGTERM to SIGKILL.

    Raises:
        ChildStartError: there is no such command or directory inside, or no enclosure here.
    """
    request = warden_request(argv, cwd=cwd, env=env, grace_seconds=grace_seconds)
    with ExitStack() as theirs, ExitStack() as ours:
        control_read, status_write, control, status = open_warden_pipes(theirs, ours)
        async with open_process_tree(
            [*enclosure, str(control_read), str(status_write)],
            cwd=Path("/"),
            env={},
            stdin=subprocess.DEVNULL,
            pass_fds=(control_read, status_write),
            grace_seconds=grace_seconds,
        ) as outer:
            theirs.close()
            tree = _EnclosedTree(outer, control, status, grace_seconds)
            ours.pop_all()  # it closes them now
            try:
                await tree.start(request)
                yield tree
            finally:
                if not tree.detached:
                    await tree.end()


def _outside_pids(enclosure_pid: int, inside_pid: int) -> tuple[int, int]:
    """Return the pids, as seen from here, of the inner warden and of a process inside; 0 for none."""
    inner, found = 0, 0
    for pid, _, _, _ in warden.descendants(enclosure_pid):
        inside = _innermost_pid(pid)
        inner = pid if inside == 1 else inner
        found = pid if inside == inside_pid else found
    return inner, found


def _innermost_pid(pid: int) -> int:
    """Return the pid of a process in the namespace that it lives in; 0 when it has gone."""
    with suppress(OSError), open(f"/proc/{pid}/status", "rb") as status:
        for line in status:
            if line.startswith(b"NSpid:"):
                return int(line.split()[-1])
    return 0
