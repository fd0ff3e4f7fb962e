"""Children that go wrong, each in its own way, and what is to come of them."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from subagent.errors import (
    ChildError,
    ChildFailedError,
    ChildLimitError,
    ChildTimeoutError,
    ProtocolError,
)
from subagent.limits import Limits
from subagent.spawner import FreshSpawner, Spawner
from subagent.warm import open_warm_spawner
from tests.support import child_program

__all__ = ["FAULTS", "SPAWNERS", "Fault", "open_spawner"]

SPAWNERS = ("fresh", "warm")

MEBIBYTE = 1024 * 1024

DOUBLE_FORK = (
    "if os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(300)\n os._exit(0)\nos.wait()\n"
)


class Fault(msgspec.Struct, frozen=True):
    """``error`` is None when the child's result ``"done"`` counts in spite of everything."""

    code: str
    error: type[ChildError] | None = None
    words: str = ""
    limits: Limits = Limits(wall_seconds=60)


HANG = Limits(wall_seconds=1.5)  # by then a child has begun, also on a busy machine

FAULTS = {
    "garbage": Fault("print('hello', flush=True)", ProtocolError, "no message: 'hello'"),
    "nothing": Fault("ready()", ChildFailedError, "exited with status 0 without a result"),
    "a status": Fault("ready(); sys.exit(3)", ChildFailedError, "exited with status 3 without a result"),
    "a long line": Fault("ready(); progress('x' * 2_000_000); finish('done')"),
    "a line too long": Fault(
        "ready(); write(b'x' * 3_000_000); time.sleep(300)",
        ProtocolError,
        "longer than 1048576 bytes",
        Limits(wall_seconds=60, line_bytes=MEBIBYTE),
    ),
    "a line without end": Fault("ready()\nwhile True: write(b' ' * 65536)", ProtocolError, "longer than"),
    "lines without end": Fault(
        'ready()\nwhile True: write(b\'{"type":"progress"}\\n\' * 3000)',
        ProtocolError,
        "more than 4194304 bytes in all",
        Limits(wall_seconds=60, output_bytes=4 * MEBIBYTE),
    ),
    "no newline": Fault('ready(); write(b\'{"type":"finished","payload":"done"}\')'),
    "half a message": Fault('ready(); write(b\'{"type":"finished","pay\')', ProtocolError, "no message"),
    "result, then hang": Fault("ready(); finish('done'); time.sleep(300)"),
    "result, then a status": Fault("ready(); finish('done'); sys.exit(5)"),
    "result, then kill -9": Fault("ready(); finish('done'); os.kill(os.getpid(), 9)"),
    "hang before ready": Fault("time.sleep(300)", ChildTimeoutError, "was not ready within 1.5 s", HANG),
    "hang at work": Fault("ready(); time.sleep(300)", ChildTimeoutError, "within 1.5 s", HANG),
    "deaf": Fault(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); ready()\nwhile True: time.sleep(300)",
        ChildTimeoutError,
        "within 1.5 s",
        HANG,
    ),
    "stopped": Fault("ready(); os.kill(os.getpid(), signal.SIGSTOP)", ChildTimeoutError, "within", HANG),
    "kill -9 before ready": Fault("os.kill(os.getpid(), 9)", ChildFailedError, "killed by SIGKILL"),
    "segfault": Fault("ready(); os.kill(os.getpid(), signal.SIGSEGV)", ChildFailedError, "SIGSEGV"),
    "closes stdout, lives on": Fault(
        "ready(); os.close(1); time.sleep(300)", ChildFailedError, "closed its output without a result"
    ),
    "closes stdin": Fault("ready(); os.close(0); time.sleep(0.05); finish('done')"),
    "a daemon holds stdout": Fault(
        "ready()\nif os.fork() == 0: time.sleep(300)\nos._exit(0)", ChildFailedError, "status 0 without"
    ),
    "result and a daemon": Fault("ready()\n" + DOUBLE_FORK + "finish('done')"),
    "only a daemon": Fault("ready()\n" + DOUBLE_FORK + "os._exit(7)", ChildFailedError, "status 7"),
    "fork bomb": Fault(
        "ready()\nwhile True:\n if os.fork() == 0: time.sleep(300)\n time.sleep(0.003)",
        ChildLimitError,
        "of 20 allowed",
        Limits(wall_seconds=60, processes=20),
    ),
    "memory": Fault(
        "ready(); kept = b'x' * 200_000_000; time.sleep(300)",
        ChildLimitError,
        "of 100 MiB allowed",
        Limits(wall_seconds=60, memory_bytes=100 * MEBIBYTE),
    ),
    "cpu": Fault(
        "ready()\nwhile True: pass",
        ChildLimitError,
        "of 0.2 s allowed",
        Limits(wall_seconds=60, cpu_seconds=0.2),
    ),
    "invalid utf-8": Fault(
        'ready(); write(b\'{"type":"progress","payload":"\\xff"}\\n\')', ProtocolError, "no message"
    ),
    "control characters": Fault("ready(); write(b'\\0\\x1b[2J\\n')", ProtocolError, "no message"),
    "floods stderr": Fault("ready(); os.write(2, b'x' * 20_000_000); finish('done')"),
    "says so": Fault("ready(); failed('no such\\nfile')", ChildFailedError, "no such file"),
}


@asynccontextmanager
async def open_spawner(kind: str) -> AsyncGenerator[Spawner]:
    """Yield a spawner of children that run their task's code."""
    fresh = FreshSpawner([sys.executable, "-I", "-S", child_program.__file__])
    if kind == "fresh":
        yield fresh
        return
    notices: list[str] = []
    async with open_warm_spawner(
        preload=["json"],
        entry="tests.support.child_program:main",
        fallback=fresh,
        on_notice=notices.append,
    ) as warm:
        yield warm
    assert notices == []
