"""The ``glob`` and ``tree`` tools: which files there are."""

from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import trio
from msgspec import Meta

from odek.tools.paths import shown_name
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.trust.effects import Effects

__all__ = ["GlobArguments", "GlobTool", "TreeArguments", "TreeTool"]

_PATH = Meta(description="Directory, relative to the workspace or absolute; ~ is home.")


class GlobArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which names to look for."""

    pattern: Annotated[
        str,
        Meta(
            description="Such as *.py (any depth), src/**/*.ts, docs/*.{md,rst}; a final / finds directories."
        ),
    ]
    path: Annotated[str, _PATH] = "."


class GlobTool(Tool[GlobArguments]):
    """Finds files by name. ``disk`` limits how many threads wait for the disk at once."""

    name: ClassVar[str] = "glob"
    description: ClassVar[str] = (
        "List files whose path below a directory matches a pattern with *, ?, **, [abc] and {a,b}, sorted "
        "and as read_file takes them. Files that git ignores are left out, hidden ones are not; pipes, "
        "sockets and devices are marked."
    )
    arguments_type = GlobArguments

    def __init__(self, workspace: Path, disk: trio.CapacityLimiter) -> None:
        self._workspace = workspace
        self._disk = disk

    async def prepare(self, arguments: GlobArguments) -> PreparedCall:
        """Check the pattern; see the base class."""
        from odek.tools.directory_listing import glob, locate_directory
        from odek.tools.globs import Glob

        pattern = Glob(arguments.pattern)
        find = partial(locate_directory, arguments.path, self._workspace)
        target = await trio.to_thread.run_sync(find, limiter=self._disk)
        directories = arguments.pattern.endswith("/")

        async def run(_scope: CallScope) -> ToolOutput:
            look = partial(glob, target, pattern, self._workspace, directories=directories)
            return ToolOutput(await trio.to_thread.run_sync(look, limiter=self._disk))

        summary = f"{shown_name(arguments.pattern)} in {target.shown}"
        return PreparedCall(summary, Effects(reads=target.paths), run)


class TreeArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which directory to show."""

    path: Annotated[str, _PATH] = "."
    depth: Annotated[int, Meta(ge=1, le=20, description="Levels to show.")] = 3


class TreeTool(Tool[TreeArguments]):
    """Shows a directory tree. ``disk`` limits how many threads wait for the disk at once."""

    name: ClassVar[str] = "tree"
    description: ClassVar[str] = (
        "Show the tree of a directory, one entry a line, indented by depth, directories first and with a "
        "final /. What git ignores is left out and counted."
    )
    arguments_type = TreeArguments

    def __init__(self, workspace: Path, disk: trio.CapacityLimiter) -> None:
        self._workspace = workspace
        self._disk = disk

    async def prepare(self, arguments: TreeArguments) -> PreparedCall:
        """Find the directory; see the base class."""
        from odek.tools.directory_listing import locate_directory, tree

        find = partial(locate_directory, arguments.path, self._workspace)
        target = await trio.to_thread.run_sync(find, limiter=self._disk)

        async def run(_scope: CallScope) -> ToolOutput:
            look = partial(tree, target, arguments.depth, self._workspace)
            return ToolOutput(await trio.to_thread.run_sync(look, limiter=self._disk))

        return PreparedCall(target.shown, Effects(reads=target.paths), run)
