"""A session file that would become too large loses its oldest part, in whole groups."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from odek.errors import StoreError
from odek.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from odek.sessions.document import Header
from odek.sessions.store import SessionStore
from odek.sessions.writer import HEADER_RESERVE_BYTES, SessionWriter
from odek.storage.locks import hold
from tests.support.sessions import ask, call

LIMIT_BYTES = HEADER_RESERVE_BYTES + 500


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[SessionWriter]:
    """Return the writer of a session that may be small only."""
    lock = hold(tmp_path / "lock", timeout_seconds=0)
    writer = SessionWriter(tmp_path / "20260101-x.json", lock, lambda text: text, limit_bytes=LIMIT_BYTES)
    yield writer
    writer.close()


def turns(count: int) -> list[Message]:
    """Return a conversation of which about three turns fit."""
    exchanges = [(UserMessage(f"q{n}"), AssistantMessage("a" * 80)) for n in range(count)]
    return [SystemMessage("s"), *(message for exchange in exchanges for message in exchange)]


def test_the_oldest_turns_go_first(writer: SessionWriter, tmp_path: Path) -> None:
    """System message and newest turns stay, and the file begins with a question."""
    whole = turns(9)

    writer.write(Header(id="20260101-x"), whole)

    kept = SessionStore(tmp_path).read("20260101-x").messages
    assert kept[0] == SystemMessage("s")
    assert kept[1:] == whole[-len(kept) + 1 :]
    assert isinstance(kept[1], UserMessage)
    assert 3 <= len(kept) < len(whole)
    assert (tmp_path / "20260101-x.json").stat().st_size <= LIMIT_BYTES


def test_what_went_stays_away_while_the_conversation_grows(writer: SessionWriter, tmp_path: Path) -> None:
    """Each write holds the newest part; nothing comes back out of order."""
    whole = turns(20)
    for end in range(3, len(whole) + 1, 2):
        writer.write(Header(id="20260101-x"), whole[:end])
        kept = SessionStore(tmp_path).read("20260101-x").messages
        assert kept[1:] == whole[:end][-len(kept) + 1 :]


def test_within_one_turn_the_oldest_tool_batches_go(writer: SessionWriter, tmp_path: Path) -> None:
    """An answer goes with its results; the question and the newest batch stay."""
    batches = [m for n in range(9) for m in (ask(call(f"c{n}")), ToolMessage("r" * 80, f"c{n}"))]

    writer.write(Header(id="20260101-x"), [SystemMessage("s"), UserMessage("q"), *batches])

    kept = json.loads((tmp_path / "20260101-x.json").read_bytes())["messages"]
    assert [message["role"] for message in kept[:3]] == ["system", "user", "assistant"]
    calls = [message["tool_calls"][0]["id"] for message in kept if message["role"] == "assistant"]
    assert calls == [message["tool_call_id"] for message in kept if message["role"] == "tool"]
    assert calls[-1] == "c8"
    assert len(calls) < 9


def test_outside_content_that_goes_leaves_its_taint(writer: SessionWriter, tmp_path: Path) -> None:
    """The flags of the file count what is no longer in it."""
    fenced = '<untrusted_content source="x" nonce="1">'
    writer.write(Header(id="20260101-x"), [UserMessage(fenced), AssistantMessage("a"), *turns(9)[1:]])

    header = SessionStore(tmp_path).read("20260101-x").header
    assert header.taint_sources == ("trimmed_history",)
    assert header.episode_untrusted


def test_a_message_larger_than_a_session_is_an_error(writer: SessionWriter, tmp_path: Path) -> None:
    """What cannot be made small enough is said, and the file before it stays."""
    writer.write(Header(id="20260101-x"), turns(1))
    with pytest.raises(StoreError, match="the newest message alone is beyond"):
        writer.write(Header(id="20260101-x"), [*turns(1), UserMessage("x" * 1000)])

    assert SessionStore(tmp_path).read("20260101-x").messages == turns(1)
