"""System calls of a process, looked at and made to fail from outside, by strace."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

__all__ = ["Call", "ChangeHost", "can_trace", "open_change_host"]

ROOT = Path(__file__).parents[2]


class Call(msgspec.Struct, frozen=True):
    """A system call: the ``number``-th of its name, and the line that strace wrote of it."""

    name: str
    number: int
    line: str


def can_trace() -> bool:
    """Tell whether strace is there and may look at another process."""
    if shutil.which("strace") is None:
        return False
    sleeper = subprocess.Popen(["sleep", "30"])
    try:
        tracer = subprocess.run(
            ["timeout", "1", "strace", "-p", str(sleeper.pid)], capture_output=True, text=True, check=False
        )
    finally:
        sleeper.kill()
        sleeper.wait()
    return "attached" in tracer.stderr


class ChangeHost:
    """Runs changes in forks of a warm process, traced."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(self, change: str, directory: Path, *options: str) -> tuple[str, str]:
        """Make a change with strace attached; return how it ended and what strace wrote."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{change}\t{directory}\n")
        self._process.stdin.flush()
        pid = int(self._line())
        tracer = subprocess.Popen(
            ["strace", "-p", str(pid), *options], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )
        assert tracer.stderr is not None
        attached = tracer.stderr.readline()
        assert "attached" in attached, attached
        os.kill(pid, signal.SIGCONT)
        ended = self._line()
        _, written = tracer.communicate()
        return ended, written

    def calls(self, change: str, directory: Path, *options: str) -> list[Call]:
        """Make a change undisturbed and return its system calls."""
        ended, written = self.run(change, directory, *options)
        assert ended == "acknowledged", ended
        counts: Counter[str] = Counter()
        found: list[Call] = []
        for line in written.splitlines():
            if match := re.match(r"(\w+)\(", line):
                counts[match[1]] += 1
                found.append(Call(match[1], counts[match[1]], line))
        return found

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")


@contextmanager
def open_change_host() -> Iterator[ChangeHost]:
    """Start the host; it ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.memory_changes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield ChangeHost(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
