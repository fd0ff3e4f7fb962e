"""Children by fork of a warm process; see ``subagent.template`` for its side.

Linux only: elsewhere, and wherever the template fails, the fallback serves.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import trio

from subagent import template, warden
from subagent.errors import ChildError, ChildStartError
from subagent.process import GRACE_SECONDS, ProcessTree, open_process_tree
from subagent.secret import open_secret, with_secret
from subagent.spawner import Launch, Spawner

__all__ = ["WarmSpawner", "open_warm_spawner"]

PREPARE_SECONDS = 20.0
"""For the template to import everything: under a second when the machine is idle."""

FORK_SECONDS = 3.0
"""For the template to fork. It takes 10 ms; no measurement behind the rest."""

TEMPLATE_ENVIRONMENT = (
    "LD_LIBRARY_PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
"""All that the template is given: what an interpreter reads at its start, and which certificates to trust.

No credential is among them.
"""


class ForkedGuard:
    """The warden of a forked child, which is the template's child and not ours. A ``TreeGuard``."""

    def __init__(
        self,
        lifeline: trio.lowlevel.FdStream,
        stdin: trio.lowlevel.FdStream,
        stdout: trio.lowlevel.FdStream,
        stderr: trio.lowlevel.FdStream,
    ) -> None:
        self.pid = 0
        self.returncode: int | None = None
        self.stdin: trio.abc.SendStream | None = stdin
        self.stdout: trio.abc.ReceiveStream | None = stdout
        self.stderr: trio.abc.ReceiveStream | None = stderr
        self._lifeline = lifeline
        self._pidfd: int | None = None
        self._received = b""
        self._lock = trio.Lock()

    async def learn_pid(self) -> None:
        """Return once the pid is known, or the warden gone."""
        async with self._lock:
            while b"\n" not in self._received:
                chunk = await self._lifeline.receive_some()
                if not chunk:
                    self._finish(-signal.SIGKILL)
                    return
                self._received += chunk
            self.pid = int(self._received.partition(b"\n")[0])
            with suppress(OSError):  # it has been killed meanwhile, and its lifeline says so
                self._pidfd = os.pidfd_open(self.pid)

    async def wait(self) -> int:
        """Return 0 when the warden has left nothing of its tree, negative when it was killed."""
        async with self._lock:
            while self.returncode is None:
                chunk = await self._lifeline.receive_some()
                self._received += chunk
                if not chunk:
                    ended_well = self._received.partition(b"\n")[2] == b"0"
                    self._finish(0 if ended_well else -signal.SIGKILL)
            return self.returncode

    def kill(self) -> None:
        """Kill the warden, if it is there."""
        if self._pidfd is None:  # it has never answered, so there is nobody to wait for
            self._finish(-signal.SIGKILL)
        else:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _finish(self, returncode: int) -> None:
        if self.returncode is None:
            self.returncode = returncode
            self._lifeline.close()
            if self._pidfd is not None:
                os.close(self._pidfd)
                self._pidfd = None


class WarmSpawner:
    """Forks children from a template process. Built by ``open_warm_spawner``.

    The template is started by the first ``prepare`` or ``open_child``, whichever comes
    first, and lives until the spawner closes. ``template_pid`` is its pid while it serves.
    """

    def __init__(
        self, start: Callable[["WarmSpawner"], None], fallback: Spawner, on_notice: Callable[[str], None]
    ) -> None:
        self.template_pid: int | None = None
        self._start = start
        self._fallback = fallback
        self._on_notice = on_notice
        self._settled: trio.Event | None = None  # set once the template is ready, or is not to be
        self._socket: trio.socket.SocketType | None = None

    async def prepare(self) -> None:
        """Start the template if nobody has, and return once it is ready or has failed."""
        if self._settled is None:
            self._settled = trio.Event()
            self._start(self)
        await self._settled.wait()

    @asynccontextmanager
    async def open_child(self, launch: Launch) -> AsyncGenerator[ProcessTree]:
        """Yield a forked child, or one of the fallback's if the template does not serve."""
        tree = await self._fork(launch)
        if tree is None:
            async with self._fallback.open_child(launch) as child:
                yield child
            return
        try:
            yield tree
        finally:
            await tree.end()

    def serve_from(self, connection: trio.socket.SocketType, pid: int) -> None:
        """The template is ready on the other end of ``connection``."""
        self._socket, self.template_pid = connection, pid
        self._settle()

    def give_up(self, reason: str) -> None:
        """The template does not serve, now or any more; says so the first time."""
        is_news = self._settled is None or not self._settled.is_set() or self._socket is not None
        self._socket = self.template_pid = None
        self._settle()
        if is_news:
            self._on_notice(f"subagents start afresh, which takes longer: {reason}")

    def _settle(self) -> None:
        if self._settled is None:
            self._settled = trio.Event()
        self._settled.set()

    async def _fork(self, launch: Launch) -> ProcessTree | None:
        """Return a running child of the template, which the caller must end; None without a template.

        Raises:
            ChildStartError: the launch itself cannot be, such as a directory that is not there.
        """
        await self.prepare()
        if self._socket is None:
            return None
        with open_secret(launch.secret) as passed:
            request = warden.Request(
                [os.fsencode(launch.title)],
                {os.fsencode(k): os.fsencode(v) for k, v in with_secret(launch.env, passed).items()},
                os.fsencode(launch.cwd),
                GRACE_SECONDS,
                list(passed),
            )
            with trio.move_on_after(FORK_SECONDS):
                try:
                    guard, tree = await _request_fork(self._socket, passed)
                except (ConnectionError, trio.ClosedResourceError):
                    self.give_up("the template process has ended")
                    return None
                except OSError as error:
                    raise ChildStartError(f"cannot open pipes for a child: {error.strerror}") from error
                if await _started(guard, tree, request):
                    return tree
        self.give_up("the template process does not answer")
        return None


async def _started(guard: "ForkedGuard", tree: ProcessTree, request: warden.Request) -> bool:
    """Have a new warden start its worker; returns whether there is a warden. Ends the tree if not."""
    started = False
    try:
        await guard.learn_pid()
        if guard.pid:
            await tree.start(request)
            started = True
    finally:
        if not started:
            if not guard.pid:
                guard.kill()
            await tree.end()
    return started


@asynccontextmanager
async def open_warm_spawner(
    *,
    preload: Sequence[str],
    entry: str,
    fallback: Spawner,
    on_notice: Callable[[str], None],
    rehearsal: str = "",
    title: str = "subagent template",
) -> AsyncGenerator[WarmSpawner]:
    """Yield a spawner whose children begin in ``entry``, with ``preload`` imported.

    Args:
        preload: Modules that the template imports; they must start no thread.
        entry: ``module:function``, called without arguments in each child; an int that it
            returns is the exit status.
        fallback: Starts the children when the template cannot.
        on_notice: Told once, in a line, when that is so.
        rehearsal: ``module:function``, called once in the template: what it loads and computes,
            no child has to. It must start no thread, and keep no secret and no file.
        title: What ``ps`` shows of the template.
    """
    async with trio.open_nursery() as nursery:

        def start(spawner: WarmSpawner) -> None:
            if sys.platform == "linux":
                nursery.start_soon(partial(_keep_template, spawner, preload, rehearsal, entry, title))
            else:
                spawner.give_up("forking a warm process is safe on Linux only")

        try:
            yield WarmSpawner(start, fallback, on_notice)
        finally:
            nursery.cancel_scope.cancel()


async def _keep_template(
    spawner: WarmSpawner, preload: Sequence[str], rehearsal: str, entry: str, title: str
) -> None:
    """Run the template until cancelled; when it fails, have the spawner give up."""
    try:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    except OSError as error:
        spawner.give_up(f"no socket for the template process: {error.strerror}")
        return
    with theirs, trio.socket.from_stdlib_socket(ours) as connection:
        plan: template.Plan = {
            "path": _import_path(),
            "socket": theirs.fileno(),
            "preload": list(preload),
            "rehearsal": rehearsal,
            "entry": entry,
            "title": title,
        }
        environment = {name: os.environ[name] for name in TEMPLATE_ENVIRONMENT if name in os.environ}
        try:
            async with open_process_tree(
                [sys.executable, "-I", "-c", template.BOOT, json.dumps(plan)],
                cwd=Path("/"),
                env={**environment, "OPENBLAS_NUM_THREADS": "1"},  # its threads would not survive a fork
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            ) as tree:
                theirs.close()
                answer = b""
                with trio.move_on_after(PREPARE_SECONDS):
                    answer = await connection.recv(template.MAX_REQUEST_BYTES)
                if answer != b"ready":
                    reason = answer.decode("utf-8", "replace") or "no answer"
                    spawner.give_up(f"the template process: {' '.join(reason.split())}")
                    return
                spawner.serve_from(connection, tree.pid)
                await _wait_closed(connection)
                spawner.give_up("the template process has ended")
                await trio.sleep_forever()  # its children live on; they end with their own blocks, or here
        except ChildError as error:
            spawner.give_up(str(error))


async def _wait_closed(connection: trio.socket.SocketType) -> None:
    """Return when the other end is gone; it has nothing more to say."""
    with suppress(ConnectionError):
        await connection.recv(1)


async def _request_fork(
    connection: trio.socket.SocketType, passed: Sequence[int]
) -> tuple[ForkedGuard, ProcessTree]:
    """Ask for a warden without a command; from here on the caller owns it."""
    with ExitStack() as their_ends, ExitStack() as our_ends:
        theirs: list[int] = []

        def pipe(*, we_write: bool) -> trio.lowlevel.FdStream:
            readable, writable = os.pipe()
            kept, given = (writable, readable) if we_write else (readable, writable)
            their_ends.callback(os.close, given)
            theirs.append(given)
            stream = trio.lowlevel.FdStream(kept)
            our_ends.callback(stream.close)
            return stream

        control, status, lifeline = pipe(we_write=True), pipe(we_write=False), pipe(we_write=False)
        stdin, stdout, stderr = pipe(we_write=True), pipe(we_write=False), pipe(we_write=False)
        request = json.dumps({"fds": list(passed)}).encode()
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, _packed([*theirs, *passed]))
        await connection.sendmsg([request], [rights])
        our_ends.pop_all()
    guard = ForkedGuard(lifeline, stdin, stdout, stderr)
    return guard, ProcessTree(guard, control, status, GRACE_SECONDS)


def _packed(descriptors: Sequence[int]) -> bytes:
    import array

    return array.array("i", descriptors).tobytes()


def _import_path() -> list[str]:
    """Return where this process finds its modules, without what depends on the current directory."""
    return [folder for folder in sys.path if os.path.isabs(folder)]  # noqa: PTH117 - a string it stays
