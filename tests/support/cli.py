"""The real command as a real process."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio

from tests.support.waiting import HANG_SECONDS

__all__ = ["STARTS_IN_ASCII", "Finished", "Odek", "Running"]

STARTS_IN_ASCII = pytest.mark.skipif(
    not (__file__ + sys.prefix).isascii(), reason="where this lies, Python does not start in an ASCII locale"
)
"""For tests that start Python in a locale of ASCII alone."""


class Finished(msgspec.Struct, frozen=True):
    """How a command ended, and what it wrote."""

    status: int
    stdout: str
    stderr: str

    @property
    def events(self) -> list[dict[str, object]]:
        """The lines of ``--json``."""
        return [msgspec.json.decode(line) for line in self.stdout.splitlines()]


class Running:
    """A command that still runs."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self.pid = process.pid
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._grown = trio.Event()
        self._streams_open = 2

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    async def wait(self) -> Finished:
        """Wait for the end."""
        with trio.fail_after(HANG_SECONDS):
            status = await self._process.wait()
            while self._streams_open:
                await self._grown.wait()
        return Finished(status, self.stdout.decode(), self.stderr.decode())

    async def wait_for(self, text: str) -> None:
        """Wait until the command has written ``text`` to stdout or stderr."""
        with trio.fail_after(HANG_SECONDS):
            while text.encode() not in self.stdout and text.encode() not in self.stderr:
                if not self._streams_open:
                    raise AssertionError(
                        f"{text!r} was not written: {self.stdout.decode()}{self.stderr.decode()}"
                    )
                await self._grown.wait()

    async def read_all(self, stream: trio.abc.ReceiveStream, into: bytearray) -> None:
        """Read ``stream`` to its end."""
        async with stream:
            async for data in stream:
                into += data
                self._wake()
        self._streams_open -= 1
        self._wake()

    def _wake(self) -> None:
        grown, self._grown = self._grown, trio.Event()
        grown.set()


class Odek:
    """The command with a home and a working directory of its own, and no terminal.

    ``environment`` starts from this process's, without anything that sets odek up.
    """

    def __init__(self, folder: Path, *, base_url: str = "") -> None:
        self.home = folder / "home"
        self.workspace = folder / "work"
        self.workspace.mkdir(exist_ok=True)
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ODEK_", "DEEPSEEK_", "OPENAI_"))
        }
        self.environment |= {"ODEK_HOME": str(self.home), "HOME": str(folder), "ODEK_DEBUG": ""}
        if base_url:
            self.environment |= {"ODEK_BASE_URL": base_url, "ODEK_MODEL": "test-model"}

    async def run(
        self, *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
    ) -> Finished:
        """Run a command to its end."""
        with trio.fail_after(HANG_SECONDS):
            done = await trio.run_process(
                [sys.executable, "-m", "odek", *arguments],
                stdin=stdin,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                cwd=self.workspace,
                env={**self.environment, **(environment or {})},
                start_new_session=True,
            )
        return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())

    async def talk(self, *lines: str, flags: Sequence[str] = ()) -> Finished:
        """Have a session of a turn for each of ``lines``, in one process."""
        return await self.run("repl", *flags, stdin="".join(f"{line}\n" for line in lines).encode())

    @asynccontextmanager
    async def start(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> AsyncGenerator[Running]:
        """Start a command; it is killed, alone, if it still runs when the block is left."""
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "odek", *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.workspace,
            env={**self.environment, **(environment or {})},
            start_new_session=True,
        )
        running = Running(process)
        assert process.stdout is not None
        assert process.stderr is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(running.read_all, process.stdout, running.stdout)
            nursery.start_soon(running.read_all, process.stderr, running.stderr)
            try:
                yield running
            finally:
                process.kill()
                with trio.CancelScope(shield=True):
                    await process.wait()
                nursery.cancel_scope.cancel()

    def sessions(self) -> list[Path]:
        """Return the session files."""
        return sorted((self.home / "sessions").glob("*.json"))
