"""Looking at real processes from outside: who lives, who is a zombie, what is open."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import trio

__all__ = ["ESCAPES", "Marked", "open_descriptors", "wait_until", "zombie_children"]

_DAEMON = (
    "python3 -c 'import os, time\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "time.sleep(300)'"
)

ESCAPES = {
    "plain child": "sleep 300 & wait",
    "left behind": "(sleep 300 &) ; sleep 300",
    "setsid": "setsid sleep 300 & sleep 300",
    "double fork": f"{_DAEMON}; sleep 300",
    "deaf to SIGTERM": "trap '' TERM; sleep 300 & while :; do sleep 300; done",
    "deaf in a session of its own": "setsid bash -c \"trap '' TERM HUP INT; sleep 300; sleep 300\" & wait",
    "stopped": "sleep 300 & kill -STOP $!; wait",
    "nohup": "nohup sleep 300 >/dev/null 2>&1 & sleep 300",
    "chain": 'bash -c \'bash -c "setsid bash -c \\"sleep 300; :\\"; :"; :\'',
    "without environment": "env -i setsid sleep 300 & sleep 300",
    "respawning": "while :; do setsid sleep 300 & sleep 0.02; done",
}
"""Shell commands, each with another way to outlive whoever started it."""


class Marked:
    """The living processes whose environment bears a mark of their own, and their descendants.

    Give ``environment`` to what is started. Descendants that lose the mark are followed
    for as long as they have been seen below a marked process.
    """

    def __init__(self) -> None:
        self._text = f"ODEK_TEST_MARK={uuid4().hex}".encode()
        self._seen: dict[int, bytes] = {}

    @property
    def environment(self) -> dict[str, str]:
        """This process's environment and the mark."""
        name, _, value = self._text.decode().partition("=")
        return {**os.environ, name: value}

    def living(self) -> set[int]:
        """Return the pids; zombies do not count."""
        table = _process_table()
        marked = {pid for pid in table if self._text in _environ(pid).split(b"\0")}
        grew = True
        while grew:
            below = {pid for pid, (parent, _) in table.items() if parent in marked}
            grew = not below <= marked
            marked |= below
        for pid in marked:
            self._seen[pid] = table[pid][1]
        return {pid for pid, born in self._seen.items() if pid in table and table[pid][1] == born}


def _process_table() -> dict[int, tuple[int, bytes]]:
    """Return pid → (parent, time of birth) of every process that is not a zombie."""
    table: dict[int, tuple[int, bytes]] = {}
    for pid, fields in _stats():
        if fields[0] not in b"ZX":
            table[pid] = int(fields[1]), fields[19]
    return table


def _stats() -> Iterator[tuple[int, list[bytes]]]:
    """Yield (pid, fields of its ``stat`` from the state on) of every process."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # gone since the listing
            yield int(path.parent.name), path.read_bytes().rpartition(b") ")[2].split()


def _environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def zombie_children() -> list[int]:
    """Return the dead children of this process that nobody has reaped."""
    return [pid for pid, fields in _stats() if fields[0] == b"Z" and int(fields[1]) == os.getpid()]


def open_descriptors() -> int:
    """Return how many file descriptors this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def wait_until(condition: Callable[[], bool], *, seconds: float) -> None:
    """Return as soon as something outside this program is true.

    Raises:
        trio.TooSlowError: it is not, after ``seconds``.
    """
    with trio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110 - the kernel sets no event
            await trio.sleep(0.01)
