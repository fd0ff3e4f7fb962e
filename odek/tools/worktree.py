"""A git worktree for one subagent: made at the last commit, compared with it, removed.

Beside each worktree, below ``worktrees`` of the odek home, lie a lock, which its owner
holds as long as it lives, a record of what there is to remove, and a folder for git's
work on it. Whoever comes later removes what nobody holds. All that is the person's (the
branches, the index, the objects of the repository, other worktrees) stays as it is; git
lists the worktree while it is there.
"""

import os
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec
import trio

from odek.errors import StoreBusyError, StoreError, ToolError
from odek.patterns import late_pattern
from odek.storage.files import describe, ensure_directory, read_file, remove_file, replace_file
from odek.storage.locks import HeldLock, hold
from odek.storage.trees import remove_tree
from odek.tools.git import private_git, run_git
from odek.tools.repository import Repository
from subagent.name_json import dump, load

__all__ = [
    "Worktree",
    "open_worktree",
    "plan_worktree",
    "stale_worktrees",
    "sweep_worktrees",
]

WORKTREES = "worktrees"

CHECKOUT_SECONDS = 600.0
"""For git to write out the tree. A hundred thousand files take seconds; beyond, the disk is the problem."""

LIST_SECONDS = 30.0
"""For others to make or remove theirs, which takes a hundredth of a second each."""

SWEEP_SECONDS = 5.0
"""For whoever sweeps to find that there is nothing to remove under a name that has just been chosen."""

_NAME = late_pattern(r"odek-[0-9a-f]{12}(?=$|\.)")
"""Of a worktree, and of the beginning of what lies beside it."""

ANSWER_BYTES = 1024 * 1024
RECORD_BYTES = 64 * 1024


class Worktree(msgspec.Struct, frozen=True):
    """A worktree: ``place`` is its top, ``workspace`` where in it the work is."""

    repository: Repository
    place: Path
    scratch: Path

    @property
    def workspace(self) -> Path:
        """The directory that stands for the one where the repository was looked for."""
        return self.place / self.repository.prefix

    @property
    def admin(self) -> Path:
        """The directory in which git keeps what belongs to this worktree alone."""
        return self.repository.common / WORKTREES / self.place.name


class _Record(msgspec.Struct, frozen=True):
    """What there is to remove of a worktree."""

    place: str
    admin: str


def plan_worktree(home: Path, repository: Repository) -> Worktree:
    """Choose where a worktree is going to be: outside of what it is a copy of.

    Raises:
        ToolError: the odek home and the temporary directory both lie in the repository.
    """
    import tempfile

    name = f"odek-{os.urandom(6).hex()}"
    scratch = home / WORKTREES / f"{name}.git"
    top = repository.top.resolve()
    for parent in (home / WORKTREES, Path(tempfile.gettempdir())):
        if not parent.resolve().is_relative_to(top):
            return Worktree(repository, parent.resolve() / name, scratch)
    raise ToolError(f"no place for a worktree outside of {top}; set ODEK_HOME to one")


@asynccontextmanager
async def open_worktree(
    planned: Worktree, environment: Mapping[str, str], complain: Callable[[str], None]
) -> AsyncGenerator[None]:
    """Have the worktree for a block; nothing of it is left then, however the block is left.

    ``complain`` is told, in a line, what could not be removed. It is tried again by whoever
    comes later.

    Raises:
        ToolError: git cannot make it.
    """
    try:
        lock = await trio.to_thread.run_sync(_claim, planned)
    except (StoreError, OSError) as error:
        raise ToolError(f"there can be no worktree: {error}") from error
    try:
        await _check_out(planned, environment)
        yield
    finally:
        with trio.CancelScope(shield=True):  # as long as the disk needs
            try:
                await trio.to_thread.run_sync(_remove, planned.scratch.parent, planned.place.name, lock)
            except StoreError as error:
                complain(f"a worktree is not wholly removed: {error}")


def stale_worktrees(home: Path, *, remove: bool) -> Iterator[Path]:
    """Yield the worktrees whose owner is gone, and ``remove`` them. Blocking.

    Raises:
        StoreError: one of them cannot be removed.
    """
    directory = home / WORKTREES
    try:
        with os.scandir(directory) as entries:
            names = {found[0] for entry in entries if (found := _NAME.match(entry.name))}
    except OSError:  # there has never been one
        return
    failed: StoreError | None = None
    for name in sorted(names):
        try:
            lock = hold(directory / f"{name}.lock", timeout_seconds=0)
            if remove:
                _remove(directory, name, lock)
            else:
                lock.release()
        except StoreBusyError:
            continue
        except StoreError as error:  # the others are none the worse for it
            failed = error
            continue
        yield directory / name
    if failed is not None:
        raise failed


def sweep_worktrees(home: Path) -> None:
    """Remove the worktrees whose owner is gone, as far as that is possible now. Blocking."""
    with suppress(StoreError):  # they are in nobody's way, and the next start tries again
        list(stale_worktrees(home, remove=True))


def _claim(planned: Worktree) -> HeldLock:
    """Own the name of the worktree, and note what there will be to remove."""
    directory, name = planned.scratch.parent, planned.place.name
    ensure_directory(directory)
    lock = hold(directory / f"{name}.lock", timeout_seconds=SWEEP_SECONDS)
    try:
        record = _Record(place=str(planned.place), admin=str(planned.admin))
        replace_file(directory / f"{name}.json", dump(record))
        ensure_directory(planned.scratch / "objects")
        planned.place.mkdir(0o700)
    except BaseException:
        _remove(directory, name, lock)
        raise
    return lock


async def _check_out(planned: Worktree, environment: Mapping[str, str]) -> None:
    """Have git make the worktree and fill it, and keep the index as git wrote it."""
    repository = planned.repository
    settings = private_git(environment, repository.settings)
    git = partial(run_git, timeout_seconds=CHECKOUT_SECONDS, limit_bytes=ANSWER_BYTES)
    add = ["worktree", "add", "--no-checkout", "--detach", str(planned.place), repository.commit]
    fill = ["reset", "--hard", "--quiet", "--no-recurse-submodules"]
    of_worktree = {"GIT_DIR": str(planned.admin), "GIT_WORK_TREE": str(planned.place)}
    try:
        lock = await trio.to_thread.run_sync(
            _lock_list, planned.scratch.parent, trio.from_thread.check_cancelled
        )
        try:
            done = await git(add, cwd=repository.top, environment=settings)
        finally:
            lock.release(remove=True)
        if done.status == 0:
            done = await git(fill, cwd=planned.place, environment=settings | of_worktree)
        if done.status != 0:
            raise ToolError(f"git cannot make a worktree of {repository.top}: {done.complaint}")
        await trio.to_thread.run_sync(_settle, planned)
    except StoreError as error:
        raise ToolError(f"there can be no worktree: {error}") from error
    except OSError as error:
        raise ToolError(f"{planned.workspace} cannot be worked in: {describe(error)}") from error


def _lock_list(directory: Path, poll: Callable[[], None] | None = None) -> HeldLock:
    """Be the only one of this home to change which worktrees there are.

    Git looks at all of them whenever it makes one, and gives up on one that is being made.
    """
    return hold(directory / "list.lock", timeout_seconds=LIST_SECONDS, poll=poll)


def _settle(planned: Worktree) -> None:
    import shutil

    # With its times, by which git tells what has changed since.
    shutil.copy2(planned.admin / "index", planned.scratch / "index")
    planned.workspace.mkdir(parents=True, exist_ok=True)  # it may hold nothing that is in the commit
    if not planned.workspace.resolve().is_relative_to(planned.place.resolve()):
        raise NotADirectoryError(0, "a link in the commit leads out of the repository")


def _remove(directory: Path, name: str, lock: HeldLock) -> None:
    """Remove what belongs to a worktree, its record and its lock last.

    Not by ``git worktree remove``: that refuses when the worktree was tampered with.

    Raises:
        StoreError: something of it cannot be removed; the lock is free, and the record stays.
    """
    done = False
    try:
        record = _read_record(directory / f"{name}.json")
        for place in {directory / name, *([Path(record.place)] if record else [])}:
            remove_tree(place)
        if record is not None:
            _remove_admin(directory, Path(record.admin), Path(record.place))
        remove_tree(directory / f"{name}.git")
        remove_file(directory / f"{name}.json")
        done = True
    finally:
        lock.release(remove=done)


def _read_record(path: Path) -> _Record | None:
    try:
        return load(read_file(path, limit_bytes=RECORD_BYTES), msgspec.json.Decoder(_Record))
    except (FileNotFoundError, ValueError, RecursionError):
        return None


def _remove_admin(directory: Path, admin: Path, place: Path) -> None:
    """Have git forget the worktree, unless another one bears its name."""
    try:
        link = os.fsdecode((admin / "gitdir").read_bytes().rstrip(b"\n"))
    except OSError:  # git was ended before it had written that
        link = ""
    if not link or (admin / link).parent.resolve() == place.resolve():
        lock = _lock_list(directory)
        try:
            remove_tree(admin)
            with suppress(OSError):  # others are in it
                admin.parent.rmdir()
        finally:
            lock.release(remove=True)
