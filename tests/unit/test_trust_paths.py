"""What reading, writing and removing a path means, by where it leads."""

from pathlib import Path

import pytest

from odek.trust import paths
from odek.trust.effects import Effects
from odek.trust.paths import Where
from odek.trust.policy import assess
from odek.trust.risk import Risk
from odek.trust.shell import classify

HOME = Path("/home/u")
PROJECT = HOME / "work/project"
HERE = Where(PROJECT, PROJECT, HOME, HOME / ".odek")


def below(temporary: str) -> Where:
    """Return a workspace in a temporary directory."""
    workspace = Path(temporary)
    return Where(workspace, workspace, HOME, HOME / ".odek")


@pytest.mark.parametrize("workspace", ["/tmp/run/project", "/var/tmp/run/a/b", "/dev/shm/x/y"])
def test_what_surrounds_a_temporary_workspace_is_not_temporary(workspace: str) -> None:
    """The folder that holds the workspace is somebody's, even below a temporary directory."""
    where = below(workspace)
    beside = Path(workspace).parent / "other"

    assert classify("echo x > ../other/a", where).risk is Risk.SYSTEM_WRITE
    assert classify(f"echo x > {beside}/a", where).risk is Risk.SYSTEM_WRITE
    assert classify("cd .. && echo x > a", where).risk is Risk.SYSTEM_WRITE
    assert classify("rm -rf ../other", where).risk is Risk.DESTRUCTIVE
    assert classify("rm -rf ..", where).risk is Risk.DESTRUCTIVE
    assert assess(Effects(writes=(beside / "a",)), where).risk is Risk.SYSTEM_WRITE


def test_a_workspace_right_below_the_temporary_directory_has_neighbours() -> None:
    """What is reached by ``..`` is not the agent's; what is named as temporary is."""
    where = below("/tmp/project")

    assert classify("echo x > ../notes", where).risk is Risk.SYSTEM_WRITE
    assert classify("cd ..; echo x > notes", where).risk is Risk.SYSTEM_WRITE
    assert classify("rm -rf ../other", where).risk is Risk.DESTRUCTIVE
    assert classify("echo x > notes", where).risk is Risk.LOCAL_WRITE
    assert classify("echo x > /tmp/notes", where).risk is Risk.LOCAL_WRITE
    assert classify('d=$(mktemp -d); echo x > "$d/a"; rm -rf "$d"', where).risk is Risk.LOCAL_WRITE
    assert classify("echo x > sub/../notes", where).risk is Risk.LOCAL_WRITE


def test_temporary_directories_count_as_the_workspace_elsewhere() -> None:
    """With the workspace in a home, scratch files are local."""
    assert classify("echo x > /tmp/a; rm -r /tmp/b", HERE).risk is Risk.LOCAL_WRITE
    assert classify("rm -rf /tmp", HERE).risk is Risk.DESTRUCTIVE


OBEYED = (
    "AGENTS.md",
    "docs/agents.MD",
    "odek.json",
    ".envrc",
    "sub/.envrc",
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".idea/runConfigurations/x.xml",
    ".husky/pre-commit",
    ".pre-commit-config.yaml",
    ".git/config",
    ".git/hooks/pre-push",
    ".git/info/exclude",
    "vendor/lib/.git/config",
    ".github/workflows/ci.yml",
    ".github/actions/x/action.yml",
)
ORDINARY = (
    "Makefile",
    "package.json",
    "conftest.py",
    "README.md",
    "docs/agents/notes.md",
    ".gitignore",
    ".github/CODEOWNERS",
    ".vscode/extensions.json",
    ".idea/modules.xml",
    "my.envrc.txt",
)


@pytest.mark.parametrize("name", OBEYED)
def test_files_that_are_obeyed_later_are_guarded(name: str) -> None:
    """From the file tools and from the shell alike."""
    assert assess(Effects(writes=(PROJECT / name,)), HERE).risk is Risk.SYSTEM_WRITE
    assert classify(f"cp x {name}", HERE).risk is Risk.SYSTEM_WRITE
    assert classify(f"rm {name}", HERE).risk is Risk.SYSTEM_WRITE
    assert assess(Effects(reads=(PROJECT / name,)), HERE).risk is Risk.SAFE


@pytest.mark.parametrize("name", ORDINARY)
def test_files_that_only_a_person_starts_are_not(name: str) -> None:
    """What runs when somebody builds or tests is a file like any other."""
    assert assess(Effects(writes=(PROJECT / name,)), HERE).risk is Risk.LOCAL_WRITE
    assert classify(f"cp x {name}", HERE).risk is Risk.LOCAL_WRITE


def test_a_process_is_a_door_to_every_path() -> None:
    """The root and the directory of a process lead where they lead."""
    assert classify("cat /proc/1/root/etc/shadow", HERE).risk is Risk.SYSTEM_WRITE
    assert classify("cat /proc/self/cwd/../../.ssh/config", HERE).risk is Risk.SYSTEM_WRITE
    assert classify("echo x > /proc/$$/root/home/u/.bashrc", HERE).risk is Risk.SYSTEM_WRITE
    assert classify("cat /proc/7/task/7/root/root/x", HERE).risk is Risk.SYSTEM_WRITE


def test_reading_everything_above_a_home_reads_the_home() -> None:
    """A tree that holds a home holds its credentials."""
    for command in ("grep -r x /home", "tar c /home", "cp -r / /tmp/x", "rg x .."):
        expected = Risk.SAFE if command == "rg x .." else Risk.SYSTEM_WRITE
        assert classify(command, HERE).risk is expected, command


def test_a_place_is_shown_as_a_person_writes_it() -> None:
    """The home is a tilde, and what is not known an ellipsis."""
    assert paths.shown(paths.place("/home/u/a", "/"), HERE) == "~/a"
    assert paths.shown(paths.place("/home/u", "/"), HERE) == "~"
    assert paths.shown(paths.place("/home/user/a", "/"), HERE) == "/home/user/a"
    assert paths.shown(paths.place(f"a/{paths.UNRESOLVED}", "/tmp"), HERE) == "/tmp/a/…"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("rm -rf .", "removes the whole workspace"),
        ("rm -rf ./*", "removes everything in the workspace"),
        ("rm -rf ..", "removes all that the workspace lies in: ~/work"),
        ("rm -rf /", "removes all that the workspace lies in: /"),
    ],
)
def test_what_takes_the_workspace_along_is_said(command: str, reason: str) -> None:
    """The person reads how far the removal goes."""
    (part,) = classify(command, HERE).parts

    assert (part.risk, part.reason) == (Risk.DESTRUCTIVE, reason)
