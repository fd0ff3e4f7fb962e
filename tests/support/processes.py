"""Looking at real processes from outside: who lives, who is a zombie, what is open."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

__all__ = ["ESCAPES", "SLEEPER", "Marked", "has_open", "open_descriptors", "zombie_children"]

_DAEMON = (
    "python3 -c 'import os, time\n"
    "if pid := os.fork(): os._exit(os.waitpid(pid, 0)[1])\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "time.sleep(300)'"
)

SLEEPER = 'sleep 300 & until read -r name < /proc/$!/comm && [ "$name" = sleep ]; do :; done'
"""A shell command that leaves a process which is ``sleep`` already, and no copy of its shell any more."""

ESCAPES = {
    "plain child": "sleep 300 & touch up; wait",
    "orphan": "(sleep 300 &) ; touch up; sleep 300",
    "session of its own": "setsid sleep 300 & touch up; sleep 300",
    "orphan in a session of its own": "setsid -f sleep 300; touch up; sleep 300",
    "double fork": f"{_DAEMON}; touch up; sleep 300",
    "deaf to SIGTERM": "trap '' TERM; sleep 300 & touch up; while :; do sleep 300; done",
    "deaf in a session of its own": (
        "setsid bash -c \"trap '' TERM HUP INT; touch up; sleep 300; sleep 300\" & wait"
    ),
    "stopped": "sleep 300 & kill -STOP $!; touch up; wait",
    "nohup": "nohup sleep 300 >/dev/null 2>&1 & touch up; sleep 300",
    "chain": 'bash -c \'bash -c "setsid bash -c \\"touch up; sleep 300; :\\"; :"; :\'',
    "orphan without environment": "env -i setsid -f sleep 300; touch up; sleep 300",
    "respawning": "while :; do setsid -f sleep 300; touch up; sleep 0.02; done",
}
"""Shell commands, each with another way to outlive whoever started it.

Each makes the file ``up`` once its processes have got away as far as they can.
"""


class Marked:
    """The living processes of one test, however they try to hide.

    They bear a mark in their environment, so give ``environment`` to what is started, or
    work in a watched directory, or have been seen below such a process.
    """

    def __init__(self) -> None:
        self._text = f"ODEK_TEST_MARK={uuid4().hex}".encode()
        self._directories: set[Path] = set()
        self._seen: dict[int, bytes] = {}

    def watch(self, directory: Path) -> None:
        """Count whoever works in ``directory`` too."""
        self._directories.add(directory.resolve())

    @property
    def environment(self) -> dict[str, str]:
        """This process's environment and the mark."""
        name, _, value = self._text.decode().partition("=")
        return {**os.environ, name: value}

    def living(self) -> set[int]:
        """Return the pids; zombies do not count."""
        table = _process_table()
        marked = {pid for pid in table if self._is_marked(pid)}
        grew = True
        while grew:
            below = {pid for pid, (parent, _) in table.items() if parent in marked}
            grew = not below <= marked
            marked |= below
        for pid in marked:
            self._seen[pid] = table[pid][1]
        return {pid for pid, born in self._seen.items() if pid in table and table[pid][1] == born}

    def _is_marked(self, pid: int) -> bool:
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
            directory = Path(f"/proc/{pid}/cwd").readlink()
        except OSError:  # gone since the listing
            return False
        return self._text in environ.split(b"\0") or directory in self._directories


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


def zombie_children() -> list[int]:
    """Return the dead children of this process that nobody has reaped."""
    return [pid for pid, fields in _stats() if fields[0] == b"Z" and int(fields[1]) == os.getpid()]


def has_open(pid: int, folder: Path) -> bool:
    """Tell whether a process has a file below ``folder`` open."""
    try:
        links = [each.readlink() for each in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:  # gone, or its files are
        return False
    return any(link.is_relative_to(folder) for link in links)


def open_descriptors() -> frozenset[tuple[int, str]]:
    """Return the file descriptors that this process has open, each with what it leads to.

    Compare by ``<=``: what was left to the garbage collector before may be closed meanwhile.
    """
    found: set[tuple[int, str]] = set()
    for number in list(Path("/proc/self/fd").iterdir()):
        with suppress(FileNotFoundError):  # that of the list itself
            found.add((int(number.name), str(number.readlink())))
    return frozenset(found)
