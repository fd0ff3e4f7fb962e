"""Session files of other programs, edited by hand, cut off, overwritten: what can be read is."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from odek.errors import StoreCorruptError, StoreError
from odek.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from odek.sessions.store import SessionStore
from tests.support.sessions import ask, call, conversation, files_in, save_session, write_foreign

ID = "20260301-0123456789abcdef0123456789abcdef"


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    """Return a store in a directory that tests write into."""
    return SessionStore(tmp_path)


def test_a_session_of_the_predecessor_opens_as_it_is(store: SessionStore, tmp_path: Path) -> None:
    """Null contents, flags behind the messages, nanoseconds and unknown fields are no reason to complain."""
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "1",
                    "type": "function",
                    "function": {"name": "shell", "arguments": '{"command":"ls"}'},
                }
            ],
        },
        {"role": "tool", "content": "r", "tool_call_id": "1", "name": "shell"},
        {"role": "assistant", "content": "a", "reasoning_content": "hm"},
    ]
    write_foreign(
        tmp_path,
        ID,
        messages,
        sandbox=True,
        buffer=["10:00 user q"],
        episode_untrusted=True,
        auth_token="x",
        redact_boundary=3,
    )

    reading = store.read(ID)

    assert reading.messages == [
        SystemMessage("s"),
        UserMessage("q"),
        ask(call("1")),
        ToolMessage("r", "1"),
        AssistantMessage("a", reasoning_content="hm"),
    ]
    assert (reading.notices, reading.damaged) == ((), False)
    header = reading.header
    assert (header.created_at, header.sandbox, header.buffer) == (
        "2026-03-01T10:20:30.123456789+02:00",
        True,
        ("10:00 user q",),
    )
    assert (header.episode_untrusted, header.untrusted_ingested) == (True, False)


@pytest.mark.parametrize("messages", [[], None])
async def test_a_session_without_a_turn_goes_on(
    store: SessionStore, tmp_path: Path, messages: object
) -> None:
    """A run that ended before its first question leaves a session like any other."""
    write_foreign(tmp_path, ID, messages)

    with store.open(ID) as session:
        assert (session.repairs, session.turns) == ((), 0)
        session.append(UserMessage("q"), AssistantMessage("a"))
        await session.save()
    assert store.read(ID).messages == [UserMessage("q"), AssistantMessage("a")]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ([{"type": "text", "text": "one"}, "two"], "one\ntwo"),
        ([{"type": "image_url", "image_url": {}}], "[image_url left out: only text is kept]"),
        ({"odd": 1}, '{"odd":1}'),
        (7, "7"),
        ("\ud800 half", "? half"),
    ],
    ids=str,
)
def test_any_content_becomes_text(store: SessionStore, tmp_path: Path, content: object, text: str) -> None:
    """Null, parts, and what no schema knows."""
    write_foreign(tmp_path, ID, [{"role": "user", "content": content}])

    assert store.read(ID).messages[0] == UserMessage(text)


def test_arguments_that_are_no_text_are_taken(store: SessionStore, tmp_path: Path) -> None:
    """An object in the place of JSON text, nothing at all, and text that is no JSON."""
    calls = [
        {"id": str(number), "function": {"name": "t", "arguments": arguments}}
        for number, arguments in enumerate([{"a": 1}, None, "", "{oops"])
    ]
    write_foreign(tmp_path, ID, [{"role": "assistant", "content": "", "tool_calls": calls}])

    (answer, *_) = store.read(ID).messages
    assert isinstance(answer, AssistantMessage)
    assert [call.arguments for call in answer.tool_calls] == [
        *('{"a":1}', "{}", "{}", '{"_raw_arguments":"{oops"}')
    ]


async def test_what_is_left_out_is_named_and_the_original_kept_aside(
    store: SessionStore, tmp_path: Path
) -> None:
    """Unknown roles and odd entries do not enter the conversation; the old file is there after the save."""
    entries = [
        {"role": "critic", "content": "x"},
        5,
        {"content": "no role"},
        {"role": "user", "content": "q"},
    ]
    path = write_foreign(tmp_path, ID, entries)
    original = path.read_bytes()

    with store.open(ID) as session:
        assert session.repairs[:3] == (
            "a message was left out: its role 'critic' is unknown",
            "a message was left out: it is no JSON object",
            "a message was left out: it has no role",
        )
        assert session.messages[0] == UserMessage("q")
        assert path.read_bytes() == original
        await session.save()
        await session.save()

    assert files_in(tmp_path, "*.damaged-*") == {f"{ID}.json.damaged-1": original}
    assert not store.read(ID).damaged


async def test_a_picture_is_left_out_and_the_original_kept_aside(store: SessionStore, tmp_path: Path) -> None:
    """Only text goes on; what a message held beside it is still in the copy."""
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    original = write_foreign(tmp_path, ID, [{"role": "user", "content": parts}]).read_bytes()

    with store.open(ID) as session:
        assert session.repairs[0] == "a part of a message was left out: only text is kept"
        await session.save()

    assert files_in(tmp_path, "*.damaged-*") == {f"{ID}.json.damaged-1": original}


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
async def test_fields_of_a_later_version_stay(store: SessionStore, tmp_path: Path, mark: bytes) -> None:
    """A session that an older odek goes on with has lost nothing for the newer one."""
    fields: dict[str, Any] = {"labels": ["a", {"b": None}], "size": 2**63, "half": "\ud800"}
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    path = write_foreign(tmp_path, ID, messages, **fields)
    path.write_bytes(mark + path.read_bytes())

    for _ in range(2):
        with store.open(ID) as session:
            await session.save()

    written = json.loads(path.read_bytes())
    assert {name: written[name] for name in fields} == fields | {"half": "?"}
    assert [message["content"] for message in written["messages"]] == ["q", "a"]
    assert not files_in(tmp_path, "*.damaged-*")


async def test_secrets_in_fields_of_a_later_version_are_hidden(tmp_path: Path) -> None:
    """What is written again is masked as all that is written."""
    store = SessionStore(tmp_path, mask=lambda text: text.replace("hunter2", "[hidden]"))
    path = write_foreign(tmp_path, ID, [{"role": "user", "content": "q"}], later={"hunter2": "is hunter2"})

    with store.open(ID) as session:
        await session.save()

    assert json.loads(path.read_bytes())["later"] == {"[hidden]": "is [hidden]"}


async def test_each_damaged_state_is_kept_under_a_name_of_its_own(
    store: SessionStore, tmp_path: Path
) -> None:
    """A second damage does not replace the copy of the first."""
    for number in (1, 2):
        path = write_foreign(tmp_path, ID, [{"role": "user", "content": f"{number}"}])
        path.write_bytes(path.read_bytes()[:-5])
        with store.open(ID) as session:
            await session.save()

    assert set(files_in(tmp_path, "*.damaged-*")) == {
        f"{ID}.json.damaged-1",
        f"{ID}.json.damaged-2",
    }


async def test_a_file_cut_anywhere_gives_every_whole_message(store: SessionStore, tmp_path: Path) -> None:
    """Of a truncated file the messages before the cut are read, or it is refused and left alone."""
    messages = conversation(2)
    session = await save_session(store, messages)
    path = tmp_path / f"{session}.json"
    whole = path.read_bytes()
    ends = [whole.index(line) + len(line.rstrip(b",")) for line in whole.splitlines()[1:-1]]

    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        readable = sum(end <= cut for end in ends)
        if readable == 0:
            with pytest.raises(StoreCorruptError, match="it was left as it is"):
                store.read(session)
            continue
        reading = store.read(session)
        assert reading.damaged is (cut < len(whole.rstrip()))
        said = [message for message in reading.messages if message in messages]
        assert said[:readable] == messages[:readable]
        assert not reading.header.episode_untrusted  # the flags stand in front of the messages


async def test_messages_behind_a_hole_are_read(store: SessionStore, tmp_path: Path) -> None:
    """A sector of zeros costs the messages in it, not those behind."""
    session = await save_session(store, conversation(3))
    path = tmp_path / f"{session}.json"
    data = path.read_bytes()
    hole = data.index(b"answer 1")
    path.write_bytes(data[:hole] + bytes(20) + data[hole + 20 :])

    reading = store.read(session)

    assert reading.damaged
    assert any("cannot be read" in notice for notice in reading.notices)
    contents = [message.content for message in reading.messages]
    assert contents[:4] == ["You are odek.", "question 1", "", "result 1"]
    assert contents[-3:] == ["", "result 3", "answer 3"]


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 4096, b"null", b"[]", b"not json", b'"text"', b'{"messages"', b"[" * 100_000, b"\xff\xfe"],
)
def test_a_file_that_is_no_session_is_refused_and_left_as_it_is(
    store: SessionStore, tmp_path: Path, data: bytes
) -> None:
    """Nothing of it can be read, so nothing is written over it."""
    path = tmp_path / f"{ID}.json"
    path.write_bytes(data)

    with pytest.raises(StoreCorruptError, match=f"{path}"):
        store.open(ID)

    assert path.read_bytes() == data


@pytest.mark.parametrize("kind", ["fifo", "directory", "link"])
def test_what_is_no_regular_file_is_refused_at_once(store: SessionStore, tmp_path: Path, kind: str) -> None:
    """Opening never waits on a pipe and never follows a link."""
    path = tmp_path / f"{ID}.json"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(write_foreign(tmp_path / "elsewhere", ID, []))
    with pytest.raises(StoreError):
        store.open(ID)


@pytest.mark.parametrize(
    ("fields", "untrusted"),
    [
        ({}, False),
        ({"episode_untrusted": False, "untrusted_ingested": False}, False),
        ({"episode_untrusted": "no"}, True),
        ({"episode_untrusted": None}, True),
        ({"episode_untrusted": 0}, True),
    ],
    ids=str,
)
def test_a_damaged_flag_counts_as_untrusted(
    store: SessionStore, tmp_path: Path, fields: dict[str, Any], untrusted: bool
) -> None:
    """Only a flag that is left out, or plainly false, is false."""
    write_foreign(tmp_path, ID, [{"role": "user", "content": None}], **fields)

    header = store.read(ID).header
    assert header.episode_untrusted is untrusted
    assert header.taint_sources == (("damaged_session",) if untrusted else ())


def test_flags_lost_with_the_end_of_a_file_count_as_untrusted(store: SessionStore, tmp_path: Path) -> None:
    """The predecessor wrote them behind the messages."""
    path = write_foreign(tmp_path, ID, [{"role": "user", "content": "q"}], episode_untrusted=False)
    path.write_bytes(path.read_bytes().split(b'"episode')[0])

    reading = store.read(ID)
    assert reading.header.episode_untrusted
    assert "whether it took in outside content cannot be read any more" in reading.notices[-2]


def test_fields_of_wrong_types_are_left_empty(store: SessionStore, tmp_path: Path) -> None:
    """A hand edit of the fields does not cost the conversation."""
    write_foreign(
        tmp_path,
        ID,
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}],
        model=5,
        task=None,
        turns="x",
        buffer="x",
        usage=[1],
        taint_sources=7,
        created_at={},
    )

    reading = store.read(ID)
    expected: list[Message] = [UserMessage("q"), AssistantMessage("a")]
    assert (reading.messages, reading.header.model, reading.header.buffer) == (expected, "", ())


def test_odd_encodings_are_read(store: SessionStore, tmp_path: Path) -> None:
    """A byte order mark, bytes that are no UTF-8, raw control characters."""
    text = json.dumps(
        {"messages": [{"role": "user", "content": "aXb"}, {"role": "assistant", "content": "ok"}]}
    )
    path = tmp_path / f"{ID}.json"

    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert store.read(ID).messages[0] == UserMessage("aXb")
    path.write_bytes(text.encode().replace(b"X", b"\xff"))
    reading = store.read(ID)
    assert (reading.messages[0], reading.damaged) == (UserMessage("a\ufffdb"), True)
    path.write_bytes(text.encode().replace(b"X", b"\x01"))
    assert store.read(ID).messages[0] == UserMessage("a\x01b")
