"""What a subagent left in its worktree, compared with the commit that it began with."""

import os
from collections.abc import Mapping
from functools import partial

import msgspec
import trio

from odek.errors import ToolError
from odek.tools.git import private_git, run_git
from odek.tools.git_diff import FileChange, parse_changes, parse_entries
from odek.tools.worktree import Worktree

__all__ = ["WorktreeChanges", "read_changes"]

READ_SECONDS = 60.0
"""For git to look through the worktree, as ``git add`` does. Not measured on slow disks."""

READ_BYTES = 16 * 1024 * 1024
"""Read of a diff. Far more than comes back."""

FILE_BYTES = 1024 * 1024
"""Of a file, before or after: the diff of a larger one is not even made, for none is taken back whole."""

HEAVY_FILES = 1000
"""Files beyond that are told to git by name; more would not fit into a command line everywhere."""

NAMES_BYTES = 8 * 1024
"""Of a list of files: more than anybody reads, and the number is told."""


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
    """Return the names in a row, as many as are read, and how many more there are."""
    shown: list[str] = []
    room = NAMES_BYTES
    for name in names:
        room -= len(name.encode()) + 2
        if room < 0:
            return f"{', '.join(shown)} and {len(names) - len(shown)} more"
        shown.append(name)
    return ", ".join(shown)


async def read_changes(worktree: Worktree, environment: Mapping[str, str]) -> WorktreeChanges:
    """Compare the worktree with its commit, new files included, those that git ignores not.

    Nothing that was done to the worktree's own git files matters, and nothing is added to
    the repository: index and objects are in the worktree's scratch folder.

    Raises:
        ToolError: git cannot tell.
    """
    repository = worktree.repository
    git = partial(
        run_git,
        cwd=worktree.place,
        environment=_comparing(worktree, environment),
        timeout_seconds=READ_SECONDS,
        limit_bytes=READ_BYTES,
    )
    sparse = ["--sparse"] if await trio.to_thread.run_sync(_is_sparse, worktree) else []
    added = await git(["add", "--all", "--ignore-errors", *sparse])
    problem = f"not everything in its worktree could be read: {added.complaint}" if added.status else ""
    listed = await git(["diff-index", "--cached", "--raw", "-z", "-M", repository.commit])
    entries = parse_entries(listed.stdout)
    ids = sorted({each for entry in entries for each in entry.ids})
    sizes = await git(
        ["cat-file", "--batch-check=%(objectname) %(objectsize)"], stdin=b"\n".join([*ids, b""])
    )
    beyond = _beyond(sizes.stdout, FILE_BYTES)
    heavy = [entry for entry in entries if entry.ids & beyond][:HEAVY_FILES]
    excluded = [b":(exclude,literal)" + path for entry in heavy for path in entry.paths]
    found = await git(
        [*_DIFF, "--patch-with-raw", "-z", repository.commit, "--", ".", *map(os.fsdecode, excluded)]
    )
    for output in (listed, sizes, found):
        if output.status != 0:
            raise ToolError(f"the changes in its worktree cannot be read: {output.complaint}")
    changes = parse_changes(found.stdout, repository.prefix, cut=found.cut)
    changes += tuple(FileChange(entry.shown(repository.prefix)) for entry in heavy)
    return WorktreeChanges(repository.commit, changes, problem)


_DIFF = ("diff-index", "--cached", "-M", "--binary", "--no-color", "--no-ext-diff", "--no-textconv")
"""A diff that ``git apply`` takes, made by git alone."""


def _comparing(worktree: Worktree, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of git commands that look at the worktree from outside."""
    repository, scratch = worktree.repository, worktree.scratch
    # What is written is read once, and then removed.
    hasty = {"core.compression": "0", "core.looseCompression": "0", "core.fsync": "none"}
    return private_git(environment, {**repository.settings, **hasty}) | {
        "GIT_DIR": str(worktree.admin),
        "GIT_WORK_TREE": str(worktree.place),
        "GIT_INDEX_FILE": str(scratch / "index"),
        "GIT_OBJECT_DIRECTORY": str(scratch / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(str(repository.common / "objects")),
    }


def _is_sparse(worktree: Worktree) -> bool:
    return (worktree.admin / "info/sparse-checkout").exists()


def _beyond(listing: bytes, limit_bytes: int) -> set[bytes]:
    """Return the objects that are larger; those of other repositories have no size."""
    rows = (line.split() for line in listing.splitlines())
    return {row[0] for row in rows if row[-1].isdigit() and int(row[-1]) > limit_bytes}


def _quoted(path: str) -> str:
    """Quote a path for a list that is separated by colons."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
