"""What a subagent left in its worktree, compared with the commit that it began with."""

import os
import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice

import msgspec
import trio

from odek.errors import ToolError
from odek.text import clip_bytes, visible
from odek.tools.git import private_git, run_git
from odek.tools.worktree import Worktree

__all__ = ["FileChange", "WorktreeChanges", "parse_changes", "read_changes"]

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
    entries = _entries(listed.stdout)
    ids = sorted({each for entry in entries for each in entry.ids})
    sizes = await git(
        ["cat-file", "--batch-check=%(objectname) %(objectsize)"], stdin=b"\n".join([*ids, b""])
    )
    heavy = [entry for entry in entries if entry.ids & _beyond(sizes.stdout, FILE_BYTES)][:HEAVY_FILES]
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


class _Entry(msgspec.Struct, frozen=True):
    """A line of git's list: the status letter, the objects before and after, one path or two."""

    status: str
    ids: frozenset[bytes]
    paths: list[bytes]

    def shown(self, prefix: str) -> tuple[str, ...]:
        """Return the paths as people write them, relative to the workspace."""
        names = (os.path.relpath(os.fsdecode(path), prefix or ".") for path in self.paths)
        return tuple(visible(name, keep_newlines=False) for name in names)


def parse_changes(output: bytes, prefix: str, *, cut: bool = False) -> tuple[FileChange, ...]:
    """Return the changes that ``git diff-index --patch-with-raw -z`` tells.

    Args:
        output: First a list, then the diffs in its order.
        prefix: The workspace below the top, to which paths become relative.
        cut: The output breaks off, maybe within a diff.
    """
    listing, _, patch = output.partition(b"\0\0")
    sections = [section for section in re.split(rb"(?m)^(?=diff --git )", patch) if section]
    if cut:
        del sections[-1:]
    return tuple(_changes(_entries(listing), sections, prefix))


def _entries(listing: bytes) -> list[_Entry]:
    words = iter(listing.split(b"\0"))
    entries: list[_Entry] = []
    for header in words:
        if header.startswith(b":"):
            _, _, old, new, status = header.split()
            count = 2 if status[:1] in b"RC" else 1
            paths = list(islice(words, count))
            entries.append(_Entry(status[:1].decode(), frozenset({old, new}) - {b"0" * len(old)}, paths))
    return entries


def _changes(entries: list[_Entry], sections: list[bytes], prefix: str) -> Iterator[FileChange]:
    at = 0
    for entry in entries:
        # What became a link, or was one, is removed and added.
        count = 2 if entry.status == "T" else 1
        whole = b"".join(sections[at : at + count]) if at + count <= len(sections) else None
        at += count
        if whole is None:
            yield FileChange(entry.shown(prefix))
        else:
            text = whole.decode("utf-8", "replace")
            yield FileChange(entry.shown(prefix), text, exact=text.encode() == whole)


def _quoted(path: str) -> str:
    """Quote a path for a list that is separated by colons."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
