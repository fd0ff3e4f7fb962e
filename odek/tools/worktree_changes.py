"""What a subagent left in its worktree, compared with the commit that it began with."""

import os
import re
from collections.abc import Iterator, Mapping

import msgspec

from odek.errors import ToolError
from odek.text import clip_bytes, visible
from odek.tools.git import private_git, run_git
from odek.tools.worktree import Worktree

__all__ = ["FileChange", "WorktreeChanges", "parse_changes", "read_changes"]

READ_SECONDS = 60.0
"""For git to look through the worktree, as ``git add`` does. Not measured on slow disks."""

READ_BYTES = 16 * 1024 * 1024
"""Read of a diff. Far more than comes back; a file beyond it is one that nobody reads as a diff."""

NAMES_BYTES = 8 * 1024
"""Of a list of files: more than anybody reads, and the number is told."""


class FileChange(msgspec.Struct, frozen=True):
    """One changed file.

    ``paths`` are relative to the workspace, two for one that was moved. ``diff`` is its part of
    ``git diff --binary``, None if that was too long to be read. It is ``exact`` unless it has
    bytes that are no UTF-8, which are replaced.
    """

    paths: tuple[str, ...]
    diff: str | None = None
    exact: bool = True


class WorktreeChanges(msgspec.Struct, frozen=True):
    """All changes against ``commit``, those committed meanwhile included.

    ``problem`` says what could not be looked at.
    """

    commit: str
    changes: tuple[FileChange, ...] = ()
    problem: str = ""

    @property
    def files(self) -> list[str]:
        """The paths of what was changed, by name."""
        return sorted({path for change in self.changes for path in change.paths})

    def fitting(self, limit_bytes: int) -> tuple[str, list[FileChange]]:
        """Return the diffs of as many files as fit, each whole, and the files that do not."""
        taken: list[str] = []
        left_out: list[FileChange] = []
        for change in self.changes:
            size = len(change.diff.encode()) if change.diff is not None else limit_bytes + 1
            if change.diff is None or size > limit_bytes:
                left_out.append(change)
            else:
                taken.append(change.diff)
                limit_bytes -= size
        return "".join(taken), left_out

    def text(self, limit_bytes: int) -> str:
        """Return what the delegating model reads: the files, the diff, and what is missing of it."""
        if not self.changes:
            return self.problem or "nothing has changed in its worktree"
        diff, left_out = self.fitting(limit_bytes)
        lines = [f"files changed in its worktree: {_names(self.files)}"]
        if diff:
            lines.append(
                f"diff against commit {self.commit[:12]}; your workspace is unchanged, `git apply` takes it:"
            )
            lines.append(diff.removesuffix("\n"))
        if left_out:
            names = _names([" from ".join(reversed(change.paths)) for change in left_out])
            lines.append(
                f"[the diff is incomplete: too long, and gone with the worktree, are those of {names}]"
            )
        inexact = [change.paths[-1] for change in self.changes if not change.exact]
        if inexact:
            lines.append(f"[bytes that are no UTF-8 are replaced by \ufffd in the diff of {_names(inexact)}]")
        lines += [f"[{self.problem}]"] if self.problem else []
        return "\n".join(lines)


def _names(names: list[str]) -> str:
    text = clip_bytes(", ".join(names), NAMES_BYTES)
    shown = text.count(", ") + 1
    return text if shown == len(names) else f"{text.rpartition(', ')[0]} and {len(names) - shown + 1} more"


async def read_changes(worktree: Worktree, environment: Mapping[str, str]) -> WorktreeChanges:
    """Compare the worktree with its commit, new files included, those that git ignores not.

    Nothing that was done to the worktree's own git files matters, and nothing is added to
    the repository: index and objects are in the worktree's scratch folder.

    Raises:
        ToolError: git cannot tell.
    """
    repository, scratch = worktree.repository, worktree.scratch
    settings = private_git(environment, repository.settings) | {
        "GIT_DIR": str(worktree.admin),
        "GIT_WORK_TREE": str(worktree.place),
        "GIT_INDEX_FILE": str(scratch / "index"),
        "GIT_OBJECT_DIRECTORY": str(scratch / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(str(repository.common / "objects")),
    }
    sparse = ["--sparse"] if (worktree.admin / "info/sparse-checkout").exists() else []
    added = await run_git(
        ["add", "--all", "--ignore-errors", *sparse],
        cwd=worktree.place,
        environment=settings,
        timeout_seconds=READ_SECONDS,
        limit_bytes=READ_BYTES,
    )
    found = await run_git(
        ["diff-index", "--cached", "--patch-with-raw", "-z", "-M", *_AS_IT_IS, repository.commit],
        cwd=worktree.place,
        environment=settings,
        timeout_seconds=READ_SECONDS,
        limit_bytes=READ_BYTES,
    )
    if found.status != 0:
        raise ToolError(f"the changes in its worktree cannot be read: {found.complaint}")
    problem = f"not everything in its worktree could be read: {added.complaint}" if added.status else ""
    changes = parse_changes(found.stdout, repository.prefix, cut=found.cut)
    return WorktreeChanges(repository.commit, changes, problem)


_AS_IT_IS = ("--binary", "--no-color", "--no-ext-diff", "--no-textconv")
"""A diff that ``git apply`` takes, made by git alone."""


def parse_changes(output: bytes, prefix: str, *, cut: bool = False) -> tuple[FileChange, ...]:
    """Return the changes that ``git diff-index --patch-with-raw -z`` tells.

    Args:
        output: First a list, then the diffs in its order.
        prefix: The workspace below the top, to which paths become relative.
        cut: The output breaks off, maybe within a diff.
    """
    entries, patch = _raw_entries(output)
    sections = [section for section in re.split(rb"(?m)^(?=diff --git )", patch) if section]
    if cut:
        del sections[-1:]
    return tuple(_changes(entries, sections, prefix))


def _raw_entries(output: bytes) -> tuple[list[tuple[str, list[bytes]]], bytes]:
    """Return the status letter and the paths of each entry, and what is behind them."""
    entries: list[tuple[str, list[bytes]]] = []
    while output.startswith(b":"):
        header, *rest = output.split(b"\0", 3)
        status = header.split()[-1][:1].decode()
        count = 2 if status in {"R", "C"} else 1
        if len(rest) <= count:  # cut off here
            return entries, b""
        entries.append((status, rest[:count]))
        output = b"\0".join(rest[count:])
    return entries, output.removeprefix(b"\0")


def _changes(
    entries: list[tuple[str, list[bytes]]], sections: list[bytes], prefix: str
) -> Iterator[FileChange]:
    at = 0
    for status, paths in entries:
        # What became a link, or was one, is removed and added.
        count = 2 if status == "T" else 1
        whole = b"".join(sections[at : at + count]) if at + count <= len(sections) else None
        at += count
        names = tuple(
            visible(os.path.relpath(os.fsdecode(path), prefix or "."), keep_newlines=False) for path in paths
        )
        if whole is None:
            yield FileChange(names)
            continue
        text = whole.decode("utf-8", "replace")
        yield FileChange(names, text, exact=text.encode() == whole)


def _quoted(path: str) -> str:
    """Quote a path for a list that is separated by colons."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
