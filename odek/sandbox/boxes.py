"""The sandboxes: bubblewrap, or a container of docker, for each command."""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

import msgspec
import trio

from odek.errors import ConfigError, StoreError
from odek.sandbox.bubblewrap import bubblewrap_argv, inside_environment
from odek.sandbox.docker import Container, docker_argv, passed_variables
from odek.sandbox.launcher import shell_on
from odek.sandbox.mounts import View, kernel_mounts, system_mounts, view_of
from odek.storage.files import ensure_directory
from odek.storage.trees import remove_tree
from subagent import warden
from subagent.enclosure import open_enclosed_tree
from subagent.errors import ChildStartError
from subagent.process import ProcessTree, open_process_tree

__all__ = ["Bubblewrap", "Docker", "Planted", "Shown"]

IN_THE_SANDBOX = "in the sandbox"

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What a sandbox shows of the person's files, and whether of the network."""

    workspace: Path
    home: Path
    odek_home: Path
    readable: tuple[Path, ...] = ()
    read_only: bool = False
    network: bool = False

    @property
    def words(self) -> str:
        """All of it, for the person."""
        network = "network allowed" if self.network else "no network"
        return f"{network}, the workspace {'only to read' if self.read_only else 'to write'}"

    @property
    def told(self) -> str:
        """All of it, for the model."""
        network = (
            ""
            if self.network
            else "There is no network: start a server and use it in one and the same command. "
        )
        workspace = (
            "can only be read" if self.read_only else "can be changed, but for .git/config and .git/hooks"
        )
        return (
            f" Commands run in a sandbox. {network}Beside system programs they see the workspace, which "
            f"{workspace}; home and /tmp are empty and do not last from one command to the next, and neither "
            "does a command see the processes of another."
        )

    def view(self, programs: tuple[Path, ...]) -> View:
        """Return the mounts as the disk is now, ``programs`` among them. Blocking.

        Raises:
            ConfigError: what is to be shown is not there.
        """
        view = view_of(
            self.workspace,
            home=self.home,
            odek_home=self.odek_home,
            programs=programs,
            readable=self.readable,
            read_only=self.read_only,
        )
        for folder in view.made:
            ensure_directory(folder)
        return view


class Planted:
    """Watches for files that commands make to have git obey them outside of the sandbox."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._watched: set[Path] = set()

    def watch(self, view: View) -> None:
        """Have what must stay absent in ``view`` removed by each ``sweep``."""
        self._watched.update(view.must_stay_absent)

    def sweep(self) -> None:
        """Remove what was planted, and say so. Blocking, a moment."""
        for path in sorted(filter(os.path.lexists, self._watched)):
            try:
                remove_tree(path)
            except StoreError as error:
                self._warn(f"a command in the sandbox made {path}, which git would obey, and {error}")
            else:
                self._warn(f"removed {path}, which a command in the sandbox made and git would have obeyed")


class Bubblewrap:
    """Runs each command in a sandbox of namespaces. ``state`` is a line for the person."""

    name = "bubblewrap"
    place = IN_THE_SANDBOX

    def __init__(self, program: str, shown: Shown, planted: Planted) -> None:
        self._interpreter = Path(sys.executable).resolve()  # without site packages it needs no more
        self._guard = Path(warden.__file__).resolve()
        self._program = program
        self._shown = shown
        self._planted = planted
        self.told = shown.told
        self.state = f"commands run in a sandbox ({self.name}): {shown.words}"

    @asynccontextmanager
    async def open(self, command: str, *, cwd: Path, env: Mapping[str, str]) -> AsyncGenerator[ProcessTree]:
        """Yield the running command."""
        view = await _view(self._shown, (Path(sys.base_prefix), self._interpreter, self._guard))
        self._planted.watch(view)
        enclosure = bubblewrap_argv(
            self._program,
            [str(self._interpreter), "-I", "-S", str(self._guard)],
            view,
            system=system_mounts(network=self._shown.network),
            kernel=kernel_mounts(),
            network=self._shown.network,
        )
        argv = [shell_on(SYSTEM_PATH), "-c", command]
        try:
            async with open_enclosed_tree(enclosure, argv, cwd=cwd, env=inside_environment(env)) as tree:
                yield tree
        finally:
            self._planted.sweep()


class Docker:
    """Runs each command in a container of its own; what it leaves running ends with it.

    ``state`` is a line for the person.
    """

    name = "docker"
    place = IN_THE_SANDBOX

    def __init__(self, program: str, image: str, shown: Shown, planted: Planted) -> None:
        self._program = program
        self._image = image
        self._shown = shown
        self._planted = planted
        self.told = shown.told
        self.state = f"commands run in a sandbox ({self.name}): {shown.words}"

    @asynccontextmanager
    async def open(self, command: str, *, cwd: Path, env: Mapping[str, str]) -> AsyncGenerator[ProcessTree]:
        """Yield the running command; its ``pid`` is that of docker's client."""
        view = await _view(self._shown, ())
        self._planted.watch(view)
        argv = docker_argv(
            self._program,
            command,
            view,
            Container(self._image, f"odek-{uuid4().hex[:12]}", (os.getuid(), os.getgid()), cwd),
            variables=passed_variables(env),
            network=self._shown.network,
        )
        try:
            # The input stays open as long as we live: see the script of the container.
            async with open_process_tree(argv, cwd=Path("/"), env=env, stdin=subprocess.PIPE) as tree:
                yield tree
        finally:
            self._planted.sweep()


async def _view(shown: Shown, programs: tuple[Path, ...]) -> View:
    try:
        return await trio.to_thread.run_sync(partial(shown.view, programs))
    except (ConfigError, StoreError) as error:
        raise ChildStartError(str(error)) from error
