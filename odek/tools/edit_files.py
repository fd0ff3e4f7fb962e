"""The ``write_file`` and ``patch`` tools: what is shown before is what is done after."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import trio
from msgspec import Meta

from odek.errors import ToolError
from odek.tools.diffs import count_changes, unified_diff
from odek.tools.matching import replace_passage
from odek.tools.paths import Target
from odek.tools.textfile import binary_kind, decode_text, encode_text
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.tools.working_file import Snapshot, replace, take
from odek.trust.effects import Effects

__all__ = ["Edit", "PatchArguments", "PatchTool", "WriteFileArguments", "WriteFileTool"]

_PATH = Meta(description="File, relative to the workspace or absolute; ~ is home.")


class _Change(msgspec.Struct, frozen=True):
    """What an edit is going to do: the new bytes, the diff, and the sentence for the model."""

    snapshot: Snapshot
    data: bytes
    diff: str
    done: str


class WriteFileArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole file."""

    path: Annotated[str, _PATH]
    content: Annotated[str, Meta(description="The whole new content, final newline included.")]


class WriteFileTool(Tool[WriteFileArguments]):
    """Writes whole files. ``disk`` limits how many threads wait for the disk at once."""

    name: ClassVar[str] = "write_file"
    description: ClassVar[str] = (
        "Create a text file, or replace the whole content of one, as UTF-8. Missing directories are made; "
        "the mode of an existing file stays. Use patch to change a part of a file."
    )
    arguments_type = WriteFileArguments

    def __init__(self, workspace: Path, disk: trio.CapacityLimiter) -> None:
        self._workspace = workspace
        self._disk = disk

    async def prepare(self, arguments: WriteFileArguments) -> PreparedCall:
        """Compare the content with what is there; see the base class."""
        plan = partial(_plan_write, arguments, self._workspace)
        change = await trio.to_thread.run_sync(plan, limiter=self._disk)
        return _prepared(change, Effects(writes=change.snapshot.target.paths), self._disk)


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
    """Replaces passages of a file. ``disk`` limits how many threads wait for the disk at once."""

    name: ClassVar[str] = "patch"
    description: ClassVar[str] = (
        "Replace passages of an existing text file. All edits are applied, or none. An old_text that does "
        "not occur exactly is looked for as whole lines without regard to indentation and trailing blanks, "
        "and new_text is then indented to fit. Encoding and line ends of the file stay."
    )
    arguments_type = PatchArguments

    def __init__(self, workspace: Path, disk: trio.CapacityLimiter) -> None:
        self._workspace = workspace
        self._disk = disk

    async def prepare(self, arguments: PatchArguments) -> PreparedCall:
        """Apply the edits in memory; see the base class."""
        take_file = partial(take, arguments.path, self._workspace)
        snapshot = await trio.to_thread.run_sync(take_file, limiter=self._disk)
        paths = snapshot.target.paths
        try:
            plan = partial(_plan_patch, snapshot, arguments.edits)
            change = await trio.to_thread.run_sync(plan, limiter=self._disk)
        except ToolError as error:
            return _failing(snapshot.target, error)
        return _prepared(change, Effects(reads=paths, writes=paths), self._disk)


def _prepared(change: _Change, effects: Effects, disk: trio.CapacityLimiter) -> PreparedCall:
    target = change.snapshot.target

    async def run(_scope: CallScope) -> ToolOutput:
        if change.data == change.snapshot.data:
            await trio.lowlevel.checkpoint()
            return ToolOutput(change.done)
        # Not abandoned on cancel: whether the file was written must be known.
        await trio.to_thread.run_sync(replace, change.snapshot, change.data, limiter=disk)
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


def _plan_write(arguments: WriteFileArguments, workspace: Path) -> _Change:
    snapshot = take(arguments.path, workspace)
    shown = snapshot.target.shown
    try:
        data = arguments.content.encode()
    except UnicodeEncodeError:
        raise ToolError(
            "write_file: content holds half of a surrogate pair, which no file can hold"
        ) from None
    lines = arguments.content.count("\n") + (not arguments.content.endswith("\n") and data != b"")
    size = f"{lines:,} {'line' if lines == 1 else 'lines'}, {len(data):,} bytes"
    if snapshot.data is None:
        diff = unified_diff(None, arguments.content, shown)
        return _Change(snapshot, data, diff, f"created {shown}: {size}")
    if snapshot.data == data:
        return _Change(snapshot, data, "", f"{shown} already has exactly this content; nothing was written")
    old, codec = _text_or_note(snapshot.data)
    diff = unified_diff(old, arguments.content, shown)
    notes = [f"replaced {shown}: {size}"]
    if codec == "binary":
        diff = f"{shown}: {old} is replaced by text\n{unified_diff(None, arguments.content, shown)}"
    else:
        notes[0] += f" ({count_changes(diff)} lines)"
        if codec != "utf-8":
            notes.append(f"its encoding was {codec} and is now utf-8")
        if "\r\n" in old and "\r\n" not in arguments.content:
            notes.append("its line ends were CRLF and are now LF")
    return _Change(snapshot, data, diff, "; ".join(notes))


def _text_or_note(data: bytes) -> tuple[str, str]:
    """Return (text, codec), or (what it is, "binary")."""
    kind = binary_kind(data)
    try:
        text, codec = decode_text(data)
    except ValueError:
        return f"binary data ({len(data):,} bytes)", "binary"
    if kind and not codec.startswith(("utf-16", "utf-32")):
        return f"{kind} ({len(data):,} bytes)", "binary"
    return text, codec


def _plan_patch(snapshot: Snapshot, edits: Sequence[Edit]) -> _Change:
    shown = snapshot.target.shown
    if snapshot.data is None:
        raise ToolError(f"{shown} does not exist; write_file creates files")
    before, codec = _text_or_note(snapshot.data)
    if codec == "binary":
        raise ToolError(f"{shown} is {before}, not text; patch changes text only")
    text, count, tolerant = before, 0, []
    for number, edit in enumerate(edits, 1):
        try:
            result = replace_passage(text, edit.old_text, edit.new_text, replace_all=edit.replace_all)
        except ToolError as error:
            place = f"edit {number} of {len(edits)}, " if len(edits) > 1 else ""
            raise ToolError(f"{shown} is unchanged: {place}{error}") from None
        text, count = result.text, count + result.count
        tolerant += [str(number)] if result.tolerant else []
    if text == before:
        raise ToolError(f"{shown} is unchanged: the edits together change nothing")
    try:
        data = encode_text(text, codec)
    except UnicodeEncodeError as error:
        wrong = ascii(error.object[error.start : error.start + 1])
        raise ToolError(f"{shown} is unchanged: its encoding, {codec}, has no character {wrong}") from None
    diff = unified_diff(before, text, shown)
    done = f"patched {shown}: {count} {'place' if count == 1 else 'places'}, {count_changes(diff)} lines"
    if tolerant:
        done += f"; edit {', '.join(tolerant)} matched without regard to indentation"
    return _Change(snapshot, data, diff, done)
