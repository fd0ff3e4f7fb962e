"""Sessions created, saved, opened, listed, trimmed and deleted, on a real directory."""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from odek.errors import StoreBusyError, StoreError
from odek.events import Usage
from odek.messages import AssistantMessage, ToolMessage, UserMessage
from odek.sessions.heads import read_head
from odek.sessions.order import by_file_time, last_changed
from odek.sessions.store import Deleted, NotDeleted, SessionStore
from odek.storage.locks import hold
from tests.support.sessions import ask, call, conversation, files_in, save_session, write_foreign


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return where sessions go; it is not there yet."""
    return tmp_path / "home" / "sessions"


@pytest.fixture
def store(directory: Path) -> SessionStore:
    """Return a store that hides one secret."""
    return SessionStore(directory, mask=lambda text: text.replace("hunter2", "[hidden]"), buffer_lines=3)


async def test_what_was_saved_is_there_when_it_is_opened_again(store: SessionStore) -> None:
    """Messages, totals, buffer and taints come back as they were."""
    with store.create("test-model", "a task", sandbox=True) as session:
        session.append(*conversation())
        session.add_usage(Usage(prompt_tokens=10, cost_usd=0.5))
        session.add_taint(("network",), ingested=True)
        session.add_buffer_line("10:00 user hello")
        await session.save()

    with store.open(session.id) as again:
        assert list(again.messages) == conversation()
        assert (again.id, again.model, again.task, again.sandbox) == (
            session.id,
            "test-model",
            "a task",
            True,
        )
        assert again.usage == Usage(prompt_tokens=10, cost_usd=0.5)
        assert list(again.buffer) == ["10:00 user hello"]
        assert again.taint_sources == ("network",)
        assert (again.episode_untrusted, again.untrusted_ingested, again.turns) == (True, True, 2)
        assert again.repairs == ()


async def test_a_session_without_a_task_is_named_after_the_first_question(store: SessionStore) -> None:
    """A dialogue begins before anything is asked; its first line is its title from then on."""
    with store.create("test-model", "") as session:
        session.append(UserMessage("\nwhy does it fail?\nmore"), AssistantMessage("because"))
        session.append(UserMessage("and now?"))
        await session.save()

    with store.open(session.id) as again:
        assert again.task == "why does it fail?"


async def test_files_and_directories_are_the_owners_alone_whatever_the_umask(
    store: SessionStore, directory: Path
) -> None:
    """The session is 0600, its directory and that of the locks 0700."""
    previous = os.umask(0)
    try:
        session = await save_session(store, conversation())
    finally:
        os.umask(previous)

    paths = [
        directory / f"{session}.json",
        directory / "locks" / f"{session}.lock",
        directory,
        directory / "locks",
    ]
    assert [oct(path.stat().st_mode & 0o777) for path in paths] == ["0o600", "0o600", "0o700", "0o700"]


async def test_the_fields_stand_before_the_messages_and_each_message_on_its_line(
    store: SessionStore, directory: Path
) -> None:
    """A list can read the beginning of a file alone, and a person the rest."""
    session = await save_session(store, conversation(1))

    lines = (directory / f"{session}.json").read_text().splitlines()
    fields = list(json.loads("\n".join(lines)))
    assert fields == [
        *("id", "created_at", "updated_at", "model", "turns", "task", "sandbox"),
        *("episode_untrusted", "untrusted_ingested", "taint_sources", "usage", "buffer", "messages"),
    ]
    assert [json.loads(line.rstrip(","))["role"] for line in lines[1:-1]] == [
        *("system", "user", "assistant", "tool", "assistant")
    ]


async def test_secrets_are_hidden_on_disk_and_kept_in_memory(store: SessionStore, directory: Path) -> None:
    """Task, contents, reasoning, buffer and the strings inside arguments are masked; these stay JSON."""
    with store.create("test-model", "use hunter2") as session:
        session.append(
            UserMessage("hunter2"),
            ask(call("a", arguments='{"key":"hun\\u0074er2","list":["hunter2"]}'), content="hunter2"),
            ToolMessage("found hunter2", "a"),
            AssistantMessage("done", reasoning_content="hunter2"),
        )
        session.add_buffer_line("hunter2")
        await session.save()
        written = (directory / f"{session.id}.json").read_text()

        assert "hunter2" not in written
        assert written.count("[hidden]") == 8
        arguments = json.loads(written)["messages"][1]["tool_calls"][0]["function"]["arguments"]
        assert json.loads(arguments) == {"key": "[hidden]", "list": ["[hidden]"]}
        assert session.messages[0] == UserMessage("hunter2")


async def test_a_secret_at_the_end_of_a_clipped_task_is_not_cut_in_half(directory: Path) -> None:
    """The task is masked before it is clipped, so that no recognisable half remains."""
    store = SessionStore(directory, mask=lambda text: text.replace("hunter2", ""))
    with store.create("m", "x" * 2045 + "hunter2") as session:
        await session.save()

    assert "hun" not in (directory / f"{session.id}.json").read_text()


async def test_a_lone_surrogate_in_a_result_does_not_stop_the_save(store: SessionStore) -> None:
    """It is replaced when it is appended, so that disk, memory and wire agree."""
    session = await save_session(store, [UserMessage("name \udcff"), AssistantMessage("ok")])

    with store.open(session) as again:
        assert again.messages[0] == UserMessage("name ?")


def test_the_buffer_keeps_the_newest_lines(store: SessionStore) -> None:
    """Beyond the cap the oldest line goes."""
    with store.create("m", "t") as session:
        for number in range(5):
            session.add_buffer_line(str(number))
        assert list(session.buffer) == ["2", "3", "4"]


def test_taints_are_never_taken_back(store: SessionStore) -> None:
    """A later harmless call leaves the flags as they are."""
    with store.create("m", "t") as session:
        session.add_taint(("network", "agent"), ingested=False)
        session.add_taint((), ingested=True)
        session.add_taint(("network",), ingested=False)

        assert session.taint_sources == ("network", "agent")
        assert session.episode_untrusted
        assert session.untrusted_ingested


async def test_one_owner_at_a_time(store: SessionStore, directory: Path) -> None:
    """A second opener, and whoever would delete or trim, is told the pid; afterwards it is free."""
    session_id = await save_session(store, conversation())
    with store.open(session_id):
        for act in (store.open, store.delete, lambda session: store.trim(session, 1)):
            with pytest.raises(StoreBusyError, match=f"pid {os.getpid()}") as busy:
                act(session_id)
            assert busy.value.pid == os.getpid()
        assert store.read(session_id).messages == conversation()

    store.open(session_id).release()


async def test_a_removed_lock_file_is_made_again_by_the_next_save(
    store: SessionStore, directory: Path
) -> None:
    """Removing the lock of a running session does not open it to a second owner for long."""
    with store.create("m", "t") as session:
        (directory / "locks" / f"{session.id}.lock").unlink()
        await session.save()
        with pytest.raises(StoreBusyError):
            store.open(session.id)


async def test_a_lost_lock_that_somebody_else_has_stops_the_save(
    store: SessionStore, directory: Path
) -> None:
    """Two owners never both write: the one whose lock file was removed gives way."""
    with store.create("m", "t") as session:
        lock = directory / "locks" / f"{session.id}.lock"
        lock.unlink()
        other = hold(lock, timeout_seconds=0)
        with pytest.raises(StoreBusyError):
            await session.save()
        other.release()
        await session.save()


async def test_a_failed_save_is_made_good_by_the_next(store: SessionStore, directory: Path) -> None:
    """When the disk takes it again, everything that was said meanwhile is written."""
    with store.create("m", "t") as session:
        session.append(*conversation(1))
        path = directory / f"{session.id}.json"
        path.mkdir()  # nothing can be put in its place
        with pytest.raises(StoreError, match=f"cannot write {path}"):
            await session.save()
        session.append(UserMessage("more"), AssistantMessage("yes"))
        path.rmdir()
        await session.save()

    assert store.read(session.id).messages == [*conversation(1), UserMessage("more"), AssistantMessage("yes")]


async def test_a_released_session_cannot_be_saved(store: SessionStore) -> None:
    """Its next owner may be at work."""
    session = store.create("m", "t")
    session.release()
    session.release()
    with pytest.raises(StoreError, match="closed"):
        await session.save()


def test_a_session_is_named_by_id_beginning_or_age(store: SessionStore, directory: Path) -> None:
    """Nothing means the newest; a beginning must be of one session only."""
    for name, age_seconds in (("20260101-aaa1", 30), ("20260101-aab2", 10), ("20260102-ccc", 20)):
        path = write_foreign(directory, name, [])
        os.utime(path, (time.time() - age_seconds,) * 2)

    assert store.read("").header.id == "20260101-aab2"
    assert store.read("20260102").header.id == "20260102-ccc"
    assert store.read("20260101-aaa1").header.id == "20260101-aaa1"
    with pytest.raises(
        StoreError, match="20260101-aa is the beginning of several sessions: 20260101-aab2, 20"
    ):
        store.read("20260101-aa")
    with pytest.raises(StoreError, match="there is no session 1999"):
        store.read("1999")


@pytest.mark.parametrize("touched", ["all at once", "in another order", "in the future"])
def test_after_a_copy_without_times_the_files_tell_which_changed_last(
    store: SessionStore, directory: Path, touched: str
) -> None:
    """A home that came from a backup, from git or from another machine goes on with the right session."""
    days = {"20260101-aaa": "11", "20260102-bbb": "30", "20260103-ccc": "20"}
    for number, (name, day) in enumerate(days.items()):
        path = write_foreign(directory, name, [], updated_at=f"2026-05-{day}T10:00:00+02:00")
        shift_seconds = {"all at once": 0, "in another order": -number * 7200, "in the future": 10**8}[
            touched
        ]
        os.utime(path, (time.time() + shift_seconds,) * 2)

    rows, number = last_changed(directory, 2)

    assert ([head.id for head, _ in rows], number) == (["20260102-bbb", "20260103-ccc"], 3)
    assert rows[0][1] == datetime(2026, 5, 30, 8, tzinfo=UTC).timestamp() * 10**9
    assert store.read("").header.id == "20260102-bbb"


@pytest.mark.parametrize("name", ["..", "../x", "a/b", "a.b", "index", "-a", "a\0", "a" * 129, "ä", " "])
def test_what_is_no_id_leads_nowhere(store: SessionStore, name: str) -> None:
    """Separators, dots, NUL and the predecessor's index are refused by name."""
    with pytest.raises(StoreError, match="is no session id"):
        store.open(name)


async def test_a_planted_id_is_ignored(store: SessionStore, directory: Path) -> None:
    """The file's name counts, and a save goes there."""
    write_foreign(directory, "20260101-mine", [{"role": "user", "content": "x"}], id="../../elsewhere")

    with store.open("20260101-mine") as session:
        assert session.id == "20260101-mine"
        await session.save()
    assert set(files_in(directory)) == {"20260101-mine.json"}


async def test_only_sessions_are_listed_newest_first(store: SessionStore, directory: Path) -> None:
    """The predecessor's index, links, directories and copies of damaged files are none."""
    older = write_foreign(directory, "20260101-old", [])
    os.utime(older, (1, 1))
    newer = await save_session(store, conversation())
    (directory / "index.json").write_text("[]")
    (directory / "20260101-link.json").symlink_to(older)
    (directory / "20260101-dir.json").mkdir()
    (directory / "20260101-old.json.damaged-1").write_text("{")

    assert [session for session, _ in by_file_time(directory)] == [newer, "20260101-old"]


async def test_a_head_is_read_from_any_file(store: SessionStore, directory: Path) -> None:
    """Ours, the predecessor's with a long task, a truncated one, and one that is none."""
    ours = await save_session(store, conversation(), task="ours")
    write_foreign(directory, "20260101-long", [], task="y" * 20_000)
    (directory / "20260101-cut.json").write_text('{"id":"x","turns":3,"task":"cut","model":"m')
    (directory / "20260101-odd.json").write_text("[1, 2]")

    heads = [read_head(directory, name) for name in (ours, "20260101-long", "20260101-cut", "20260101-odd")]
    assert [(head.task[:5], head.turns) for head in heads if head] == [
        *(("ours", 2), ("yyyyy", 1), ("cut", 3), ("", 0))
    ]
    assert read_head(directory, "20260101-gone") is None


async def test_trimming_keeps_the_system_message_and_the_newest_turns(store: SessionStore) -> None:
    """Whole turns go, the oldest first; trimming to more than there is changes nothing."""
    session = await save_session(store, conversation(3))

    trimmed = store.trim(session, 2)

    assert (trimmed.removed, trimmed.kept) == (1, 2)
    assert store.read(session).messages == [conversation(3)[0], *conversation(3)[5:]]
    assert store.read(session).header.turns == 2
    assert store.trim(session, 9).removed == 0


async def test_trimming_outside_content_away_leaves_its_taint(store: SessionStore) -> None:
    """What was taken in counts for good, and the session says that it is in the part that went."""
    fenced = '<untrusted_content source="x" nonce="1">\nhi\n</untrusted_content nonce="1">'
    session = await save_session(
        store, [UserMessage(fenced), AssistantMessage("a"), UserMessage("b"), AssistantMessage("c")]
    )

    store.trim(session, 1)

    header = store.read(session).header
    assert header.taint_sources == ("trimmed_history",)
    assert (header.episode_untrusted, header.untrusted_ingested) == (True, True)


def test_deleting_leaves_nothing(store: SessionStore, directory: Path) -> None:
    """The session goes with the copies of its damaged states and its lock."""
    path = write_foreign(directory, "20260101-gone", [{"role": "user", "content": "x"}], task="secret")
    for number in (1, 2):
        path.with_name(f"{path.name}.damaged-{number}").write_text("x")

    deleted = store.delete("20260101")

    assert (deleted.id, deleted.task, deleted.files) == ("20260101-gone", "secret", 3)
    assert list(directory.rglob("*")) == [directory / "locks"]


def test_cleaning_up_deletes_what_is_old_and_not_in_use(store: SessionStore, directory: Path) -> None:
    """Age is that of the last change."""
    for name in ("20260101-old", "20260101-used", "20260101-new"):
        path = write_foreign(directory, name, [{"role": "user", "content": "x"}])
        if name != "20260101-new":
            os.utime(path, (time.time() - 11 * 86_400,) * 2)

    with store.open("20260101-used"):
        outcomes = {outcome.id: outcome for outcome in store.delete_older(10)}

    old, used = outcomes.pop("20260101-old"), outcomes.pop("20260101-used")
    assert isinstance(old, Deleted)
    assert isinstance(used, NotDeleted)
    assert used.is_busy
    assert not outcomes
    assert sorted(path.stem for path in directory.glob("*.json")) == ["20260101-new", "20260101-used"]


async def test_a_session_that_is_continued_during_a_cleanup_stays(
    store: SessionStore, directory: Path
) -> None:
    """What was old when the cleanup listed it, and was saved before its turn came, is not old any more."""
    names = ["20260101-first", "20260101-last"]
    paths = [write_foreign(directory, name, [{"role": "user", "content": "x"}]) for name in names]
    for age, path in enumerate(paths):
        os.utime(path, (time.time() - (11 + age) * 86_400,) * 2)

    cleanup = store.delete_older(10)
    first = next(cleanup)
    with store.open(names[-1]) as session:
        session.append(UserMessage("go on"))
        await session.save()

    assert isinstance(first, Deleted)
    assert first.id == names[0]
    assert list(cleanup) == []
    assert [path.exists() for path in paths] == [False, True]


async def test_locks_without_a_session_are_swept_unless_held(store: SessionStore, directory: Path) -> None:
    """A process killed before its first save leaves one; that of a new session is not touched."""
    kept = await save_session(store, conversation())
    with store.create("m", "not saved yet") as fresh:
        stale = directory / "locks" / "20260101-stale.lock"
        stale.write_text("1")

        assert list(store.stale_locks(remove=False)) == [stale]
        assert list(store.stale_locks(remove=True)) == [stale]
        assert {path.stem for path in (directory / "locks").iterdir()} == {kept, fresh.id}
