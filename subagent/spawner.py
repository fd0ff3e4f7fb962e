"""How a child comes to be: as a fresh program, or as a fork of a warm one.

Either way it runs under a warden of its own, leads a session and process group of its
own, and speaks over its standard input and output.
"""

import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from subagent.process import ProcessTree, open_process_tree
from subagent.secret import open_secret, with_secret

__all__ = ["FreshSpawner", "Launch", "Spawner"]


class Launch(msgspec.Struct, frozen=True):
    """Where a child runs and what it is given at birth; ``env`` is its whole environment.

    ``secret``, at most 1 MiB, travels through a pipe that only the child can read.
    ``title`` is what ``ps`` shows of a forked child.
    """

    cwd: Path
    env: Mapping[str, str]
    title: str = "subagent"
    secret: bytes = b""


class Spawner(Protocol):
    """Starts children."""

    def open_child(self, launch: Launch) -> AbstractAsyncContextManager[ProcessTree]:
        """Yield a running child with three pipes; on exit it is ended with all that it started.

        Raises:
            ChildStartError: it could not be started.
        """


class FreshSpawner:
    """Runs a command for each child. Works everywhere; costs the start of an interpreter."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = tuple(argv)

    @asynccontextmanager
    async def open_child(self, launch: Launch) -> AsyncGenerator[ProcessTree]:
        """Yield a child that runs the command."""
        with open_secret(launch.secret) as descriptors:
            tree = open_process_tree(
                self._argv,
                cwd=launch.cwd,
                env=with_secret(launch.env, descriptors),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=descriptors,
            )
            async with tree as child:
                yield child
