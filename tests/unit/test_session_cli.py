"""``odek session`` and ``odek cleanup``, as a person calls them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trio

from odek.cli.layout import columns_of
from odek.cli.main import main
from odek.memory.episodes import EpisodeStore
from odek.messages import AssistantMessage, ToolMessage, UserMessage
from odek.sessions.names import audit_path
from odek.sessions.store import SessionStore
from tests.support.episodes import put
from tests.support.permissions import locked
from tests.support.sessions import ask, call, conversation, files_in, save_session, write_foreign
from tests.support.terminal import open_terminal

Output = pytest.CaptureFixture[str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home of the test's own."""
    monkeypatch.setenv("ODEK_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def store(home: Path) -> SessionStore:
    """Return the store in that home."""
    return SessionStore(home / "sessions")


def test_nothing_there_is_said(home: Path, capsys: Output) -> None:
    """A fresh home has no sessions, and listing creates nothing."""
    assert main(["session", "list"]) == 0
    assert capsys.readouterr().out == f"no sessions in {home}/sessions\n"
    assert files_in(home) == {}


async def test_a_list_fits_the_terminal_and_moves_no_cursor(store: SessionStore, capsys: Output) -> None:
    """One line a session, with escapes made visible; the rest is counted."""
    for number in range(3):
        await save_session(store, conversation(number + 1), task=f"task {number}\n\x1b[2J" + "x" * 200)

    assert main(["session", "list", "--limit", "2"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["ID", "CHANGED", "TURNS", "TASK"]
    assert len(lines) == 4
    assert lines[3] == "… 1 older ones; --limit 0 shows all"
    assert all(len(line) <= 80 and line.isprintable() for line in lines)
    assert r"task 2 \x1b[2Jxxx" in lines[1]


@pytest.mark.parametrize("columns", [40, 80, 110])
async def test_lists_and_conversations_are_as_wide_as_the_terminal(
    store: SessionStore, home: Path, columns: int
) -> None:
    """No line is broken by the terminal, whatever the script; a narrow list shows ids and tasks alone."""
    text = "\u4e16\u754c" * 80 + " \U0001f600" * 60
    await save_session(store, [UserMessage(text), AssistantMessage(text)], task=text)

    for action in ("list", "show"):
        with open_terminal(columns) as terminal:
            done = await trio.run_process(
                [sys.executable, "-m", "odek", "session", action],
                stdout=terminal.file,
                env={**os.environ, "ODEK_HOME": str(home), "PYTHONIOENCODING": "utf-8"},
            )
            lines = terminal.read().splitlines()
        assert done.returncode == 0
        lines = [line for line in lines if not line.startswith("session  ")]  # an id stays whole
        assert max(map(columns_of, lines)) in range(columns - 1, columns + 1), lines
        if action == "list":
            assert ("CHANGED" in lines[0]) == (columns > 40)


async def test_a_list_for_programs_has_whole_ids(store: SessionStore, capsys: Output) -> None:
    """``--json`` prints one array."""
    session = await save_session(store, conversation())

    main(["session", "list", "--json"])

    (head,) = json.loads(capsys.readouterr().out)
    assert (head["id"], head["turns"], head["task"], head["untrusted"]) == (session, 2, "a task", False)


async def test_a_conversation_is_shown_for_reading(store: SessionStore, capsys: Output) -> None:
    """Text is wrapped, calls and results take a line each, nothing reaches the terminal raw."""
    await save_session(
        store,
        [
            UserMessage("why? " + "word " * 40),
            ask(call("1", arguments='{"command":"make\\n"}'), content="I look."),
            ToolMessage("\x1b[31mline one\nline two\nline three", "1"),
            AssistantMessage("Fixed.\n\n    indented"),
        ],
    )

    assert main(["session", "show"]) == 0

    text = capsys.readouterr().out
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "  -> shell make\n  <- \\x1b[31mline one (+2 lines)\n" in text
    assert "odek:\n  Fixed.\n\n      indented\n" in text


async def test_a_conversation_for_programs_is_one_object(store: SessionStore, capsys: Output) -> None:
    """``--json`` prints the fields, the messages, and what was repaired."""
    await save_session(store, conversation(1))

    main(["session", "show", "--json"])

    shown = json.loads(capsys.readouterr().out)
    assert (shown["model"], len(shown["messages"]), shown["notices"]) == ("test-model", 5, [])


def test_showing_a_damaged_session_names_the_damage_and_changes_nothing(home: Path, capsys: Output) -> None:
    """A look is no repair."""
    path = write_foreign(home / "sessions", "20260101-a", [{"role": "user", "content": "q"}, {"role": "x"}])
    before = path.read_bytes()

    assert main(["session", "show", "20260101"]) == 0

    assert "! a message was left out: its role 'x' is unknown" in capsys.readouterr().out
    assert path.read_bytes() == before


async def test_trim_and_delete_say_what_they_did(store: SessionStore, home: Path, capsys: Output) -> None:
    """Where there is no terminal, deleting asks nothing; what is gone is named."""
    session = await save_session(store, conversation(3))

    assert main(["session", "trim", session, "1"]) == 0
    assert main(["session", "delete", session[:20]]) == 0

    assert capsys.readouterr().out == f"{session}: turns removed: 2, kept: 1\ndeleted {session}: a task\n"
    assert files_in(home / "sessions") == {}


@pytest.mark.parametrize(
    ("flags", "typed", "status", "redirected"),
    [
        ([], "y\n", 0, ""),
        ([], "\n", 1, ""),
        ([], "\x04", 1, ""),
        (["--yes"], "", 0, ""),
        ([], "n\n", 1, "stderr"),
        ([], "y\n", 0, "stdout stderr"),
    ],
    ids=str,
)
async def test_a_person_is_asked_before_a_session_is_deleted(
    store: SessionStore, home: Path, flags: list[str], typed: str, status: int, redirected: str
) -> None:
    """At a terminal the session is shown, wherever output goes, and only a yes or ``--yes`` deletes it."""
    session = await save_session(store, conversation(3))
    with open_terminal() as terminal:
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "odek", "session", "delete", session, *flags],
            stdin=terminal.file,
            stdout=subprocess.DEVNULL if "stdout" in redirected else terminal.file,
            stderr=subprocess.DEVNULL if "stderr" in redirected else terminal.file,
            env={**os.environ, "ODEK_HOME": str(home)},
        )
        try:
            if typed:
                await terminal.wait_for(f"{session}, turns: 3: a task", "delete it for good? [y/N] ")
                terminal.type(typed)
            if "stdout" not in redirected:
                await terminal.wait_for("nothing is deleted" if status else f"deleted {session}: a task")
            assert await process.wait() == status
        finally:
            process.kill()
            await process.wait()
    assert [path.stem for path in (home / "sessions").glob("*.json")] == [session] * status


def test_damaged_sessions_are_marked_in_a_list(home: Path, capsys: Output) -> None:
    """No blank row: what is seen of the damage stands in place of the task, and originals are counted."""
    whole = write_foreign(home / "sessions", "20260101-whole", [])
    for name, data in {
        "20260101-empty": b"",
        "20260101-zeros": bytes(500),
        "20260101-cut": whole.read_bytes()[:-4],
    }.items():
        (home / "sessions" / f"{name}.json").write_bytes(data)
    (home / "sessions" / "20260101-whole.json.damaged-1").write_bytes(b"{")

    assert main(["session", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert main(["session", "list", "--json"]) == 0
    heads = json.loads(capsys.readouterr().out)

    rows = {line.split()[0]: line.split("  ")[-1].strip() for line in lines[1:-1]}
    assert rows == {
        "20260101-whole": "an old task",
        "20260101-empty": "! empty file",
        "20260101-zeros": "! no session",
        "20260101-cut": "! breaks off: an old task",
    }
    assert lines[-1].startswith("! damaged states that were kept when a session was mended: 1 ")
    assert {head["id"][9:]: head["damage"] for head in heads} == {
        "whole": "",
        "empty": "empty file",
        "zeros": "no session",
        "cut": "breaks off",
    }


def test_a_session_that_cannot_be_read_is_listed_with_the_reason(home: Path, capsys: Output) -> None:
    """It is there, and the person learns why it does not open."""
    path = write_foreign(home / "sessions", "20260101-closed", [])
    path.chmod(0)
    main(["session", "list"])  # loads what is needed: another user may not read the modules
    capsys.readouterr()

    with locked(home / "sessions", 0o755):
        assert main(["session", "list"]) == 0

    assert "! cannot be read: permission denied" in capsys.readouterr().out


def test_cleanup_of_sessions_names_each(home: Path, capsys: Output) -> None:
    """Only what is older goes."""
    path = write_foreign(home / "sessions", "20260101-old", [])
    os.utime(path, (time.time() - 3 * 86_400,) * 2)
    write_foreign(home / "sessions", "20260101-new", [])

    assert main(["session", "cleanup", "2"]) == 0

    assert capsys.readouterr().out == "deleted 20260101-old: an old task\nsessions deleted: 1\n"
    assert set(files_in(home / "sessions")) == {"20260101-new.json"}


def test_who_deletes_sessions_is_told_what_of_them_is_still_remembered(home: Path, capsys: Output) -> None:
    """The summary of a session is another thing, which another command removes."""
    memory = EpisodeStore(home / "memory")
    for name in ("20260101-one", "20260101-two", "20260101-three"):
        write_foreign(home / "sessions", name, [{"role": "user", "content": "q"}])
        if not name.endswith("three"):
            put(memory, name)
    long_ago = time.time() - 40 * 86_400
    for name in ("two", "three"):
        os.utime(home / f"sessions/20260101-{name}.json", (long_ago, long_ago))

    assert main(["session", "cleanup", "30"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "summaries of them that stay: 1; `odek memory list --all` shows them"
    )
    assert main(["session", "delete", "20260101-one"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "its summary stays: `odek memory reject 20260101-one` removes it"
    )
    assert main(["memory", "reject", "20260101-one"]) == 0


def test_a_session_that_cannot_be_deleted_keeps_no_other(home: Path, capsys: Output) -> None:
    """Each that is gone is named, the one that is not with the reason, and the status tells of it."""
    names = ["20260101-first", "20260101-stuck", "20260101-last"]
    for age, name in enumerate(names, 3):
        path = write_foreign(home / "sessions", name, [])
        os.utime(path, (time.time() - age * 86_400,) * 2)
    record = audit_path(home / "sessions", names[1])
    record.mkdir(parents=True)

    assert main(["session", "cleanup", "2"]) == 1

    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "deleted 20260101-first: an old task",
        "deleted 20260101-last: an old task",
        "sessions deleted: 2, failed: 1",
    ]
    assert told.err.startswith(f"odek: cannot remove {record}: ")
    assert told.err.count("\n") == 1
    assert [path.stem for path in (home / "sessions").glob("*.json")] == [names[1]]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["show", "1999"], 1, "there is no session 1999"),
        (["show", "../../etc/passwd"], 1, "is no session id"),
        (["delete", "2026"], 1, "is the beginning of several sessions: 20260101-"),
        (["trim", "20260101-a", "0"], 3, "of at least 1, got '0'"),
        (["cleanup", "0"], 3, "of at least 1, got '0'"),
        (["cleanup", "x"], 3, "of at least 1, got 'x'"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line(
    home: Path, capsys: Output, arguments: list[str], status: int, message: str
) -> None:
    """Unknown sessions end with 1, wrong usage with 3, and nothing is changed."""
    for name in ("20260101-a", "20260101-b"):
        write_foreign(home / "sessions", name, [])

    try:
        assert main(["session", *arguments]) == status
    except SystemExit as left:
        assert left.code == status

    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert len(files_in(home / "sessions")) == 2


async def test_a_session_in_use_is_a_matter_of_setup(store: SessionStore, capsys: Output) -> None:
    """The line names the process that has it."""
    session = await save_session(store, conversation())
    with store.open(session):
        assert main(["session", "delete", session]) == 3
    assert f"open in another odek (pid {os.getpid()}" in capsys.readouterr().err


async def test_cleanup_sweeps_what_dead_processes_left(
    store: SessionStore, home: Path, capsys: Output
) -> None:
    """A dry run only says so; what is in use or of a session stays."""
    await save_session(store, conversation())
    left = home / "sessions" / f".x.json.{2**22 + 1}-0123456789abcdef.tmp"
    left.write_text("x")
    stale = home / "sessions" / "locks" / "20260101-stale.lock"
    stale.write_text("1")
    names = [f"sessions/{left.name}", "sessions/locks/20260101-stale.lock"]

    with store.create("m", "not saved yet"):
        main(["cleanup", "--dry-run"])
        assert capsys.readouterr().out.splitlines() == [f"would remove {name}" for name in names]
        main(["cleanup"])
        assert capsys.readouterr().out.splitlines() == [f"removed {name}" for name in names]
        main(["cleanup"])
        assert capsys.readouterr().out == f"nothing to clean up in {home}\n"


def test_cleanup_sweeps_at_every_depth(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What lies deep below the home goes; what is in a worktree, or where a link leads, is let be."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (home / "linked").symlink_to(elsewhere)
    deep, tree = home / "memory" / "extended" / "chunks", home / "worktrees" / "tree" / "src"
    left = [place / f".x.json.{2**22 + 1}-0123456789abcdef.tmp" for place in (deep, tree, elsewhere)]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")

    assert main(["cleanup"]) == 0

    assert [path.exists() for path in left] == [False, True, True]
