"""What a command says on its way out holds no secret."""

from pathlib import Path

import pytest

from odek.cli.last_words import say, say_where
from tests.support.cli import Odek

TOKEN = "ghp" + "_" + "a1B2c3D4e5F6" * 3


def test_an_error_and_its_traceback_are_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Known formats, values of variables that secrets go by, and what secrets.env brought."""
    (tmp_path / "secrets.env").write_text("ANYTHING=violet-umbrella\n")
    monkeypatch.setenv("ODEK_HOME", str(tmp_path))
    monkeypatch.setenv("SOME_API_KEY", "crimson-elephant")

    say(f"cannot reach x: {TOKEN} violet-umbrella")
    try:
        raise ValueError("crimson-elephant")
    except ValueError as error:
        say_where(error)

    told = capsys.readouterr().err
    assert told.startswith("odek: cannot reach x: [REDACTED:github-token] [REDACTED:known-secret]\n")
    assert told.endswith("ValueError: [REDACTED:known-secret]\n")
    assert "Traceback" in told


def test_a_setting_in_secrets_env_is_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever keeps the model and the address beside the key can read an error about them."""
    settings = {"ODEK_MODEL": "some-long-model", "OPENAI_BASE_URL": "http://ada.example/v1"}
    lines = [f"{name}={value}" for name, value in (settings | {"ODEK_API_KEY": "violet-umbrella"}).items()]
    (tmp_path / "secrets.env").write_text("\n".join(lines))
    monkeypatch.setenv("ODEK_HOME", str(tmp_path))

    say("some-long-model at http://ada.example/v1 with violet-umbrella")

    told = capsys.readouterr().err
    assert told == "odek: some-long-model at http://ada.example/v1 with [REDACTED:known-secret]\n"


def test_the_working_directory_is_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``PWD`` sounds like a password and holds none: paths in an error stay readable."""
    monkeypatch.setenv("ODEK_HOME", str(tmp_path))
    monkeypatch.setenv("PWD", "/home/ada/project")

    say("cannot read /home/ada/project/notes.md")

    assert capsys.readouterr().err == "odek: cannot read /home/ada/project/notes.md\n"


def test_a_secrets_file_that_cannot_be_read_is_no_second_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be the very reason for the error that is told."""
    (tmp_path / "secrets.env").write_text("nonsense\n")
    monkeypatch.setenv("ODEK_HOME", str(tmp_path))

    say("secrets.env: line 1: expected NAME=VALUE")

    assert capsys.readouterr().err == "odek: secrets.env: line 1: expected NAME=VALUE\n"


async def test_an_argument_that_holds_a_key_is_not_repeated(tmp_path: Path) -> None:
    """An error that quotes what it was given quotes no credential."""
    done = await Odek(tmp_path).run("run", "-c", f"{TOKEN}.txt", "x")

    assert done.status == 3
    assert TOKEN not in done.stderr
    assert "[REDACTED:github-token]" in done.stderr


def test_what_a_terminal_would_obey_is_written_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error may quote a project's file or a server: no escape sequence of theirs reaches the terminal."""
    monkeypatch.setenv("ODEK_HOME", str(tmp_path))

    say('model "\x1b[2Jx\u202e" needs an endpoint:\n[1] a')

    assert capsys.readouterr().err == 'odek: model "\\x1b[2Jx\\u{202e}" needs an endpoint:\n[1] a\n'
