"""The ``write_file`` and ``patch`` tools: what is shown before is what is done after."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
import trio
from msgspec import Meta

from odek.errors import ToolError
from odek.tools.paths import Target
from odek.tools.seen_files import SeenFiles, stamp_of
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.trust.effects import Effects

if TYPE_CHECKING:
    from odek.tools.edit_plans import Change

__all__ = ["Edit", "PatchArguments", "PatchTool", "WriteFileArguments", "WriteFileTool"]

_PATH = Meta(description="File, relative to the workspace or absolute; ~ is home.")


class WriteFileArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole file."""

    path: Annotated[str, _PATH]
    content: Annotated[str, Meta(description="The whole new content, final newline included.")]


class WriteFileTool(Tool[WriteFileArguments]):
    """Writes whole files, but over nothing that changed since it was ``seen``.

    ``disk`` limits how many threads wait for the disk at once.
    """

    name: ClassVar[str] = "write_file"
    description: ClassVar[str] = (
        "Create a text file, or replace the whole content of one, as UTF-8. Missing directories are made; "
        "the mode of an existing file stays. A file that changed since you read it is not replaced: read it "
        "again. Use patch to change a part of a file."
    )
    arguments_type = WriteFileArguments
    json_texts: ClassVar[tuple[str, ...]] = ("content",)

    def __init__(self, workspace: Path, disk: trio.CapacityLimiter, seen: SeenFiles | None = None) -> None:
        self._workspace = workspace
        self._disk = disk
        self._seen = seen or SeenFiles()

    async def prepare(self, arguments: WriteFileArguments) -> PreparedCall:
        """Compare the content with what is there; see the base class."""
        from odek.tools.edit_plans import plan_write

        def plan() -> "Change":
            change = plan_write(arguments.path, arguments.content, self._workspace)
            target = change.snapshot.target
            if change.data != change.snapshot.data and self._seen.changed_since(target.resolved):
                raise ToolError(
                    f"{target.shown} was changed by somebody since you saw it; read it again first"
                )
            return change

        change = await trio.to_thread.run_sync(plan, limiter=self._disk)
        return _prepared(change, Effects(writes=change.snapshot.target.paths), self._disk, self._seen)


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One replacement."""

    old_text: Annotated[
        str, Meta(description="Text to replace, quoted from the file without line numbers; must be unique.")
    ]
    new_text: Annotated[str, Meta(description="What comes in its place; empty to delete.")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence.")] = False


class PatchArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replacements in one file."""

    path: Annotated[str, _PATH]
    edits: Annotated[
        list[Edit], Meta(min_length=1, description="Applied in order, each to the result of those before.")
    ]


class PatchTool(Tool[PatchArguments]):
    """Replaces passages of a file. ``disk`` limits how many threads wait for the disk at once.

    A file that was ``seen`` stays so.
    """

    name: ClassVar[str] = "patch"
    description: ClassVar[str] = (
        "Replace passages of an existing text file. All edits are applied, or none. An old_text that does "
        "not occur exactly is looked for without regard to which blanks, quotes and dashes it has, then as "
        "whole lines without regard to indentation and trailing blanks, and new_text is then indented to "
        "fit. Encoding, line ends and such characters of the file stay."
    )
    arguments_type = PatchArguments

    def __init__(self, workspace: Path, disk: trio.CapacityLimiter, seen: SeenFiles | None = None) -> None:
        self._workspace = workspace
        self._disk = disk
        self._seen = seen or SeenFiles()

    async def prepare(self, arguments: PatchArguments) -> PreparedCall:
        """Apply the edits in memory; see the base class."""
        from odek.tools.edit_plans import plan_patch
        from odek.tools.working_file import take

        take_file = partial(take, arguments.path, self._workspace, is_there=True)
        snapshot = await trio.to_thread.run_sync(take_file, limiter=self._disk)
        paths = snapshot.target.paths
        try:
            plan = partial(plan_patch, snapshot, arguments.edits)
            change = await trio.to_thread.run_sync(plan, limiter=self._disk)
        except ToolError as error:
            return _failing(snapshot.target, error)
        return _prepared(change, Effects(reads=paths, writes=paths), self._disk, self._seen, is_whole=False)


def _prepared(
    change: "Change",
    effects: Effects,
    disk: trio.CapacityLimiter,
    seen: SeenFiles,
    *,
    is_whole: bool = True,
) -> PreparedCall:
    """Return the call that makes ``change``; behind one that ``is_whole`` the agent knows the whole file."""
    target = change.snapshot.target

    def write() -> None:
        from odek.tools.working_file import replace

        is_known = is_whole or seen.knows(target.resolved)
        replace(change.snapshot, change.data)
        if is_known:
            seen.note(target.resolved, stamp_of(target.resolved))

    async def run(_scope: CallScope) -> ToolOutput:
        if change.data == change.snapshot.data:
            await trio.lowlevel.checkpoint()
            return ToolOutput(change.done)
        # Not abandoned on cancel: whether the file was written must be known.
        await trio.to_thread.run_sync(write, limiter=disk)
        return ToolOutput(change.done, changed=(target.shown,), diff=change.diff)

    return PreparedCall(target.shown, effects, run, change.diff)


def _failing(target: Target, error: ToolError) -> PreparedCall:
    """Return a call that only says why the edit fails.

    The reason quotes the file, so it is a read like any other and left for the policy to allow.
    """

    async def run(_scope: CallScope) -> ToolOutput:
        await trio.lowlevel.checkpoint()
        raise error

    return PreparedCall(target.shown, Effects(reads=target.paths), run)
