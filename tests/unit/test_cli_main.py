"""The command line itself: what is said to whoever has not named enough."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from odek.cli.last_words import say
from odek.cli.main import entry, main
from tests.support.cli import STARTS_IN_ASCII
from tests.support.permissions import locked

Output = pytest.CaptureFixture[str]


@pytest.mark.parametrize("words", [[], ["session"], ["memory"], ["memory", "extended"], ["config"]], ids=str)
def test_a_command_without_its_action_shows_its_help(words: list[str], capsys: Output) -> None:
    """Whoever types the first half of a command is shown the other half."""
    with pytest.raises(SystemExit) as left:
        main(words)

    told = capsys.readouterr()
    assert left.value.code == 0
    assert told.out.startswith(f"usage: {' '.join(['odek', *words])} ")
    assert told.err == ""


@pytest.mark.parametrize("words", [["bogus"], ["session", "bogus"], ["risk"]], ids=str)
def test_a_wrong_word_or_a_missing_argument_is_one_line(words: list[str], capsys: Output) -> None:
    """An error stays an error, and ends with 3."""
    with pytest.raises(SystemExit) as left:
        main(words)

    told = capsys.readouterr()
    assert (left.value.code, told.out, told.err.count("\n")) == (3, "", 1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sesion", "list"], "odek: argument COMMAND: invalid choice: 'sesion'; did you mean session?"),
        (["memory", "promot", "x"], "invalid choice: 'promot'; did you mean promote?"),
        (["fix the build"], "invalid choice: 'fix the build'; to give a task, type `odek run \"…\"`"),
        (["walk"], "invalid choice: 'walk' (choose from "),
        (["run", "--modle", "m", "x"], "unrecognized arguments: --modle; did you mean --model?"),
        (["run", "--json-lines", "x"], "unrecognized arguments: --json-lines (see `odek run --help`)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistyped_word_is_answered_with_the_one_meant(words: list[str], told: str, capsys: Output) -> None:
    """Who knows nearly how it is called need not read a list."""
    with pytest.raises(SystemExit) as left:
        main(words)

    assert left.value.code == 3
    assert told in capsys.readouterr().err


def test_files_that_are_closed_to_this_user_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """No internal error where the home belongs to somebody else: the path, and what to do."""
    home = tmp_path / "home"
    monkeypatch.setenv("ODEK_HOME", str(home))
    monkeypatch.setattr("sys.argv", ["odek", "ps"])
    (home / "run").mkdir(parents=True)
    say("this loads what an error needs, for another user may not read the modules")
    main(["ps"])
    capsys.readouterr()

    with locked(home), pytest.raises(SystemExit) as left:
        entry()

    told = capsys.readouterr().err
    assert left.value.code == 1
    assert told.startswith(f"odek: cannot use {home}/run: permission denied; ")
    assert "ODEK_HOME" in told
    assert told.count("\n") == 1


def test_a_command_with_a_default_action_does_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """``odek memory facts`` alone prints the facts, not its help."""
    monkeypatch.setenv("ODEK_HOME", str(tmp_path))

    assert main(["memory", "facts"]) == 0
    assert capsys.readouterr().out.startswith("user.md: ")


def test_ctrl_c_while_the_command_is_loaded_ends_it_quietly() -> None:
    """No traceback, and the status of an interrupted command."""
    program = """
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "odek.cli.main":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from odek.__main__ import entry
entry()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (130, b"")


@pytest.mark.parametrize(
    ("encoding", "told"),
    [
        ("ascii", "Zo\\u00eb \\ud83d\\ude00"),
        ("ascii:surrogateescape", "Zo\\u00eb \\ud83d\\ude00"),
        ("latin-1", "Zoë \\ud83d\\ude00"),
    ],
)
def test_any_text_is_shown_whatever_the_output_takes(tmp_path: Path, encoding: str, told: str) -> None:
    """A character that the locale's encoding lacks is escaped as in JSON, which stays JSON."""
    environ = os.environ | {"ODEK_HOME": str(tmp_path), "PYTHONUTF8": "0", "PYTHONIOENCODING": encoding}
    odek = [sys.executable, "-m", "odek", "memory", "facts"]
    (tmp_path / "memory").mkdir(mode=0o700)
    (tmp_path / "memory" / "user.md").write_text("Zoë 😀", encoding="utf-8")

    shown = subprocess.run(odek, env=environ, check=True, capture_output=True).stdout
    as_json = subprocess.run([*odek, "--json"], env=environ, check=True, capture_output=True).stdout

    codec = encoding.partition(":")[0]
    assert f"  [1] {told}\n" in shown.decode(codec)
    assert json.loads(as_json.decode(codec))["user"]["entries"][0]["text"] == "Zoë 😀"


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["memory", "facts"], 0),
        (["session", "search", "x"], 0),
        (["config", "show"], 0),
        (["risk", "ls"], 3),
        (["memory", "search", "x"], 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_a_removed_working_directory_stops_only_what_needs_one(
    command: list[str], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """What looks at odek's own files works; anything else says in a line where it stands."""
    monkeypatch.setenv("ODEK_HOME", str(tmp_path / "home"))
    place = tmp_path / "gone"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()

    assert main(command) == status

    said = "odek: the working directory no longer exists; change to one that does\n"
    assert capsys.readouterr().err == (said if status else "")


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["--version"]], ids=str)
def test_help_that_could_not_be_written_is_an_error(words: list[str]) -> None:
    """Whoever redirects it to a full disk is told, as for any other output."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "odek", *words], stdout=full, stderr=subprocess.PIPE, check=False
        )

    assert (done.returncode, done.stderr) == (1, b"odek: cannot write to stdout: the disk is full\n")


@STARTS_IN_ASCII
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every file name is UTF-8")
@pytest.mark.parametrize("utf8", ["1", "0"])
def test_a_file_is_found_whatever_the_bytes_of_its_name(tmp_path: Path, utf8: str) -> None:
    """Attached, imported or taken for a task, in any locale; one that is not there is named in a line."""
    environ = os.environ | {
        "ODEK_HOME": str(tmp_path / "home"),
        "PYTHONUTF8": utf8,
        "PYTHONCOERCECLOCALE": "0",
        "LC_ALL": "POSIX",
    }
    for name in ("ODEK_API_KEY", "DEEPSEEK_API_KEY", "OPENAI_API_KEY"):
        environ.pop(name, None)

    def odek(*words: str | bytes) -> subprocess.CompletedProcess[bytes]:
        argv = [sys.executable, "-m", "odek", *words]
        return subprocess.run(
            argv, env=environ, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )

    exported = odek("memory", "export")
    for path, data in {b"\xe9 \xc3\xab.json": exported.stdout, b"t\xff": b'{"goal": "help"}'}.items():
        (tmp_path / os.fsdecode(path)).write_bytes(data)

    attached = odek("run", "help", "--ctx", b"\xe9 \xc3\xab.json")
    missing = odek("run", "help", "--ctx", b"\xff\x1b")
    assert attached.returncode == 0, attached.stderr
    assert b"attached " in attached.stderr
    assert missing.returncode == 3
    assert missing.stderr.endswith(b"\nodek: --ctx: \\xff\\x1b: it does not exist\n")
    assert odek("memory", "import", b"\xe9 \xc3\xab.json").returncode == 0
    assert odek("subagent", "--task", b"t\xff").returncode == 0


@STARTS_IN_ASCII
@pytest.mark.parametrize("utf8", ["1", "0"])
def test_an_argument_that_is_no_utf_8_is_taken_as_far_as_it_can_be_read(tmp_path: Path, utf8: str) -> None:
    """Its other characters stay, in any locale, and what is written down of it can be sent and stored."""
    environ = os.environ | {
        "ODEK_HOME": str(tmp_path),
        "PYTHONUTF8": utf8,
        "PYTHONCOERCECLOCALE": "0",
        "LC_ALL": "POSIX",
    }
    odek = [sys.executable, "-m", "odek", "memory", "facts"]

    subprocess.run([*odek, "add", "user", b"Zo\xc3\xab \xff"], env=environ, check=True, capture_output=True)

    assert (tmp_path / "memory" / "user.md").read_text(encoding="utf-8") == "Zoë \N{REPLACEMENT CHARACTER}"
