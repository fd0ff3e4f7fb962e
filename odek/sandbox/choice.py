"""Which sandbox works here: found out by running something in it."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from odek.config.settings import Config
from odek.errors import ConfigError
from odek.home import expanded
from odek.sandbox.boxes import Bubblewrap, Docker, Planted, Shown
from odek.sandbox.launcher import Launcher
from odek.text import clip_line
from subagent.errors import ChildError

__all__ = ["open_sandbox", "shown_by"]

PROBE_SECONDS = 20.0
"""For ``true`` in a sandbox: 0.1 s with bubblewrap, a second with docker. A busy machine takes longer."""

COMPLAINT_BYTES = 4096
COMPLAINT_WIDTH = 200


@asynccontextmanager
async def open_sandbox(
    config: Config, shown: Shown, environment: Mapping[str, str], warn: Callable[[str], None]
) -> AsyncGenerator[Bubblewrap | Docker]:
    """Yield what runs commands in a sandbox; it has run one already.

    Args:
        config: Says which kind of sandbox.
        shown: What it shows.
        environment: Of the commands; the sandbox's program is found by its ``PATH``.
        warn: Told in a line what was undone in the workspace.

    Raises:
        ConfigError: no sandbox works here; says why not, in one line.
    """
    planted = Planted(warn)
    try:
        yield await _first_that_works(config, shown, environment, planted)
    finally:
        planted.sweep()  # what was left running may have worked until now


def shown_by(config: Config, *, workspace: Path, home: Path, odek_home: Path) -> Shown:
    """Return what a sandbox is to show by the person's settings.

    Raises:
        ConfigError: a path of ``sandbox_readable`` is not absolute.
    """
    readable = [expanded(path) for path in config.sandbox_readable]
    for path in readable:
        if not path.is_absolute():
            raise ConfigError(f"sandbox_readable: {path} is not absolute; write it from / or ~")
    return Shown(
        workspace=workspace,
        home=home,
        odek_home=odek_home,
        readable=tuple(readable),
        read_only=config.sandbox_readonly,
        network=config.sandbox_network == "allowed",
    )


async def _first_that_works(
    config: Config, shown: Shown, environment: Mapping[str, str], planted: Planted
) -> Bubblewrap | Docker:
    reasons: list[str] = []
    for kind in (Bubblewrap, Docker):
        if config.sandbox_backend not in ("auto", kind.name):
            continue
        program = find_program("bwrap" if kind is Bubblewrap else "docker", environment, shown.workspace)
        if program is None:
            reasons.append(f"{kind.name} is not installed")
            continue
        if kind is Bubblewrap:
            launcher: Bubblewrap | Docker = Bubblewrap(program, shown, planted)
        elif config.sandbox_image:
            launcher = Docker(program, config.sandbox_image, shown, planted)
        else:
            reasons.append("docker needs an image, and sandbox_image names none")
            continue
        problem = await _problem_of(launcher, shown.workspace, environment)
        if problem is None:
            return launcher
        reasons.append(f"{kind.name} does not work ({problem})")
    raise ConfigError(f"sandbox is set, and there is none here: {'; '.join(reasons)}. Nothing was run")


async def _problem_of(launcher: Launcher, workspace: Path, environment: Mapping[str, str]) -> str | None:
    """Run ``true`` in a sandbox; return why that does not work, or None when it does."""
    output = b""
    with trio.move_on_after(PROBE_SECONDS):
        try:
            async with launcher.open("true", cwd=workspace, env=environment) as tree:
                status = await tree.wait_exited()
                while status != 0 and tree.stdout is not None and len(output) < COMPLAINT_BYTES:
                    chunk = await tree.stdout.receive_some(COMPLAINT_BYTES)
                    if not chunk:
                        break
                    output += chunk
        except ChildError as error:
            return clip_line(str(error), COMPLAINT_WIDTH)
        lines = output.decode("utf-8", "replace").strip().splitlines()
        return (
            None
            if status == 0
            else clip_line(lines[0] if lines else f"exit status {status}", COMPLAINT_WIDTH)
        )
    return f"no answer within {PROBE_SECONDS:g} s"


def find_program(name: str, environment: Mapping[str, str], workspace: Path) -> str | None:
    """Return the path of a program, never one that the workspace brings; None if there is none."""
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        path = Path(folder, name)
        if not path.is_absolute() or not os.access(path, os.X_OK) or path.is_dir():
            continue
        if not any(place.is_relative_to(workspace) for place in (path, path.resolve())):
            return str(path)
    return None
