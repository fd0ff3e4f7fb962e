"""Where the commands of the model run. A ``Launcher`` starts them, each with a warden of its own."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from subagent.process import ProcessTree, open_process_tree

__all__ = ["Here", "Launcher", "shell_on"]


class Launcher(Protocol):
    """Starts command lines by the shell.

    ``place`` says in words where, "" for simply here; ``told`` what the model should know of it.
    """

    @property
    def place(self) -> str: ...  # noqa: D102 - as the class says
    @property
    def told(self) -> str: ...  # noqa: D102

    def open(
        self, command: str, *, cwd: Path, env: Mapping[str, str]
    ) -> AbstractAsyncContextManager[ProcessTree]:
        """Yield the running command; when the block is left, nothing that it started is.

        Its output and errors are one pipe, and it has no input.

        Raises:
            ChildStartError: it cannot be started.
        """


class Here:
    """Runs commands as the person would."""

    place = ""
    told = ""

    @asynccontextmanager
    async def open(self, command: str, *, cwd: Path, env: Mapping[str, str]) -> AsyncGenerator[ProcessTree]:
        """Yield the running command."""
        argv = [shell_on(env.get("PATH", os.defpath)), "-c", command]
        async with open_process_tree(argv, cwd=cwd, env=env) as tree:
            yield tree


def shell_on(path: str) -> str:
    """Return bash where there is one on ``path``, else the system's sh."""
    import shutil

    return "bash" if shutil.which("bash", path=path) else "/bin/sh"
