"""The ``glob`` and ``tree`` tools: which files there are."""

from collections import deque
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import trio
from msgspec import Meta

from odek.errors import ToolError
from odek.tools.gitignore import IgnoreRules
from odek.tools.globs import Glob
from odek.tools.paths import Target, confirm, locate, os_error, shown_name
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.tools.walk import Entry, Walk
from odek.trust.effects import Effects

__all__ = ["GlobArguments", "GlobTool", "TreeArguments", "TreeTool", "left_out", "locate_directory", "within"]

GLOB_PATHS = 500
"""Paths in one answer, about 5,000 tokens; a narrower pattern says more than a longer list."""

TREE_ENTRIES = 400
"""Lines of one tree, about 3,000 tokens."""

TREE_ENTRIES_PER_DIRECTORY = 100
"""So that one crowded directory leaves room for the others; no measurement behind this."""

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
        "and as read_file takes them. Files that git ignores are left out, hidden ones are not."
    )
    arguments_type = GlobArguments

    def __init__(self, workspace: Path, disk: trio.CapacityLimiter) -> None:
        self._workspace = workspace
        self._disk = disk

    async def prepare(self, arguments: GlobArguments) -> PreparedCall:
        """Check the pattern; see the base class."""
        pattern = Glob(arguments.pattern)
        find = partial(locate_directory, arguments.path, self._workspace)
        target = await trio.to_thread.run_sync(find, limiter=self._disk)
        directories = arguments.pattern.endswith("/")

        async def run(_scope: CallScope) -> ToolOutput:
            look = partial(_glob, target, pattern, self._workspace, directories=directories)
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
        find = partial(locate_directory, arguments.path, self._workspace)
        target = await trio.to_thread.run_sync(find, limiter=self._disk)

        async def run(_scope: CallScope) -> ToolOutput:
            look = partial(_tree, target, arguments.depth, self._workspace)
            return ToolOutput(await trio.to_thread.run_sync(look, limiter=self._disk))

        return PreparedCall(target.shown, Effects(reads=target.paths), run)


def locate_directory(argument: str, workspace: Path) -> Target:
    """Return the directory that ``argument`` names. Blocking.

    Raises:
        ToolError: it is missing, or something else is there.
    """
    target = locate(argument, workspace)
    try:
        target.resolved.stat()
    except FileNotFoundError:
        raise ToolError(f"{target.shown} does not exist") from None
    except OSError as error:
        raise os_error(error, target.shown) from None
    if not target.resolved.is_dir():
        raise ToolError(f"{target.shown} is not a directory")
    return target


def within(target: Target) -> str:
    """Return what goes before a path below ``target`` so that the workspace is its start."""
    return "" if target.shown == "." else f"{target.shown.rstrip('/')}/"


def left_out(walk: Walk) -> list[str]:
    """Return what a walk did not see, as the notes of an answer."""
    notes: list[str] = []
    if walk.ignored:
        notes.append(f"{walk.ignored:,} ignored by git's rules")
    if walk.unreadable:
        notes.append(f"{walk.unreadable:,} directories could not be read")
    if walk.incomplete:
        notes.append("too many entries: not everything was looked at; name a directory further down")
    return notes


def _glob(target: Target, pattern: Glob, workspace: Path, *, directories: bool) -> str:
    confirm(target)
    walk = Walk(target.resolved, workspace, trio.from_thread.check_cancelled)
    found = sorted(
        f"{within(target)}{entry.shown}"
        for entry in walk
        if entry.is_directory == directories and pattern.matches(entry.relative)
    )
    kind = "directories" if directories else "files"
    notes = left_out(walk)
    if not found:
        return f"[{'; '.join((f'no {kind} match', *notes))}]"
    if len(found) > GLOB_PATHS:
        notes.insert(0, f"the first {GLOB_PATHS} of {len(found):,} {kind}")
    elif not (walk.unreadable or walk.incomplete):
        notes = []  # what git ignores is of interest only when little was found
    mark = "/" if directories else ""
    lines = [f"{path}{mark}" for path in found[:GLOB_PATHS]]
    return "\n".join([*lines, f"[{'; '.join(notes)}]"] if notes else lines)


class _Branch:
    """A directory of a tree while it grows."""

    def __init__(self, entry: Entry, depth: int, rules: IgnoreRules) -> None:
        self.entry = entry
        self.depth = depth
        self.rules = rules
        self.branches: list[_Branch] = []
        self.leaves: list[Entry] = []
        self.hidden = 0  # entries that are there but not shown
        self.opened = False


def _tree(target: Target, depth: int, workspace: Path) -> str:
    confirm(target)
    walk = Walk(target.resolved, workspace, trio.from_thread.check_cancelled)
    top = _Branch(Entry(str(target.resolved), "", is_directory=True), 0, walk.rules)
    waiting = deque([top])  # breadth first: the room goes to what is near the top
    room = TREE_ENTRIES
    while waiting:
        branch = waiting.popleft()
        room -= _open(branch, walk, room if branch.depth < depth else 0)
        waiting.extend(branch.branches)
    lines = [f"{target.shown}/" if target.shown != "/" else "/", *_lines(top, 1)]
    notes = left_out(walk)
    return "\n".join([*lines, f"[{'; '.join(notes)}]"] if notes else lines)


def _open(branch: _Branch, walk: Walk, room: int) -> int:
    """Fill a branch with what there is room for; return how much was used."""
    entry = branch.entry
    prefix = f"{entry.relative}/" if entry.relative else ""
    children = walk.children(entry.path, prefix, branch.rules)
    shown = sorted(children, key=lambda child: not child.is_directory)
    shown = shown[: min(room, TREE_ENTRIES_PER_DIRECTORY)]
    branch.opened = room > 0
    branch.hidden = len(children) - len(shown)
    for child in shown:
        if child.is_directory:
            below = branch.rules.with_file(Path(child.path), Path(child.path, ".gitignore"))
            branch.branches.append(_Branch(child, branch.depth + 1, below))
        else:
            branch.leaves.append(child)
    return len(shown)


def _lines(branch: _Branch, indent: int) -> list[str]:
    lines: list[str] = []
    pad = "  " * indent
    for below in branch.branches:
        count = f" ({below.hidden} {'entry' if below.hidden == 1 else 'entries'})"
        lines.append(f"{pad}{_name(below.entry)}/{count if below.hidden and not below.opened else ''}")
        lines += _lines(below, indent + 1)
    lines += [f"{pad}{_name(leaf)}{' (link)' if leaf.is_link else ''}" for leaf in branch.leaves]
    if branch.hidden and branch.opened:
        lines.append(f"{pad}… {branch.hidden:,} more")
    return lines


def _name(entry: Entry) -> str:
    return shown_name(entry.relative.rpartition("/")[2])
