"""Directories that are reached without following a link."""

import os
from pathlib import Path

import pytest

from odek.storage.descent import descend
from tests.support.permissions import locked


def test_it_opens_the_directory_itself(tmp_path: Path) -> None:
    """What is done by the descriptor happens in the directory, wherever its path leads by then."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    with descend(tmp_path / "a" / "b", changing=True) as directory:
        (tmp_path / "a").rename(tmp_path / "moved")
        (tmp_path / "a").symlink_to("/")
        os.close(os.open("made", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=directory))

    assert (tmp_path / "moved" / "b" / "made").exists()


@pytest.mark.parametrize("changing", [False, True])
@pytest.mark.parametrize("link", ["a", "a/b"])
def test_a_link_on_the_way_is_an_error(tmp_path: Path, link: str, *, changing: bool) -> None:
    """Neither the last part nor one before it may be a link, even to where the path led before."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / link).rename(tmp_path / "real")
    (tmp_path / link).symlink_to(tmp_path / "real")

    with (
        pytest.raises(OSError, match=r"Not a directory|symbolic links"),
        descend(tmp_path / "a" / "b", changing=changing),
    ):
        pass


def test_missing_directories_are_made_if_asked_for(tmp_path: Path) -> None:
    """They get what the umask leaves; without being asked, a missing one is an error."""
    with pytest.raises(FileNotFoundError), descend(tmp_path / "x" / "y"):
        pass
    before = os.umask(0o027)
    try:
        with descend(tmp_path / "x" / "y", changing=True, make=True):
            pass
    finally:
        os.umask(before)

    assert (tmp_path / "x" / "y").stat().st_mode & 0o777 == 0o750


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    """Success, an error in the block and a missing part all give every descriptor back."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(5):
        with descend(tmp_path / "a" / "b"):
            pass
        with pytest.raises(ValueError, match="mine"), descend(tmp_path / "a"):
            raise ValueError("mine")
        with pytest.raises(FileNotFoundError), descend(tmp_path / "a" / "c" / "d"):
            pass

    assert len(list(Path("/dev/fd").iterdir())) == before


def test_the_right_to_search_is_enough_to_pass(tmp_path: Path) -> None:
    """A directory on the way that may not be listed is no obstacle."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    with locked(tmp_path / "a", 0o111), descend(tmp_path / "a" / "b"):
        pass


def test_the_root_is_a_directory_too() -> None:
    """The path of a file in the root ends there."""
    with descend(Path("/")) as directory:
        assert os.path.samestat(os.fstat(directory), os.lstat("/"))
