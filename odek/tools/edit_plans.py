"""What an edit is going to do, worked out without doing it; loaded by the first call of either tool."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from odek.errors import ToolError
from odek.tools.diffs import count_changes, unified_diff
from odek.tools.matching import replace_passage
from odek.tools.textfile import binary_kind, decode_text, encode_text
from odek.tools.working_file import Snapshot, take

if TYPE_CHECKING:
    from odek.tools.edit_files import Edit

__all__ = ["Change", "plan_patch", "plan_write"]


class Change(msgspec.Struct, frozen=True):
    """What an edit is going to do: the new bytes, the diff, and the sentence for the model."""

    snapshot: Snapshot
    data: bytes
    diff: str
    done: str


def plan_write(path: str, content: str, workspace: Path) -> Change:
    """Return what writing ``content`` to ``path`` does. Blocking.

    Raises:
        ToolError: it cannot be done; nothing is.
    """
    snapshot = take(path, workspace)
    shown = snapshot.target.shown
    try:
        data = content.encode()
    except UnicodeEncodeError:
        raise ToolError(
            "write_file: content holds half of a surrogate pair, which no file can hold"
        ) from None
    lines = content.count("\n") + (not content.endswith("\n") and data != b"")
    size = f"{lines:,} {'line' if lines == 1 else 'lines'}, {len(data):,} bytes"
    if snapshot.data is None:
        diff = unified_diff(None, content, shown)
        return Change(snapshot, data, diff, f"created {shown}: {size}")
    if snapshot.data == data:
        return Change(snapshot, data, "", f"{shown} already has exactly this content; nothing was written")
    old, codec = _text_or_note(snapshot.data)
    diff = unified_diff(old, content, shown)
    notes = [f"replaced {shown}: {size}"]
    if codec == "binary":
        diff = f"{shown}: {old} is replaced by text\n{unified_diff(None, content, shown)}"
    else:
        notes[0] += f" ({count_changes(diff)} lines)"
        if codec != "utf-8":
            notes.append(f"its encoding was {codec} and is now utf-8")
        if "\r\n" in old and "\r\n" not in content:
            notes.append("its line ends were CRLF and are now LF")
    return Change(snapshot, data, diff, "; ".join(notes))


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


def plan_patch(snapshot: Snapshot, edits: Sequence["Edit"]) -> Change:
    """Return what ``edits`` do to a file, each to the result of those before.

    Raises:
        ToolError: one of them cannot be done; none is.
    """
    shown = snapshot.target.shown
    if snapshot.data is None:
        raise ToolError(f"{shown} does not exist; write_file creates files")
    before, codec = _text_or_note(snapshot.data)
    if codec == "binary":
        raise ToolError(f"{shown} is {before}, not text; patch changes text only")
    text, count, inexact = before, 0, list[str]()
    for number, edit in enumerate(edits, 1):
        try:
            result = replace_passage(text, edit.old_text, edit.new_text, replace_all=edit.replace_all)
        except ToolError as error:
            place = f"edit {number} of {len(edits)}, " if len(edits) > 1 else ""
            raise ToolError(f"{shown} is unchanged: {place}{error}") from None
        text, count = result.text, count + result.count
        if result.ignored:
            inexact.append(f"edit {number} matched without regard to {result.ignored}")
    if text == before:
        raise ToolError(f"{shown} is unchanged: the edits together change nothing")
    try:
        data = encode_text(text, codec)
    except UnicodeEncodeError as error:
        wrong = ascii(error.object[error.start : error.start + 1])
        raise ToolError(f"{shown} is unchanged: its encoding, {codec}, has no character {wrong}") from None
    diff = unified_diff(before, text, shown)
    done = f"patched {shown}: {count} {'place' if count == 1 else 'places'}, {count_changes(diff)} lines"
    return Change(snapshot, data, diff, "; ".join([done, *inexact]))
