"""Where odek keeps its files."""

import os
import pwd
from pathlib import Path

import pytest

from odek.errors import ConfigError
from odek.home import (
    access_hint,
    expanded,
    forget_unusable_home,
    home_directory,
    home_name,
    person_home,
    working_directory,
)
from tests.support.permissions import locked


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HOME": "/home/a"}, "/home/a/.odek"),
        ({"HOME": "/home/a", "ODEK_HOME": "/data/odek"}, "/data/odek"),
        ({"HOME": "/home/a", "ODEK_HOME": ""}, "/home/a/.odek"),
    ],
)
def test_the_home_is_below_the_persons_or_where_they_say(environ: dict[str, str], expected: str) -> None:
    """``ODEK_HOME`` moves it; empty counts as not set."""
    assert home_directory(environ) == Path(expected)
    assert home_name(environ) == expected


def test_a_relative_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later change of the working directory does not move it."""
    monkeypatch.chdir(tmp_path)
    assert home_directory({"ODEK_HOME": "here"}) == tmp_path / "here"


def test_a_tilde_means_the_persons_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell would have it."""
    monkeypatch.setenv("HOME", "/home/b")
    assert home_directory({"ODEK_HOME": "~/x"}) == Path("/home/b/x")


@pytest.mark.parametrize("home", ["", "somewhere"])
def test_a_home_that_is_no_place_is_that_of_the_user(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty or relative HOME scatters no files over the root or the workspace."""
    monkeypatch.setenv("HOME", home)
    forget_unusable_home()
    own = Path(pwd.getpwuid(os.geteuid()).pw_dir)

    assert person_home() == expanded("~") == own
    assert home_directory(os.environ.copy() | {"ODEK_HOME": ""}) == own / ".odek"


def test_a_home_that_is_a_place_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """It need not exist."""
    monkeypatch.setenv("HOME", "/nonexistent/home")
    forget_unusable_home()

    assert person_home() == Path("/nonexistent/home")


def test_the_home_of_a_stranger_is_not_made_up() -> None:
    """A path that begins with it is an error which names it."""
    with pytest.raises(ConfigError, match=r"~no-such-user-here/x: that home directory is not known"):
        expanded("~no-such-user-here/x")


def test_no_home_at_all_is_said() -> None:
    """A user who is nobody is told which variable to set."""
    with pytest.raises(ConfigError, match="set HOME or ODEK_HOME"):
        home_directory({"ODEK_HOME": "~no-such-user-here/x"})


def test_a_home_of_somebody_else_is_told_how_to_get_back(tmp_path: Path) -> None:
    """After one run with `sudo` the person learns whose the files are, and both ways on."""
    home = tmp_path / "her files" / ".odek"
    home.mkdir(parents=True)
    reason = f"cannot read {home}/sessions: permission denied"
    with locked(home):
        told = access_hint(reason, {"HOME": str(home.parent)})

    way = "sudo chown -R" if os.geteuid() == 0 else "chmod u+rwx"  # only the superuser can make it another's
    assert way in told
    assert f" '{home}'`" in told  # as a shell takes it
    assert "ODEK_HOME" in told


def test_a_home_that_cannot_be_made_is_told_where_else_to_go(tmp_path: Path) -> None:
    """A home directory that cannot be written to, as in many containers."""
    environ = {"HOME": str(tmp_path)}

    assert access_hint(f"cannot create {tmp_path}/.odek: permission denied", environ) == (
        "; set ODEK_HOME to a directory of yours"
    )


@pytest.mark.parametrize("reason", ["the disk is full", "./odek.json cannot be written: permission denied"])
def test_what_has_nothing_to_do_with_the_home_gets_no_advice(reason: str, tmp_path: Path) -> None:
    """Advice that does not help is worse than none."""
    assert access_hint(reason, {"HOME": str(tmp_path)}) == ""


@pytest.mark.parametrize("is_link", [False, True], ids=["a file", "a dangling link"])
def test_something_else_of_that_name_is_named(tmp_path: Path, is_link: bool) -> None:
    """Whatever could not be done in the home: the person learns what has its name, and both ways on."""
    home = tmp_path / ".odek"
    if is_link:
        home.symlink_to("nowhere")
    else:
        home.write_text("a note")

    told = access_hint("~/.odek/config.json cannot be read: Not a directory", {"HOME": str(tmp_path)})

    assert f"{home} is {'a link that leads to ' if is_link else ''}no directory: move it away" in told
    assert "ODEK_HOME" in told


def test_a_removed_working_directory_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever needs to know where it is says what to do, also a home that is relative to it."""
    place = tmp_path / "gone"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()

    for ask in (working_directory, lambda: home_directory({"ODEK_HOME": "here"})):
        with pytest.raises(ConfigError, match="no longer exists; change to one that does"):
            ask()
