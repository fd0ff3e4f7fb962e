"""Whatever is said is read back; whatever is in a file, a valid conversation or an error comes out."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.errors import StoreCorruptError
from odek.llm.arguments import is_json_object
from odek.messages import (
    AssistantMessage,
    FunctionCall,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from odek.sessions.document import Header, assemble
from odek.sessions.heads import fields_before_messages
from odek.sessions.masking import clean, masked
from odek.sessions.reading import read_session
from odek.sessions.repair import repair
from odek.sessions.turns import removable_groups, turns_of

EXAMPLES = settings(max_examples=60, deadline=None)
PATH = Path("20260101-x.json")

texts = st.text(st.characters(), max_size=20)
ids = st.sampled_from(["", "a", "b", "c"])
calls = st.builds(
    ToolCall, ids, st.builds(FunctionCall, st.just("shell"), st.sampled_from(["{}", "", "{x", "[1]"]))
)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(SystemMessage, texts, st.sampled_from([None, "odek_context"])),
    st.builds(UserMessage, texts),
    st.builds(AssistantMessage, texts, st.lists(calls, max_size=3).map(tuple), st.none() | texts),
    st.builds(ToolMessage, texts, ids),
)
conversations = st.lists(messages, max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


def assert_valid(conversation: list[Message]) -> None:
    """Check what providers insist on."""
    waiting: list[str] = []
    for index, message in enumerate(conversation):
        if isinstance(message, ToolMessage):
            assert waiting, "a result without a call"
            assert message.tool_call_id == waiting.pop(0)
            continue
        assert not waiting, "a call without a result"
        if isinstance(message, AssistantMessage):
            assert message.content.strip() or message.tool_calls
            waiting = [call.id for call in message.tool_calls]
            assert all(waiting)
            assert len(set(waiting)) == len(waiting)
            assert all(is_json_object(call.arguments) for call in message.tool_calls)
        if isinstance(message, SystemMessage) and message.name is None:
            assert index == 0
    assert not waiting
    assert not conversation or not isinstance(conversation[-1], UserMessage | ToolMessage)


@EXAMPLES
@given(conversations)
def test_every_conversation_is_made_valid_once(conversation: list[Message]) -> None:
    """Repair gives what providers take, and finds nothing more to do in it."""
    repaired = repair(conversation)

    assert_valid(repaired.messages)
    assert repair(repaired.messages).messages == repaired.messages
    said = [m for m in conversation if isinstance(m, UserMessage)]
    assert [m for m in repaired.messages if isinstance(m, UserMessage)] == said


@EXAMPLES
@given(conversations)
def test_what_is_saved_is_what_is_read(conversation: list[Message]) -> None:
    """A valid conversation survives the file byte for byte, in one step and without a notice."""
    valid = repair([clean(message) for message in conversation]).messages
    data = assemble(Header(id="x"), [msgspec.json.encode(message) for message in valid])

    reading = read_session(data, "x", PATH)

    assert (reading.messages, reading.notices, reading.damaged) == (valid, (), False)


@EXAMPLES
@given(conversations, st.data())
def test_a_damaged_file_gives_a_valid_conversation_or_an_error(
    conversation: list[Message], data: st.DataObject
) -> None:
    """Cut off, overwritten or with bytes missing: never a crash, never an invalid conversation."""
    whole = assemble(Header(id="x"), [msgspec.json.encode(clean(message)) for message in conversation])
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    filling = data.draw(st.sampled_from([b"", b"\0" * 8, b'"', b"{", b'{"role":', b"]}", b"\xff\xfe"]))

    try:
        reading = read_session(whole[:start] + filling + whole[end:], "x", PATH)
    except StoreCorruptError:
        return
    assert_valid(reading.messages)
    assert reading.header.id == "x"


@EXAMPLES
@given(
    json_values
    | st.fixed_dictionaries(
        {
            "messages": st.lists(
                json_values
                | st.dictionaries(
                    st.sampled_from(["role", "content", "tool_calls", "tool_call_id"]),
                    json_values | st.sampled_from(["user", "assistant", "tool", "system"]),
                ),
                max_size=5,
            )
        }
    )
)
def test_any_json_gives_a_valid_conversation_or_an_error(value: Any) -> None:
    """A hand edit may leave anything in any place."""
    try:
        reading = read_session(json.dumps(value).encode(), "x", PATH)
    except StoreCorruptError:
        assert not isinstance(value, dict)
        return
    assert_valid(reading.messages)


@EXAMPLES
@given(conversations)
def test_turns_and_groups_cover_a_conversation_without_overlap(conversation: list[Message]) -> None:
    """Leaving groups out in their order leaves a valid conversation at every step."""
    valid = repair(conversation).messages
    turns = [index for turn in turns_of(valid) for index in turn]
    assert turns == sorted(set(turns))

    gone: set[int] = set()
    for group in removable_groups(valid):
        gone.update(group)
        assert_valid([message for index, message in enumerate(valid) if index not in gone])


@EXAMPLES
@given(
    st.dictionaries(
        st.sampled_from(["key", "ключ", 'a"b']), json_values.map(json.dumps) | st.just("s3cret\n")
    )
)
def test_no_secret_survives_in_arguments(arguments: dict[str, str]) -> None:
    """However JSON writes it, the secret is gone, and the arguments are still an object."""
    text = json.dumps(arguments)
    call = ToolCall("1", FunctionCall("shell", text))

    hidden = masked(AssistantMessage("", (call,)), lambda value: value.replace("s3cret\n", "[hidden]"))

    assert isinstance(hidden, AssistantMessage)
    written = hidden.tool_calls[0].arguments
    assert is_json_object(written)
    assert "s3cret\n" not in json.loads(written).values()


@pytest.mark.parametrize(
    "text", ["", "{", "{}", '{"a"', '{"a":', '{"a":1', '{"a":1,', "{,}", '{"a":1}', "[]", "x"]
)
def test_the_fields_of_any_beginning_are_read(text: str) -> None:
    """A head that breaks off gives the fields before that."""
    fields, _ = fields_before_messages(text)
    assert fields in ({}, {"a": 1})
