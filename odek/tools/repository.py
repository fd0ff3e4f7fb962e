"""The git repository that a workspace is in, and what of it must not be run."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec

from odek.errors import ToolError
from odek.tools.git import GitOutput, private_git, run_git

__all__ = ["Repository", "find_repository"]

HEAD = "HEAD^{commit}"

LOOK_SECONDS = 30.0
"""For git to answer from its own files. It takes milliseconds; no measurement behind the rest."""

ANSWER_BYTES = 1024 * 1024


class Repository(msgspec.Struct, frozen=True):
    """What a worktree is made of.

    ``top`` is the working tree that was asked about, ``prefix`` the path of the workspace
    below it, "" for the top itself. ``common`` is the directory that all worktrees share.
    ``settings`` keep git from running the filters that the repository's own configuration names.
    """

    top: Path
    prefix: str
    common: Path
    commit: str
    settings: Mapping[str, str]


async def find_repository(workspace: Path, environment: Mapping[str, str]) -> Repository:
    """Return the repository of ``workspace`` at its last commit.

    Raises:
        ToolError: there is no git, no repository, no working tree or no commit.
    """
    look = partial(run_git, cwd=workspace, timeout_seconds=LOOK_SECONDS, limit_bytes=ANSWER_BYTES)
    asked = ["--is-inside-work-tree", "--show-toplevel", "--git-common-dir", "--show-prefix", HEAD]
    found = await look(["rev-parse", *asked], environment=private_git(environment, {}))
    lines = os.fsdecode(found.stdout).split("\n")[:-1]
    if found.status != 0 or len(lines) != len(asked):
        raise ToolError(_no_repository(workspace, found, lines))
    _, top, common, prefix, commit = lines
    listed = await look(
        ["config", "--list", "--show-scope", "--name-only", "-z"], environment=private_git(environment, {})
    )
    if listed.status != 0:
        raise ToolError(f"git cannot read the configuration of {top}: {listed.complaint}")
    return Repository(
        top=Path(top),
        prefix=prefix,
        common=workspace / common,
        commit=commit,
        settings=_without_own_filters(os.fsdecode(listed.stdout)),
    )


def _no_repository(workspace: Path, found: GitOutput, lines: list[str]) -> str:
    """Say why there can be no worktree."""
    if "not a git repository" in found.complaint:
        return f"{workspace} is in no git repository; make one with a commit, or leave worktree out"
    if lines[:1] == ["false"] or "bare repository" in found.complaint:
        return f"{workspace} is in a bare repository or in .git; go to a checkout, or leave worktree out"
    if found.status != 0 and lines[-1:] == [HEAD]:
        return f"the repository of {workspace} has no commit yet; commit something, or leave worktree out"
    if found.status == 0:
        return f"the path of the repository of {str(workspace)!r} has a line break; leave worktree out"
    return f"git cannot work in {workspace}: {found.complaint}"


def _without_own_filters(listing: str) -> dict[str, str]:
    """Return settings that switch off the filters of the repository's own configuration.

    A filter is a program, and ``git worktree add`` would run it. The person's own, such
    as those of git-lfs, stay.
    """
    words = listing.split("\0")
    own = {key for scope, key in zip(words[::2], words[1::2], strict=False) if scope in {"local", "worktree"}}
    drivers = {key.rpartition(".")[0] for key in own if key.startswith("filter.")}
    return {
        f"{driver}.{name}": value
        for driver in sorted(drivers)
        for name, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    }
