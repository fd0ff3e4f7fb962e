"""What ``glob`` and ``tree`` show of a directory, with git itself as the judge of what is ignored."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from odek.errors import TargetChangedError, ToolError
from odek.tools.directory_listing import GLOB_PATHS
from odek.tools.listing import GlobTool, TreeTool
from odek.tools.search_files import SearchFilesTool
from odek.tools.walk import Walk
from tests.support.permissions import locked
from tests.support.tool_calls import SCOPE, call, prepare
from tests.support.waiting import HANG_SECONDS

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge")


@pytest.fixture
def glob(tmp_path: Path) -> GlobTool:
    """A glob tool in an empty workspace."""
    return GlobTool(tmp_path, trio.CapacityLimiter(4))


@pytest.fixture
def tree(tmp_path: Path) -> TreeTool:
    """A tree tool in an empty workspace."""
    return TreeTool(tmp_path, trio.CapacityLimiter(4))


def make(root: Path, *names: str) -> None:
    """Make files below ``root``; a name with a final slash is a directory."""
    for name in names:
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()


async def test_pattern_without_a_slash_matches_at_any_depth(glob: GlobTool, tmp_path: Path) -> None:
    """Names are found in all directories, hidden ones included, and come sorted."""
    make(tmp_path, "b.py", "a/x/c.py", "a/a.py", ".hidden/d.py", "a/a.txt", ".git/e.py")

    assert (await call(glob, pattern="*.py")).content == ".hidden/d.py\na/a.py\na/x/c.py\nb.py"


async def test_what_cannot_be_read_as_a_file_is_marked(
    glob: GlobTool, tree: TreeTool, tmp_path: Path
) -> None:
    """A pipe, a socket or a device is shown as what it is, by both tools."""
    make(tmp_path, "a")
    os.mkfifo(tmp_path / "b")
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(tmp_path):
        server.bind("c")
    (tmp_path / "d").symlink_to("b")

    assert (await call(glob, pattern="*")).content == "a\nb (named pipe)\nc (socket)\nd"
    assert (await call(tree)).content == "./\n  a\n  b (named pipe)\n  c (socket)\n  d (link)"
    devices = (await call(glob, pattern="{null,zero}", path="/dev")).content
    assert devices.splitlines()[:2] == ["/dev/null (device)", "/dev/zero (device)"]


async def test_paths_are_as_other_tools_take_them(glob: GlobTool, tmp_path: Path) -> None:
    """A search in a directory answers with paths seen from the workspace."""
    make(tmp_path, "a/b/c.py", "a/d.py")

    assert (await call(glob, pattern="*.py", path="a")).content == "a/b/c.py\na/d.py"
    assert (await call(glob, pattern="b/", path="a")).content == "a/b/"


async def test_no_match_says_what_was_left_out(glob: GlobTool, tmp_path: Path) -> None:
    """An empty answer names the number of ignored entries, which may be the reason."""
    make(tmp_path, "build/x.py")
    (tmp_path / ".gitignore").write_text("build/\n")

    assert (await call(glob, pattern="*.py")).content == "[no files match; 1 ignored by git's rules]"
    assert (await call(glob, pattern="*.py", path="build")).content == "build/x.py"


@pytest.mark.parametrize("pattern", ["", "/etc/*", "../*", "a/../../b", "~/x", "{a,b}" * 8])
async def test_patterns_that_leave_or_explode_are_refused(glob: GlobTool, pattern: str) -> None:
    """A pattern stays below its directory and has a bounded number of alternatives."""
    with pytest.raises(ToolError, match="the pattern"):
        await prepare(glob, pattern=pattern)


async def test_10000_files_are_bounded(glob: GlobTool, tree: TreeTool, tmp_path: Path) -> None:
    """Ten thousand files give an answer of bounded length that says how many there are."""
    for directory in range(10):
        (tmp_path / f"d{directory}").mkdir()
        for number in range(1000):
            (tmp_path / f"d{directory}" / f"f{number:04}.txt").touch()

    found = (await call(glob, pattern="**/*.txt")).content.splitlines()
    shown = (await call(tree)).content.splitlines()

    assert found[0] == "d0/f0000.txt"
    assert found[GLOB_PATHS:] == [f"[the first {GLOB_PATHS} of 10,000 files]"]
    assert len(shown) < 420
    assert "  d9/ (1000 entries)" in shown
    assert "    … 900 more" in shown


async def test_tree_shows_directories_first(tree: TreeTool, tmp_path: Path) -> None:
    """A tree is indented by depth, counts what lies deeper, and marks links without following them."""
    make(tmp_path, "z/deep/er/x", "z/deep/er/y", "a.txt", "empty/", "m/n.log", ".git/config")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "loop").symlink_to(".")

    assert (await call(tree)).content.splitlines() == [
        "./",
        "  empty/",
        "  m/",
        "  z/",
        "    deep/",
        "      er/ (2 entries)",
        "  .gitignore",
        "  a.txt",
        "  loop (link)",
        "[1 ignored by git's rules]",
    ]


async def test_odd_names_stay_on_their_line(glob: GlobTool, tree: TreeTool, tmp_path: Path) -> None:
    """A name that is no UTF-8, or holds a line break or an escape sequence, is written out."""
    for name in (b"caf\xe9.txt", b"a\nb.txt", b"\x1b[31m.txt"):
        (tmp_path / os.fsdecode(name)).touch()

    names = {"a\\x0ab.txt", "caf\\xe9.txt", "\\x1b[31m.txt"}
    assert set((await call(glob, pattern="*.txt")).content.splitlines()) == names
    assert {line.strip() for line in (await call(tree)).content.splitlines()} == {"./", *names}


async def test_unreadable_directory_is_counted(glob: GlobTool, tmp_path: Path) -> None:
    """What may not be read is left out and said."""
    make(tmp_path, "private/inside")

    with locked(tmp_path / "private"):
        content = (await call(glob, pattern="*")).content

    assert content == "[no files match; 1 directories could not be read]"


async def test_directory_is_asked_for_and_is_one(tree: TreeTool, glob: GlobTool, tmp_path: Path) -> None:
    """A missing directory and a file are errors of one line."""
    make(tmp_path, "file")

    with pytest.raises(ToolError, match=r"^nowhere does not exist$"):
        await prepare(tree, path="nowhere")
    with pytest.raises(ToolError, match=r"^file is not a directory$"):
        await prepare(glob, pattern="*", path="file")


async def test_link_planted_after_the_check_is_not_walked(tree: TreeTool, tmp_path: Path) -> None:
    """A directory exchanged for a link is not listed."""
    make(tmp_path, "d/", "other/x")
    prepared = await prepare(tree, path="d")
    (tmp_path / "d").rmdir()
    (tmp_path / "d").symlink_to("other")

    with pytest.raises(TargetChangedError):
        await prepared.run(SCOPE)


async def test_pipe_as_gitignore_does_not_block(tree: TreeTool, tmp_path: Path) -> None:
    """Rules that are no regular file, or hold a line that makes no sense, are no obstacle."""
    make(tmp_path, "a/x.log", "a/y")
    os.mkfifo(tmp_path / ".gitignore")
    (tmp_path / "a" / ".gitignore").write_text("[z-a]\n!\n\\\n*.log\n")

    with trio.fail_after(HANG_SECONDS):
        content = (await call(tree)).content

    assert content == "./\n  a/\n    .gitignore\n    y\n  .gitignore (named pipe)\n[1 ignored by git's rules]"


def walked(start: Path, workspace: Path) -> list[str]:
    """Return the files of a walk."""
    return sorted(entry.relative for entry in Walk(start, workspace, lambda: None) if not entry.is_directory)


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whoever runs the tests may ignore files of their own everywhere."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.getbasetemp()))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


def git_files(root: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    """Return the files that git would not ignore."""
    environment = environment or {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
    }
    subprocess.run(["git", "init", "-q", root], check=True, env=environment)
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--others", "--exclude-standard"],
        check=True,
        env=environment,
        capture_output=True,
    )
    return sorted(os.fsdecode(name) for name in listed.stdout.split(b"\0") if name)


@needs_git
@pytest.mark.parametrize(
    "rules",
    [
        {".gitignore": "*.log\n!keep.log\n"},
        {".gitignore": "build/\n!build/keep.log\n"},
        {".gitignore": "/a\n", "a/.gitignore": "!*\n"},
        {".gitignore": "*.txt\n", "a/.gitignore": "!x.txt\n", "a/b/.gitignore": "x.txt\n"},
        {".gitignore": "a/**/x.txt\n**/keep.log\n"},
        {".gitignore": "a/*\n!a/b\n"},
        {".gitignore": "# comment\n\\#odd\n\\!odd\ntrailing   \n\r\n*.log\r\n"},
        {".gitignore": "*\n!*/\n!x.txt\n"},
        {"a/.gitignore": "/b/\nx.txt\n"},
        {".git/info/exclude": "*.log\n", ".gitignore": "!keep.log\n"},
        {".gitignore": "\ufeff*.log\n"},
        {".gitignore": "a/b/\n", "a/.gitignore": "!b/\n"},
        {".gitignore": "back\\\\  \n"},
        {".gitignore": "*.txt" + " " * 40_000 + "x\n"},
    ],
)
def test_ignored_is_what_git_ignores(tmp_path: Path, rules: dict[str, str]) -> None:
    """Negation, anchors, nested files, info/exclude and odd lines mean what they mean to git."""
    make(tmp_path, "x.txt", "keep.log", "other.log", "#odd", "!odd", "trailing", "build/keep.log", "back\\")
    make(tmp_path, "a/x.txt", "build/x", "a/keep.log", "a/b/x.txt", "a/b/c/x.txt", "a/b/other.log", "b/x.txt")
    expected_setup = git_files(tmp_path)
    for name, text in rules.items():
        (tmp_path / name).write_text(text)

    assert expected_setup
    assert walked(tmp_path, tmp_path) == git_files(tmp_path)


@needs_git
@pytest.mark.parametrize(
    ("config", "rules"),
    [
        ({}, ".config/git/ignore"),
        ({".gitconfig": "[user]\n\tname = x\n[core]\n\texcludesFile = ~/rules # mine\n"}, "rules"),
        ({".config/git/config": '[CORE]\nexcludesfile="~/rules"\n'}, "rules"),
        ({".gitconfig": "[other]\nexcludesfile = ~/none\n"}, ".config/git/ignore"),
    ],
)
async def test_what_a_person_ignores_everywhere_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, str], rules: str
) -> None:
    """The rules of one's own git configuration count in every repository, and its own files overrule them."""
    home, root = tmp_path / "home", tmp_path / "work"
    for name, text in {**config, rules: "*.log\nnotes/\n"}.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    make(root, "a.log", "keep.log", "x.txt", "notes/n.txt")
    for name in ("a.log", "keep.log"):
        (root / name).write_text("word\n")
    (root / ".gitignore").write_text("!keep.log\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_SYSTEM": "/dev/null"}
    disk = trio.CapacityLimiter(1)

    listed = await call(GlobTool(root, disk), pattern="*")
    found = await call(SearchFilesTool(root, disk), pattern="word")

    assert listed.content.split() == git_files(root, environment)
    assert listed.content.split() == [".gitignore", "keep.log", "x.txt"]
    assert found.content == "keep.log\n1: word"


@needs_git
def test_rules_of_the_repository_itself_hold_wherever_they_lie(tmp_path: Path) -> None:
    """Linked worktrees and submodules have theirs elsewhere, and a repository may name a file of its own."""
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
    }
    main, linked, inner = tmp_path / "main", tmp_path / "linked", tmp_path / "main" / "inner"

    def git(*words: str) -> None:
        own = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always")
        subprocess.run(["git", "-C", main, *own, *words], check=True, env=environment, capture_output=True)

    git_files(main, environment)
    git("commit", "--allow-empty", "-m", "first")
    git("worktree", "add", str(linked))
    git("submodule", "add", str(main), "inner")
    (main / ".git" / "info" / "exclude").write_text("*.log\n")
    (main / ".git" / "modules" / "inner" / "info" / "exclude").write_text("*.tmp\n")
    (tmp_path / "rules").write_text("*.bak\n")
    git("config", "core.excludesFile", str(tmp_path / "rules"))

    for directory, expected in ((main, ["a.tmp"]), (linked, ["a.tmp"]), (inner, ["a.bak", "a.log"])):
        make(directory, "a.log", "a.tmp", "a.bak")
        others = [name for name in walked(directory, directory) if name.startswith("a.")]
        assert others == expected
        assert set(others) <= set(git_files(directory, environment))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with files to be ignored."""
    root = tmp_path_factory.mktemp("repository")
    directories = ["", "a/", "b/", "a/a/", "a/b/", "b/a.b/", "a/b/a/"]
    make(root, *(f"{directory}{name}" for directory in directories for name in ("x", "a.x", "ab", "-", "!b")))
    return root


PIECES = [
    "a",
    "b",
    "x",
    "*",
    "**",
    "?",
    "/",
    "/",
    ".",
    "[ab]",
    "[!a]",
    "[^x-z]",
    "\\",
    "-",
    " ",
    "!",
    "[[:alpha:]]",
    "[",
]
RULE = (
    st.tuples(
        st.sampled_from(["", "", "!", "#", "/"]), st.lists(st.sampled_from(PIECES), min_size=1, max_size=5)
    )
    .map(lambda rule: rule[0] + "".join(rule[1]))
    # Behind other characters git takes two stars for one or for many, depending on how it got there.
    .filter(lambda rule: not re.search(r"[^/!]\*\*|\*\*[^/*]|\*\*\*", rule))
)
RULES = st.lists(RULE, max_size=4).map("\n".join)


@needs_git
@settings(max_examples=30, deadline=None)
@given(RULES, RULES)
@example("", "[a-[[:alpha:]]")
@example("[b-a]x\n[[:none:]]", "[]-a]b\n[[:alpha:]")
@example("[a-[:alpha:]]", "[[:alpha:]-z]\n[--b]")
def test_any_rules_mean_what_they_mean_to_git(repository: Path, outer: str, inner: str) -> None:
    """Whatever the lines of two nested files are, the walk leaves out what git leaves out."""
    check_against_git(repository, outer, inner)


@needs_git
@pytest.mark.slow
@settings(max_examples=2_000, deadline=None)
@given(RULES, RULES)
def test_many_rules_mean_what_they_mean_to_git(repository: Path, outer: str, inner: str) -> None:
    """The long form of the same."""
    check_against_git(repository, outer, inner)


def check_against_git(repository: Path, outer: str, inner: str) -> None:
    """Compare a walk with git's list, with these rules at the top and one folder down."""
    (repository / ".gitignore").write_text(outer)
    (repository / "a" / ".gitignore").write_text(inner)

    assert walked(repository, repository) == git_files(repository)


@needs_git
def test_rules_above_the_start_count(tmp_path: Path) -> None:
    """A walk from inside a repository obeys the rules from its root on, though the workspace is deeper."""
    make(tmp_path, "a/b/x.log", "a/b/y.txt", "a/z.log")
    (tmp_path / ".gitignore").write_text("*.log\n")
    git_files(tmp_path)

    assert walked(tmp_path / "a" / "b", tmp_path / "a" / "b") == ["y.txt"]


def test_rules_of_a_workspace_without_git_count(tmp_path: Path) -> None:
    """Without a repository the rules begin at the workspace."""
    make(tmp_path, "a/x.log", "a/y.txt")
    (tmp_path / ".gitignore").write_text("*.log\n")

    assert walked(tmp_path / "a", tmp_path) == ["y.txt"]
    assert walked(tmp_path / "a", tmp_path / "elsewhere") == ["x.log", "y.txt"]
