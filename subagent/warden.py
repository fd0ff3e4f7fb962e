"""The guard of one process tree: a script that ``subagent.process`` starts, one for each command.

The warden starts the command and stays until nothing of it is left. It ends the whole
tree when its control pipe closes, which the kernel does when the owner dies in
whatever way, or when it receives SIGTERM.

On Linux the warden is a child subreaper: whatever the command leaves behind, through a
new session or a double fork, becomes a child of the warden and is found by walking
``/proc`` from parent to child. Elsewhere it ends the command's process group, and a
process that left the group escapes. A process of another user, such as one under
``sudo``, cannot be signalled by any of this.

It runs without site packages, and only with modules that are cheap to import: its
start is a cost of every command.

Control pipe, owner to warden: eight bytes of length, then one request. Status pipe,
warden to owner, a line each: ``forked PID``; ``started`` or ``failed run|enter ERRNO``;
``exited CODE``, with the code negative for a signal; last of all, when nothing of the tree
is left, ``used CPU_SECONDS PEAK_BYTES``.
"""

import os
import select
import signal
import sys
import time
from _collections_abc import Callable  # what `os` has loaded already; `collections.abc` costs a start

__all__ = ["Guard", "Request", "descendants", "encode_request", "parse_request", "prctl", "read_request"]

SIGNAL_ROUND_SECONDS = 0.05
"""Between two looks for new members of a tree that is ending; a round costs a few ms of /proc."""

GIVE_UP_SECONDS = 5.0
"""After the first SIGKILL. Only what we may not signal or what hangs in the kernel lives that long."""

_LENGTH_BYTES = 8
_MAXRSS_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024
PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 1, 15, 36  # <linux/prctl.h>


class Request:
    """What to run: the command, its whole environment, its directory, and how it ends.

    ``passed_fds`` are inherited by the command; ``grace_seconds`` lie between SIGTERM
    and SIGKILL.
    """

    __slots__ = ("argv", "cwd", "env", "grace_seconds", "passed_fds")

    def __init__(
        self,
        argv: list[bytes],
        env: dict[bytes, bytes],
        cwd: bytes,
        grace_seconds: float,
        passed_fds: list[int],
    ) -> None:
        self.argv = argv
        self.env = env
        self.cwd = cwd
        self.grace_seconds = grace_seconds
        self.passed_fds = passed_fds


def encode_request(request: Request) -> bytes:
    """Return ``request`` as the control pipe carries it.

    Raises:
        ValueError: a NUL byte, which no program can be given, or an impossible variable name.
    """
    for name in request.env:
        if not name or b"=" in name:
            raise ValueError(f"{os.fsdecode(name)!r} cannot be the name of an environment variable")
    fields = [
        b"%r" % request.grace_seconds,
        b",".join(b"%d" % fd for fd in request.passed_fds),
        request.cwd,
        b"%d" % len(request.argv),
        *request.argv,
        *(name + b"=" + value for name, value in request.env.items()),
    ]
    if any(b"\0" in field for field in fields):
        raise ValueError("a NUL byte cannot be passed to a program")
    payload = b"\0".join(fields)
    return len(payload).to_bytes(_LENGTH_BYTES, "big") + payload


def parse_request(payload: bytes) -> Request:
    """Return the request of ``payload``, which comes without its length."""
    grace, fds, cwd, count, *rest = payload.split(b"\0")
    argv, variables = rest[: int(count)], rest[int(count) :]
    env = {}
    for variable in variables:
        name, _, value = variable.partition(b"=")
        env[name] = value
    return Request(argv, env, cwd, float(grace), [int(fd) for fd in fds.split(b",") if fd])


def descendants(root: int) -> list[tuple[int, int, str, str]]:
    """Return (pid, process group, state, name) of every descendant of ``root``.

    The state is one letter as in ``/proc``; zombies are among them, because a process
    whose first thread has ended looks like one while its others run. This is one look:
    what forks meanwhile may be missed, so look until nothing is left. Without ``/proc``
    the result is empty.
    """
    children: dict[int, list[tuple[int, int, str, str]]] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib would double the start of the script
    except OSError:
        return []
    for name in names:
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                stat = file.read().decode("utf-8", "replace")
        except OSError:  # gone since the listing
            continue
        title, _, rest = stat.partition("(")[2].rpartition(") ")  # it may hold anything, parentheses too
        state, parent, group = rest.split(None, 3)[:3]
        children.setdefault(int(parent), []).append((int(name), int(group), state, title))
    found: list[tuple[int, int, str, str]] = []
    parents = [root]
    while parents:
        born = children.pop(parents.pop(), [])
        found += born
        parents += [entry[0] for entry in born]
    return found


class Guard:
    """The warden at work: starts the command, reaps, reports, and ends the tree.

    ``become`` turns a fresh fork into the command. It is given the request, the warden's
    pid and a descriptor on which it says why it could not, or which it closes.
    """

    def __init__(
        self,
        control: int,
        status: int,
        request: Request,
        become: Callable[[Request, int, int], None] | None = None,
    ) -> None:
        self._control = control
        self._status = status
        self._request = request
        self._become = become or _become_command
        self._cpu_seconds = 0.0
        self._peak_bytes = 0
        self._adopts_orphans = prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._command = 0
        self._kill_at: float | None = None  # set once the tree is to end
        self._warned: set[int] = set()  # who has had its SIGTERM

    def run(self) -> int:
        """Guard the tree until nothing of it is left; returns the exit code of the warden."""
        wake = _wake_on_signals()
        if not self._start():
            return 0
        _release_files(self._request.passed_fds)
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(wake, select.POLLIN)
        while self._reap():
            if self._kill_at is None:
                ready = [fd for fd, _ in poller.poll()]
                if self._control in ready or signal.SIGTERM in _drain(wake):
                    poller.unregister(self._control)  # once closed it would be ready for ever
                    self._kill_at = time.monotonic() + self._request.grace_seconds
                continue
            if time.monotonic() > self._kill_at + GIVE_UP_SECONDS:
                return 1
            self._signal_tree(self._kill_at)
            poller.poll(SIGNAL_ROUND_SECONDS * 1000)
            _drain(wake)
        self._report(b"used %.3f %d" % (self._cpu_seconds, self._peak_bytes))
        return 0

    def _start(self) -> bool:
        """Start the command and report that it runs, or why it does not."""
        failure, failure_of_child = os.pipe()  # closed by a successful exec
        guard = os.getpid()
        self._command = os.fork()
        if self._command == 0:
            try:
                # By the child, before it can do any harm: even if the command kills its
                # warden at once, the owner knows whom to end.
                self._report(b"forked %d" % os.getpid())
                self._become(self._request, guard, failure_of_child)
            finally:
                os._exit(127)
        os.close(failure_of_child)
        with open(failure, "rb") as file:
            reason = file.read()
        if reason:
            os.waitpid(self._command, 0)
            self._report(b"failed " + reason)
            return False
        self._report(b"started")
        return True

    def _reap(self) -> bool:
        """Collect what has ended, report the command's end; returns whether anything is left."""
        while True:
            try:
                pid, wait_status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                # A subreaper without children has no descendants. Others may have lost some.
                return not self._adopts_orphans and _send_to_group(self._command, 0)
            if pid == 0:
                return True
            self._cpu_seconds += used.ru_utime + used.ru_stime  # with those whom it had reaped itself
            self._peak_bytes = max(self._peak_bytes, used.ru_maxrss * _MAXRSS_UNIT_BYTES)
            if pid == self._command:
                self._report(b"exited %d" % os.waitstatus_to_exitcode(wait_status))

    def _signal_tree(self, kill_at: float) -> None:
        """Send SIGTERM to everyone once, and SIGKILL when the grace is over."""
        killing = time.monotonic() >= kill_at
        tree = descendants(os.getpid()) or [(self._command, self._command, "", "")]
        if killing:
            # Each group at one stroke, so that no member can fork past it. Ours is that of a
            # child which has not yet left it.
            for group in {entry[1] for entry in tree} - {os.getpgrp()}:
                _send_to_group(group, signal.SIGKILL)
        for pid, _, _, _ in tree:
            if killing:
                _send(pid, signal.SIGKILL)
            elif pid not in self._warned:
                self._warned.add(pid)
                _send(pid, signal.SIGTERM)
                _send(pid, signal.SIGCONT)  # a stopped process would not notice before SIGKILL

    def _report(self, line: bytes) -> bool:
        try:
            os.write(self._status, line + b"\n")
        except OSError:  # the owner is gone; the control pipe says so too
            return False
        return True


def _become_command(request: Request, guard: int, failure: int) -> None:
    """Turn this fresh fork into the command; returns only after writing why it could not."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and exec would keep that
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    # A warden that is killed takes the command along. Safe here, unlike in a program with
    # threads: the signal comes when the forking *thread* ends, and the warden has only one.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        return
    stage = b"enter"
    try:
        os.chdir(request.cwd)
        stage = b"run"
        os.execvpe(request.argv[0], request.argv, request.env)  # noqa: S606 - running a command is the purpose
    except OSError as error:
        os.write(failure, b"%s %d" % (stage, error.errno or 0))


def _wake_on_signals() -> int:
    """Return a descriptor that becomes readable with each signal that the warden minds or survives."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        # A handler, not SIG_IGN: exec resets handlers, but the command would inherit "ignored".
        signal.signal(number, lambda _number, _frame: None)
    return readable


def _drain(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except BlockingIOError:
        return b""


def _release_files(passed_fds: list[int]) -> None:
    """Let go of what belongs to the command, so that its readers see its end."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)
    for descriptor in passed_fds:
        os.close(descriptor)


def _send(pid: int, number: int) -> bool:
    """Signal a process; returns whether it was there and ours to signal."""
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


def _send_to_group(group: int, number: int) -> bool:
    """Signal a process group; returns whether anyone was there to get it."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def prctl(option: int, value: int | bytes) -> bool:
    """Set an attribute of this process, where there is such a thing; returns whether it was set."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes
    except ImportError:  # an interpreter built without libffi
        return False
    argument = ctypes.c_ulong(value) if isinstance(value, int) else ctypes.c_char_p(value)
    unused = ctypes.c_ulong(0)
    return bool(ctypes.CDLL(None).prctl(option, argument, unused, unused, unused) == 0)


def read_request(control: int) -> Request | None:
    """Return the owner's request, or None when the owner went before it was complete."""
    data = b""
    missing = _LENGTH_BYTES
    while missing > 0:
        chunk = os.read(control, missing)
        if not chunk:
            return None
        data += chunk
        wanted = _LENGTH_BYTES
        if len(data) >= _LENGTH_BYTES:
            wanted += int.from_bytes(data[:_LENGTH_BYTES], "big")
        missing = wanted - len(data)
    return parse_request(data[_LENGTH_BYTES:])


def main(control: int, status: int) -> int:
    """Guard one tree; the arguments are the descriptors of the two pipes. Returns the exit code."""
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - it takes no keyword
    prctl(PR_SET_NAME, b"warden")  # so that `pkill python` of a command spares its warden
    request = read_request(control)
    return 0 if request is None else Guard(control, status, request).run()


if __name__ == "__main__":
    # No clean-up of an interpreter that has nothing to clean up.
    os._exit(main(int(sys.argv[1]), int(sys.argv[2])))
