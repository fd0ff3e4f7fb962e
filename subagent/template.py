"""The warm way to start a child: a process that has imported everything, and forks.

The template runs with one thread and no event loop, holds no descriptor but its own
socket, and sees no task: for each request that arrives on the socket it forks a warden,
which reads what to run from its control pipe as every warden does, and forks the
worker. The worker has a session of its own, and runs the entry function with the
descriptors, directory, environment and arguments of the request.

A request is ``{"fds": [...]}`` with descriptors attached: control and status pipe of the
warden, its lifeline, then the worker's standard input, output and error, then one for
each number in ``fds``, under which the worker is to have it. The lifeline carries the
warden's pid, and ``0`` when it has left nothing of its tree.
"""

import gc
import importlib
import json
import os
import random
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import TypedDict

from subagent import warden
from subagent.title import set_title

__all__ = ["BOOT", "MAX_DESCRIPTORS", "MAX_REQUEST_BYTES", "Plan", "main"]

BOOT = (
    "import json, sys; plan = json.loads(sys.argv[1]); sys.path[:] = plan['path']; "
    "from subagent.template import main; main(plan)"
)
"""Run with ``-I -c``: the template finds modules where its parent does, and nowhere else."""

MAX_REQUEST_BYTES = 4096
MAX_DESCRIPTORS = 16
"""Six of ours and what is passed on."""


class Plan(TypedDict):
    """What the template is told at its start, as JSON.

    ``socket`` is a descriptor, ``entry`` and ``rehearsal`` are ``module:function``, the
    latter may be "", ``title`` is for ``ps``.
    """

    path: list[str]
    socket: int
    preload: list[str]
    rehearsal: str
    entry: str
    title: str


def main(plan: Plan) -> None:
    """Import what the plan says, report it on the socket, then fork on request until the socket closes."""
    owner = socket.socket(fileno=plan["socket"])
    owner.set_inheritable(False)
    try:
        entry = _load(plan)
    except BaseException as error:  # noqa: BLE001 - importing may raise anything; the owner is told
        owner.send(f"failed {type(error).__name__}: {error}".encode()[:MAX_REQUEST_BYTES])
        os._exit(1)
    set_title(plan["title"])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the wardens; their owners know the rest
    # What is here stays shared with every child, also when their collectors run.
    gc.collect()
    gc.freeze()
    owner.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(
            owner, MAX_REQUEST_BYTES, MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
        )
        if not message:
            os._exit(0)
        if os.fork() == 0:
            try:
                owner.close()
                _guard_worker(json.loads(message)["fds"], descriptors, entry)
            finally:
                os._exit(1)
        for descriptor in descriptors:
            os.close(descriptor)


def _load(plan: Plan) -> Callable[[], object]:
    """Import the plan's modules, run its rehearsal, and return its entry function.

    Raises:
        RuntimeError: that has started a thread, which no fork would have.
    """
    for name in plan["preload"]:
        importlib.import_module(name)
    entry = _function(plan["entry"])
    if plan["rehearsal"]:
        _function(plan["rehearsal"])()
    threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208 - a count
    if threads != 1:
        raise RuntimeError(f"importing the modules of {plan['entry']} started {threads - 1} threads")
    return entry


def _function(name: str) -> Callable[[], object]:
    """Return what ``module:function`` names."""
    module, _, function = name.partition(":")
    found: Callable[[], object] = getattr(importlib.import_module(module), function)
    return found


def _guard_worker(numbers: list[int], descriptors: list[int], entry: Callable[[], object]) -> None:
    """Be the warden of one worker; does not return."""
    os.setsid()
    set_title("warden")
    control, status, lifeline = _place(descriptors[3:], [0, 1, 2, *numbers], descriptors[:3])
    os.write(lifeline, b"%d\n" % os.getpid())
    request = warden.read_request(control)

    def become(request: warden.Request, guard: int, failure: int) -> None:
        _become_worker(request, guard, failure, entry)

    code = 0 if request is None else warden.Guard(control, status, request, become).run()
    if code == 0:
        os.write(lifeline, b"0")
    os._exit(code)


def _place(descriptors: list[int], numbers: list[int], others: list[int]) -> list[int]:
    """Move each descriptor to its number, and ``others`` out of the way; returns where those are now."""
    import fcntl

    above = max(*numbers, *others, *descriptors) + 1  # so that none is overwritten before its turn
    copies = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above) for descriptor in descriptors + others]
    for descriptor in descriptors + others:
        os.close(descriptor)
    for copy, number in zip(copies, numbers, strict=False):
        os.dup2(copy, number, inheritable=number <= 2)
        os.close(copy)
    return copies[len(numbers) :]


def _become_worker(request: warden.Request, guard: int, failure: int, entry: Callable[[], object]) -> None:
    """Run the entry in this fresh fork and end with its result as exit status; does not return."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    # Safe, for the warden has one thread: see there.
    warden.prctl(warden.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(1)
    try:
        os.chdir(request.cwd)
    except OSError as error:
        os.write(failure, b"enter %d" % (error.errno or 0))
        os._exit(127)
    os.close(failure)
    _close_all_but({0, 1, 2, *request.passed_fds})
    os.environb.clear()
    os.environb.update(request.env)
    sys.argv = [os.fsdecode(word) for word in request.argv]
    set_title(" ".join(sys.argv))
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    os._exit(_run(entry))


def _run(entry: Callable[[], object]) -> int:
    """Return the exit status that an interpreter would end with."""
    status = 1
    try:
        result = entry()
        status = result if isinstance(result, int) else 0
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - nobody else is there to show it
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # the reader is gone, or the entry has closed it
            continue
    return status


def _close_all_but(kept: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names are what is wanted
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # that of the listing itself
                continue
