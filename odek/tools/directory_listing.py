"""What there is below a directory, for ``glob`` and ``tree``; loaded by the first call of either."""

from collections import deque
from pathlib import Path

import trio

from odek.errors import ToolError
from odek.tools.gitignore import IgnoreRules
from odek.tools.globs import Glob
from odek.tools.paths import Target, confirm, locate_existing, os_error, shown_name
from odek.tools.walk import Entry, Walk

__all__ = ["glob", "locate_directory", "tree", "within"]

GLOB_PATHS = 500
"""Paths in one answer, about 5,000 tokens; a narrower pattern says more than a longer list."""

TREE_ENTRIES = 400
"""Lines of one tree, about 3,000 tokens."""

TREE_ENTRIES_PER_DIRECTORY = 100
"""So that one crowded directory leaves room for the others; no measurement behind this."""


def locate_directory(argument: str, workspace: Path) -> Target:
    """Return the directory that ``argument`` names. Blocking.

    Raises:
        ToolError: it is missing, or something else is there.
    """
    target = locate_existing(argument, workspace)
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


def _left_out(walk: Walk) -> list[str]:
    """Return what a walk did not see, as the notes of an answer."""
    notes: list[str] = []
    if walk.ignored:
        notes.append(f"{walk.ignored:,} ignored by git's rules")
    if walk.unreadable:
        notes.append(f"{walk.unreadable:,} directories could not be read")
    if walk.incomplete:
        notes.append("too many entries: not everything was looked at; name a directory further down")
    return notes


def glob(target: Target, pattern: Glob, workspace: Path, *, directories: bool) -> str:
    """Return the paths below ``target`` that match, as the answer of the tool. Blocking."""
    confirm(target)
    walk = Walk(target.resolved, workspace, trio.from_thread.check_cancelled)
    found = sorted(
        f"{within(target)}{entry.shown}{_oddity(entry)}"
        for entry in walk
        if entry.is_directory == directories and pattern.matches(entry.relative)
    )
    kind = "directories" if directories else "files"
    notes = _left_out(walk)
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


def tree(target: Target, depth: int, workspace: Path) -> str:
    """Return the tree of ``target``, as the answer of the tool. Blocking."""
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
    notes = _left_out(walk)
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
    lines += [f"{pad}{_name(leaf)}{' (link)' if leaf.is_link else _oddity(leaf)}" for leaf in branch.leaves]
    if branch.hidden and branch.opened:
        lines.append(f"{pad}… {branch.hidden:,} more")
    return lines


def _oddity(entry: Entry) -> str:
    return f" ({entry.oddity})" if entry.oddity else ""


def _name(entry: Entry) -> str:
    return shown_name(entry.relative.rpartition("/")[2])
