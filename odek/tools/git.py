"""Git, run so that nothing in the directory that it looks at decides which programs run."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import trio

from odek.errors import ToolError
from subagent.errors import ChildError
from subagent.process import open_process_tree

__all__ = ["GitOutput", "private_git", "run_git", "with_git_settings", "without_repository"]

GIT_SETTINGS = {"safe.bareRepository": "explicit", "core.fsmonitor": "false"}
"""What git would run from a folder's own configuration, kept from running."""

PRIVATE_SETTINGS = {**GIT_SETTINGS, "core.hooksPath": os.devnull, "core.safecrlf": "false"}
"""For git commands that nobody asked for: no hook runs, and no line ending is a reason to fail."""

REPOSITORY_VARIABLES = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
)
"""They name a repository, whatever the directory; git sets them for its hooks and aliases."""

STDERR_BYTES = 64 * 1024
"""Kept of what git complains about."""

CHUNK_BYTES = 65_536


class GitOutput(msgspec.Struct, frozen=True):
    """What git wrote and how it ended; ``status`` is negative for a signal.

    ``stdout`` that is ``cut`` is only the beginning; git was ended there.
    """

    status: int
    stdout: bytes
    stderr: str
    cut: bool = False

    @property
    def complaint(self) -> str:
        """The line that says why it failed."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        fatal = [line.removeprefix("fatal: ") for line in lines if line.startswith("fatal: ")]
        return (fatal or lines or [f"exit status {self.status}"])[0]


def with_git_settings(
    environment: Mapping[str, str], settings: Mapping[str, str] = GIT_SETTINGS
) -> dict[str, str]:
    """Return ``environment`` with settings for git that count more than any file's.

    A folder that looks like a bare repository carries a configuration of its own, and git
    would run its file system monitor on a mere ``git status``. Settings that are given by
    the environment already stay.
    """
    given = environment.get("GIT_CONFIG_COUNT", "0")
    first = int(given) if given.isdigit() else 0
    variables = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (key, value) in enumerate(settings.items(), first):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {**environment, **variables}


def without_repository(environment: Mapping[str, str]) -> dict[str, str]:
    """Return ``environment`` without what ties git to one repository."""
    return {name: value for name, value in environment.items() if name not in REPOSITORY_VARIABLES}


def private_git(environment: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for git commands of our own.

    No hook and no file system monitor runs, nothing is fetched, and git speaks English.
    """
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith("GIT_")
        or name in {"GIT_CEILING_DIRECTORIES", "GIT_EXEC_PATH"}
        or (name.startswith("GIT_CONFIG_") and name != "GIT_CONFIG_PARAMETERS")
    }
    return with_git_settings(
        kept | {"LC_ALL": "C", "GIT_ALLOW_PROTOCOL": "none", "GIT_OPTIONAL_LOCKS": "0"},
        {**PRIVATE_SETTINGS, **settings},
    )


async def run_git(
    arguments: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    timeout_seconds: float,
    limit_bytes: int,
    stdin: bytes = b"",
) -> GitOutput:
    """Run git to its end, or until it has written more than ``limit_bytes``.

    Raises:
        ToolError: there is no git, or it takes too long.
    """
    import shutil
    import subprocess

    if shutil.which("git", path=environment.get("PATH", os.defpath)) is None:
        raise ToolError("git is not installed: it is not in PATH")
    stdout, stderr, status, cut = bytearray(), bytearray(), None, False
    try:
        with trio.move_on_after(timeout_seconds):
            async with open_process_tree(
                ["git", *arguments],
                cwd=cwd,
                env=environment,
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as tree:
                their_stdin, their_stdout, their_stderr = tree.pipes()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_send, their_stdin, stdin)
                    nursery.start_soon(_keep, their_stderr, stderr, STDERR_BYTES)
                    await _keep(their_stdout, stdout, limit_bytes + 1, stop=True)
                    if cut := len(stdout) > limit_bytes:
                        nursery.cancel_scope.cancel()
                status = 0 if cut else await tree.wait_exited()
    except ChildError as error:
        raise ToolError(f"git cannot be run: {error}") from error
    if status is None:
        raise ToolError(f"`git {arguments[0]}` did not end within {timeout_seconds:g} s")
    return GitOutput(status, bytes(stdout[:limit_bytes]), stderr.decode("utf-8", "replace"), cut)


async def _send(stream: trio.abc.SendStream, data: bytes) -> None:
    with suppress(trio.BrokenResourceError):  # it has ended without it, and says why
        await stream.send_all(data)
    await stream.aclose()


async def _keep(
    stream: trio.abc.ReceiveStream, into: bytearray, limit_bytes: int, *, stop: bool = False
) -> None:
    """Read ``stream`` to its end and keep the beginning, or ``stop`` once that is there."""
    while chunk := await stream.receive_some(CHUNK_BYTES):
        into += chunk[: limit_bytes - len(into)]
        if stop and len(into) == limit_bytes:
            return
