"""Worktrees for subagents: what comes back of them, and that nothing of them stays."""

import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from odek.errors import ToolError
from odek.tools.repository import find_repository
from odek.tools.worktree import Worktree, open_worktree, plan_worktree, stale_worktrees, sweep_worktrees
from odek.tools.worktree_changes import WorktreeChanges, read_changes
from tests.support import worktree_owner
from tests.support.repository import Repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git does the work")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with a commit."""
    made = Repository(tmp_path / "work")
    made.commit({"a.txt": "one\n", "gone.txt": "x\n", "sub/b.txt": "".join(f"{n}\n" for n in range(50))})
    return made


@asynccontextmanager
async def worktree_of(
    repository: Repository, workspace: Path | None = None, *, commits: bool = False
) -> AsyncGenerator[Worktree]:
    """Have a worktree; the repository and the home are as they were when it is left.

    Who ``commits`` leaves objects, which nothing refers to.
    """
    home = repository.path.parent / "home"
    before = repository.state(objects=not commits)
    complaints: list[str] = []
    found = await find_repository(workspace or repository.path, repository.environment)
    planned = plan_worktree(home, found)
    async with open_worktree(planned, repository.environment, complaints.append):
        assert str(planned.place) in repository.git("worktree", "list", folder=workspace)
        yield planned
    assert repository.state(objects=not commits) == before
    assert list((home / "worktrees").iterdir()) == []
    assert not planned.place.exists()
    assert complaints == []


async def changes_in(worktree: Worktree, repository: Repository) -> WorktreeChanges:
    """Return what has changed."""
    return await read_changes(worktree, repository.environment)


async def test_the_diff_makes_of_the_commit_what_the_worktree_was(
    repository: Repository, tmp_path: Path
) -> None:
    """Changed, new, removed, moved, binary, executable, linked and oddly named files, also committed ones."""
    repository.commit({"picture": bytes(range(256)), "kind": "was a file\n", ".gitignore": "*.log\n"})
    (repository.path / "a.txt").write_text("not committed\n")
    async with worktree_of(repository, commits=True) as worktree:
        top = worktree.place
        assert (top / "a.txt").read_text() == "one\n"
        (top / "a.txt").write_text("two\n")
        (top / "committed.txt").write_text("by the subagent\n")
        repository.git("add", "committed.txt", folder=top)
        repository.git("commit", "-q", "-m", "its own", folder=top)
        (top / "gone.txt").unlink()
        (top / "sub/b.txt").rename(top / "sub/moved.txt")
        (top / "picture").write_bytes(bytes(reversed(range(256))))
        (top / "run.sh").write_text("#!/bin/sh\n")
        (top / "run.sh").chmod(0o755)
        (top / "kind").unlink()
        (top / "kind").symlink_to("a.txt")
        (top / 'odd "ü\n\tname').write_text("odd\n")
        (top / "ignored.log").write_text("no\n")
        changes = await changes_in(worktree, repository)
        expected = {path.name: path.read_bytes() for path in top.rglob("*") if path.is_file()}
    diff, left_out = changes.fitting(10**6)
    clone = tmp_path / "clone"
    repository.git("clone", "-q", str(repository.path), str(clone))
    repository.git("apply", "-", stdin=diff, folder=clone)

    del expected[".git"], expected["ignored.log"]
    files = {path for path in clone.rglob("*") if path.is_file() and ".git" not in path.parts}
    assert {path.name: path.read_bytes() for path in files} == expected
    assert (clone / "kind").readlink() == Path("a.txt")
    assert (clone / "run.sh").stat().st_mode & stat.S_IXUSR
    assert left_out == []
    assert all(change.exact for change in changes.changes)
    names = ["a.txt", "committed.txt", "gone.txt", "kind", "picture", "run.sh", "sub/b.txt", "sub/moved.txt"]
    assert changes.files == sorted([*names, 'odd "ü\\x0a    name'])


async def test_what_is_too_long_is_left_out_whole_and_named(repository: Repository) -> None:
    """Each file's diff is there as a whole or not at all; text that is no UTF-8 is told."""
    async with worktree_of(repository) as worktree:
        (worktree.place / "big.txt").write_text("a line\n" * 50_000)
        (worktree.place / "latin.txt").write_bytes("grün\n".encode("latin-1"))
        (worktree.place / "small.txt").write_text("small\n")
        changes = await changes_in(worktree, repository)
    text = changes.text(2000)

    assert "+small" in text
    assert "a line" not in text
    assert "too long, and gone with the worktree, are those of big.txt]" in text
    assert "no UTF-8 are replaced by \ufffd in the diff of latin.txt]" in text
    assert len(text.encode()) < 2500
    assert "big.txt, latin.txt, small.txt" in text


async def test_huge_files_do_not_hide_the_small_ones_behind_them(repository: Repository) -> None:
    """New, removed and moved ones beyond a megabyte are named, and the rest of the diff is whole."""
    huge = os.urandom(1_200_000)
    repository.commit({"a-gone.bin": huge, "b-old.bin": huge[::-1]})
    async with worktree_of(repository) as worktree:
        (worktree.place / "a-gone.bin").unlink()
        (worktree.place / "b-old.bin").rename(worktree.place / "c-moved.bin")
        for number in range(3):
            (worktree.place / f"d-[{number}]*.bin").write_bytes(os.urandom(1_200_000))
        (worktree.place / "e-small.txt").write_text("small\n")
        changes = await changes_in(worktree, repository)
    diff, left_out = changes.fitting(10**6)

    assert diff.count("diff --git") == 1
    assert "+small" in diff
    assert len(left_out) == 5
    assert ("b-old.bin", "c-moved.bin") in {change.paths for change in left_out}
    assert "those of " in changes.text(10**5)


async def test_a_workspace_below_the_top_stays_there(repository: Repository) -> None:
    """Paths are those of the workspace, even if nothing of it is committed."""
    async with worktree_of(repository, repository.path / "sub") as worktree:
        assert (worktree.workspace / "b.txt").exists()
        (worktree.workspace / "b.txt").write_text("changed\n")
        (worktree.place / "a.txt").write_text("changed\n")
        changes = await changes_in(worktree, repository)
    (repository.path / "new/deep").mkdir(parents=True)
    async with worktree_of(repository, repository.path / "new/deep") as worktree:
        assert worktree.workspace.is_dir()

    assert changes.files == ["../a.txt", "b.txt"]


async def test_a_link_in_the_commit_leads_nobody_out(repository: Repository, tmp_path: Path) -> None:
    """What is a directory now and a link in the commit is no place to work in."""
    (tmp_path / "elsewhere").mkdir()
    (repository.path / "there").symlink_to(tmp_path / "elsewhere")
    repository.commit({})
    (repository.path / "there").unlink()
    (repository.path / "there").mkdir()

    with pytest.raises(ToolError, match="leads out of the repository"):
        async with worktree_of(repository, repository.path / "there"):
            pytest.fail("it was opened")
    assert list((tmp_path / "home/worktrees").iterdir()) == []


async def test_nothing_that_the_repository_names_is_run(repository: Repository, tmp_path: Path) -> None:
    """Neither hooks nor file system monitor nor filters nor drivers of its own configuration."""
    ran = tmp_path / "ran"
    program = f"touch {shlex.quote(str(ran))}; cat"
    for hook in ("post-checkout", "post-index-change", "pre-commit"):
        path = repository.path / ".git/hooks" / hook
        path.write_text(f"#!/bin/sh\n{program}\n")
        path.chmod(0o755)
    repository.git("config", "core.hooksPath", ".git/hooks")
    repository.commit({".gitattributes": "*.txt filter=own diff=own\n"})
    for key in ("filter.own.clean", "filter.own.smudge", "diff.own.textconv", "diff.own.command"):
        repository.git("config", key, program)
    repository.git("config", "filter.own.required", "true")
    repository.git("config", "core.fsmonitor", program)
    ran.unlink(missing_ok=True)
    found = await find_repository(repository.path, repository.environment)
    planned = plan_worktree(tmp_path / "home", found)
    async with open_worktree(planned, repository.environment, pytest.fail):
        (planned.place / "a.txt").write_text("two\n")
        changes = await changes_in(planned, repository)

    assert not ran.exists()
    assert changes.files == ["a.txt"]
    assert "+two" in changes.text(10_000)


async def test_what_a_subagent_does_to_its_git_files_does_not_matter(repository: Repository) -> None:
    """Its `.git` file leads elsewhere, its index is emptied and locked: the diff is right, and all goes."""
    evil = repository.path.parent / "evil"
    async with worktree_of(repository) as worktree:
        Repository(evil)
        (evil / ".git/config").write_text(f"[core]\n fsmonitor = \"touch '{evil}/ran'\"\n")
        (worktree.place / ".git").write_text(f"gitdir: {evil}/.git\n")
        (worktree.admin / "index").write_bytes(b"")
        (worktree.admin / "index.lock").write_bytes(b"")
        (worktree.place / "a.txt").write_text("two\n")
        closed = worktree.place / "closed/inner"
        closed.mkdir(parents=True)
        (closed / "file").write_text("x\n")
        changes = await changes_in(worktree, repository)
        closed.chmod(0)
        closed.parent.chmod(0o500)

    assert changes.files == ["a.txt", "closed/inner/file"]
    assert not (evil / "ran").exists()


async def test_a_branch_that_a_subagent_makes_stays(repository: Repository) -> None:
    """It is the subagent's doing, like any other command; the worktree goes all the same."""
    found = await find_repository(repository.path, repository.environment)
    planned = plan_worktree(repository.path.parent / "home", found)
    async with open_worktree(planned, repository.environment, pytest.fail):
        repository.git("checkout", "-q", "-b", "topic", folder=planned.place)
        repository.git("commit", "-q", "--allow-empty", "-m", "kept", folder=planned.place)

    assert repository.git("log", "-1", "--format=%s", "topic") == "kept\n"
    assert repository.git("worktree", "list").count("\n") == 1


async def test_submodules_and_sparse_checkouts_are_no_obstacle(
    repository: Repository, tmp_path: Path
) -> None:
    """A submodule is an empty directory there; what is not checked out is not checked out there either."""
    library = Repository(tmp_path / "library")
    library.commit({"lib.txt": "library\n"})
    repository.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.path), "lib"
    )
    repository.commit({"far/away.txt": "far\n", "near/by.txt": "near\n"})
    async with worktree_of(repository) as worktree:
        assert list((worktree.place / "lib").iterdir()) == []
        (worktree.place / "near/by.txt").write_text("nearer\n")
        with_submodule = await changes_in(worktree, repository)
    repository.git("sparse-checkout", "set", "near")
    async with worktree_of(repository) as worktree:
        assert not (worktree.place / "far").exists()
        (worktree.place / "near/by.txt").write_text("nearer\n")
        (worktree.place / "other").mkdir()
        (worktree.place / "other/new.txt").write_text("new\n")
        sparse = await changes_in(worktree, repository)
    async with worktree_of(repository, repository.path / "lib"):
        pass

    assert with_submodule.files == ["near/by.txt"]
    assert (sparse.files, sparse.problem) == (["near/by.txt", "other/new.txt"], "")


async def test_a_repository_within_the_worktree_does_not_hide_the_rest(repository: Repository) -> None:
    """One without a commit cannot be compared, which is told; the other changes are there."""
    async with worktree_of(repository) as worktree:
        Repository(worktree.place / "nested")
        (worktree.place / "a.txt").write_text("two\n")
        changes = await changes_in(worktree, repository)

    assert changes.files == ["a.txt"]
    assert "does not have a commit checked out" in changes.text(10_000)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("no git", "git is not installed"),
        ("no repository", "is in no git repository"),
        ("no commit", "has no commit yet"),
        ("bare", "is in a bare repository"),
        ("in .git", "is in a bare repository or in .git;"),
        ("a\nline", "has a line break"),
    ],
)
async def test_where_there_can_be_none_it_is_said_why(kind: str, words: str, tmp_path: Path) -> None:
    """One line names the place and what to do."""
    plain = tmp_path / "plain"
    plain.mkdir()
    empty = Repository(tmp_path / "empty")
    bare = Repository(tmp_path / "bare", "--bare")
    broken = Repository(tmp_path / "a\nline")
    broken.commit({"a.txt": "one\n"})
    places = {"no commit": empty.path, "bare": bare.path, "in .git": empty.path / ".git"}
    workspace = {**places, "a\nline": broken.path}.get(kind, plain)
    environment = empty.environment | {"GIT_CEILING_DIRECTORIES": str(tmp_path)}
    if kind == "no git":
        environment["PATH"] = str(plain)

    with pytest.raises(ToolError, match=words) as raised:
        await find_repository(workspace, environment)
    assert "\n" not in str(raised.value)


async def test_variables_that_name_another_repository_do_not_count(
    repository: Repository, tmp_path: Path
) -> None:
    """Started by a hook of another repository, the workspace's own is the one."""
    other = Repository(tmp_path / "other")
    environment = repository.environment | {
        "GIT_DIR": str(other.path / ".git"),
        "GIT_WORK_TREE": str(other.path),
        "GIT_INDEX_FILE": str(other.path / "index"),
    }

    assert (await find_repository(repository.path, environment)).top == repository.path


async def test_an_odek_home_in_the_repository_is_no_place_for_its_copies(repository: Repository) -> None:
    """The worktree is in the temporary directory then."""
    found = await find_repository(repository.path, repository.environment)
    planned = plan_worktree(repository.path / ".odek", found)
    async with open_worktree(planned, repository.environment, pytest.fail):
        assert not planned.place.is_relative_to(repository.path)
        assert stat.S_IMODE(planned.place.stat().st_mode) == 0o700

    assert not planned.place.exists()
    assert list((repository.path / ".odek/worktrees").iterdir()) == []


async def test_eight_at_once_are_made_and_removed(repository: Repository) -> None:
    """They come and go side by side, so that now and then the last of them goes while one is made."""
    before = repository.state()
    home = repository.path.parent / "home"
    found = await find_repository(repository.path, repository.environment)

    async def one(number: int) -> None:
        planned = plan_worktree(home, found)
        async with open_worktree(planned, repository.environment, pytest.fail):
            (planned.place / "a.txt").write_text(f"{number}\n")
            changes = await changes_in(planned, repository)
        assert f"+{number}\n" in changes.fitting(10_000)[0]

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(one, number)
    assert repository.state() == before


@pytest.mark.parametrize("moment", [0.0, 0.02, 0.06, 0.12])
async def test_a_cancel_at_any_moment_leaves_nothing(moment: float, repository: Repository) -> None:
    """From the first file to the work in it: all is as it was."""
    before = repository.state()
    home = repository.path.parent / "home"
    found = await find_repository(repository.path, repository.environment)
    with trio.move_on_after(moment):
        async with open_worktree(plan_worktree(home, found), repository.environment, pytest.fail):
            await trio.sleep_forever()

    assert repository.state() == before
    assert not (home / "worktrees").exists() or list((home / "worktrees").iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(repository: Repository) -> None:
    """Only once its owner is dead; one that lives keeps its own."""
    before = repository.state()
    home = repository.path.parent / "home"
    with subprocess.Popen(
        [sys.executable, worktree_owner.__file__, str(repository.path), str(home)],
        env=repository.environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        place = Path(owner.stdout.readline().strip())
        assert place.is_dir()
        sweep_worktrees(home)
        assert place.is_dir()
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    (home / "worktrees" / f".{place.name}.json.1-0123456789abcdef.tmp").touch()
    (home / "worktrees/notes.txt").touch()
    named = list(stale_worktrees(home, remove=False))
    assert place.is_dir()
    sweep_worktrees(home)

    assert named == [home / "worktrees" / place.name]
    assert not place.exists()
    assert repository.state() == before
    left = {path.name for path in (home / "worktrees").iterdir()}
    assert left == {"notes.txt", f".{place.name}.json.1-0123456789abcdef.tmp"}
