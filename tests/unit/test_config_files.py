"""Reading the files of the configuration."""

import os
from pathlib import Path

import pytest

from odek.config.files import load
from odek.errors import ConfigError
from odek.home import home_directory


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home directory of odek, without files."""
    path = tmp_path / "user" / ".odek"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return an empty project."""
    path = tmp_path / "project"
    path.mkdir()
    return path


def problem_of(home: Path, workspace: Path) -> str:
    """Return the error of loading, in which ``~`` is the parent of ``home``."""
    with pytest.raises(ConfigError) as caught:
        load(home, workspace, {"HOME": str(home.parent)}, {})
    return str(caught.value)


def test_all_files_are_found(home: Path, workspace: Path) -> None:
    """The two configurations and the secrets come from their places; names are as people write them."""
    (home / "config.json").write_text('{"model": "h", "max_iterations": 5}')
    (home / "secrets.env").write_text("ODEK_API_KEY=from-secrets\n")
    (home / "secrets.env").chmod(0o600)
    (workspace / "odek.json").write_text('{"model": "p"}')

    resolved = load(home, workspace, {"HOME": str(home.parent)}, {"no_color": True})

    assert (resolved.config.model, resolved.config.max_iterations) == ("p", 5)
    assert resolved.config.api_key == "from-secrets"
    assert resolved.config.no_color
    assert resolved.notices == ()
    assert {origin.name for origin in resolved.origins.values()} == {
        "./odek.json",
        "~/.odek/config.json",
        "ODEK_API_KEY in secrets.env",
        "--no-color",
    }


def test_missing_files_and_directories_are_fine(tmp_path: Path) -> None:
    """Before the first use there is nothing, and nothing is made."""
    load(tmp_path / "no" / "home", tmp_path / "no" / "project", {}, {})

    assert list(tmp_path.iterdir()) == []


def test_a_byte_order_mark_is_skipped(home: Path, workspace: Path) -> None:
    """Files as some editors write them are read."""
    (home / "config.json").write_bytes(b'\xef\xbb\xbf{"model": "m"}\r\n')
    (home / "secrets.env").write_bytes(b"\xef\xbb\xbfODEK_MAX_ITER=7\r\n")

    assert load(home, workspace, {}, {}).config.model == "m"
    assert load(home, workspace, {}, {}).config.max_iterations == 7


def test_secrets_that_others_can_read_are_noticed(home: Path, workspace: Path) -> None:
    """The notice is gone once its command was followed."""
    (home / "secrets.env").write_text("A=b")
    (home / "secrets.env").chmod(0o644)
    environ = {"HOME": str(home.parent)}

    (notice,) = load(home, workspace, environ, {}).notices
    (home / "secrets.env").chmod(0o600)

    assert notice.endswith("chmod 600 ~/.odek/secrets.env")
    assert load(home, workspace, environ, {}).notices == ()


def test_links_are_followed(home: Path, workspace: Path, tmp_path: Path) -> None:
    """A configuration may be kept elsewhere."""
    (tmp_path / "dotfile.json").write_text('{"model": "linked"}')
    (home / "config.json").symlink_to(tmp_path / "dotfile.json")

    assert load(home, workspace, {}, {}).config.model == "linked"


@pytest.mark.parametrize("hard", [True, False])
def test_one_file_counts_as_one_layer(home: Path, workspace: Path, *, hard: bool) -> None:
    """A project file that is the home file has the home file's rights and gives no warning."""
    (home / "config.json").write_text('{"base_url": "http://h/v1"}')
    if hard:
        (workspace / "odek.json").hardlink_to(home / "config.json")
    else:
        (workspace / "odek.json").symlink_to(home / "config.json")

    resolved = load(home, workspace, {}, {})

    assert resolved.config.base_url == "http://h/v1"
    assert resolved.notices == ()


def test_a_pipe_is_not_waited_for(home: Path, workspace: Path) -> None:
    """A named pipe in the place of a file is an error at once."""
    os.mkfifo(workspace / "odek.json")

    assert problem_of(home, workspace) == "./odek.json is not a regular file; replace or remove it"


def test_a_directory_and_a_loop_of_links_are_named(home: Path, workspace: Path) -> None:
    """What cannot be read is an error, never taken for a missing file."""
    (workspace / "odek.json").symlink_to("odek.json")
    assert problem_of(home, workspace).startswith("./odek.json cannot be read: ")
    (home / "config.json").mkdir()
    assert problem_of(home, workspace) == "~/.odek/config.json is not a regular file; replace or remove it"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_named(home: Path, workspace: Path) -> None:
    """A file that may not be read is an error."""
    (home / "config.json").write_text("{}")
    (home / "config.json").chmod(0)

    assert problem_of(home, workspace) == "~/.odek/config.json cannot be read: Permission denied"


def test_a_huge_file_is_refused(home: Path, workspace: Path) -> None:
    """A sparse file of gigabytes is not read into memory."""
    with (workspace / "odek.json").open("wb") as file:
        file.truncate(5 << 30)

    assert (
        problem_of(home, workspace) == "./odek.json is larger than 1,048,576 bytes; that is no configuration"
    )


def test_what_is_not_utf8_is_refused(home: Path, workspace: Path) -> None:
    """The error names the byte, and shows none of the text."""
    (home / "secrets.env").write_bytes(b"KEY=\xff\xfe")

    assert (
        problem_of(home, workspace) == "~/.odek/secrets.env is not UTF-8 text: byte 4 does not belong there"
    )


def test_the_home_directory_can_be_moved() -> None:
    """``ODEK_HOME`` comes before ``~/.odek``, and is made absolute."""
    assert home_directory({"HOME": "/u"}) == Path("/u/.odek")
    assert home_directory({"HOME": "/u", "ODEK_HOME": ""}) == Path("/u/.odek")
    assert home_directory({"HOME": "/u", "ODEK_HOME": "/x/y"}) == Path("/x/y")
    assert home_directory({"HOME": "/u", "ODEK_HOME": "rel"}) == Path.cwd() / "rel"
