"""Whatever the cuts and whatever the bytes, the framing holds."""

import itertools
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subagent.errors import ProtocolError
from subagent.wire import (
    ChildMessage,
    Failed,
    Finished,
    LineDecoder,
    Message,
    Progress,
    Ready,
    Task,
    child_messages,
    encode,
    parent_messages,
)

TEXT = st.text() | st.binary(max_size=20).map(os.fsdecode)
"""The second are names of files, which need not be UTF-8."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
CHILD_MESSAGES = st.one_of(
    st.builds(Ready, pid=st.integers(1, 2**31)),
    st.builds(Progress, payload=JSON),
    st.builds(Finished, payload=JSON),
    st.builds(Failed, error=TEXT),
)


def decode(decoder: "LineDecoder[ChildMessage]", chunks: list[bytes]) -> tuple[list[ChildMessage], bool]:
    """Return the messages and whether the stream was sound to its end."""
    found: list[ChildMessage] = []
    try:
        for chunk in chunks:
            for message in decoder.feed(chunk):
                found.append(message)  # noqa: PERF402 - what came before an error counts
        for message in decoder.finish():
            found.append(message)  # noqa: PERF402
    except ProtocolError as error:
        assert "\n" not in str(error)
        return found, False
    return found, True


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Return ``data`` in pieces, cut at the given places."""
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(bounds)]


@settings(max_examples=60)
@given(st.lists(CHILD_MESSAGES, max_size=5), st.lists(st.integers(0, 10_000), max_size=6), st.booleans())
def test_messages_survive_any_cut(messages: list[Message], places: list[int], newline: bool) -> None:
    """Where the pipe cuts the stream does not matter, nor whether the last newline came."""
    data = b"".join(encode(message) for message in messages)
    if not newline:
        data = data.removesuffix(b"\n")
    assert decode(child_messages(), cut(data, places)) == (messages, True)


@settings(max_examples=60)
@given(
    st.lists(CHILD_MESSAGES, max_size=3), st.binary(max_size=60), st.lists(st.integers(0, 500), max_size=4)
)
def test_garbage_costs_nothing_that_came_before(
    messages: list[Message], garbage: bytes, places: list[int]
) -> None:
    """Sound messages are delivered first; then a one-line error, or nothing for blank lines."""
    data = b"".join(encode(message) for message in messages) + b"!" + garbage
    found, sound = decode(child_messages(), cut(data, places))
    assert found[: len(messages)] == messages
    assert not sound


@settings(max_examples=30)
@given(st.integers(1, 400), st.lists(st.integers(0, 500), max_size=4))
def test_lines_and_streams_are_bounded(size: int, places: list[int]) -> None:
    """The bounds hold to the byte, however the line arrives."""
    data = encode(Progress("x" * size))
    fits = len(data) - 1
    assert decode(child_messages(max_line_bytes=fits), cut(data, places)) == ([Progress("x" * size)], True)
    assert decode(child_messages(max_line_bytes=fits - 1), cut(data, places)) == ([], False)
    assert decode(child_messages(max_stream_bytes=fits + 1), cut(data, places))[1]
    assert not decode(child_messages(max_stream_bytes=fits), cut(data, places))[1]


def test_an_endless_line_is_refused_before_it_is_kept() -> None:
    """A line without end is given up at the bound, not when it ends."""
    decoder = child_messages(max_line_bytes=1000)
    assert list(decoder.feed(b"x" * 1000)) == []
    with pytest.raises(ProtocolError, match="longer than 1000 bytes"):
        list(decoder.feed(b"x"))


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"finished"',
        b'{"type":"task","id":"1"}',
        b'{"type":"ready","pid":"one"}',
        b'{"type":"unheard of"}',
        b'{"type":"progress","payload":"\xff"}',
        b'{"type":"progress","payload":NaN}',
        b'{"type":"unheard of \\udcff"}',
        b'{"type":"ready","pid":"\\udcff"}',
        b'{"type":"progress","payload":"\\udcff"',
        b"\x00",
        b"\x1b[2J",
        b"[" * 100_000,
    ],
)
def test_what_is_no_message_of_a_child_is_named(line: bytes) -> None:
    """The error shows the beginning of the line, escaped."""
    found, sound = decode(child_messages(), [line + b"\n"])
    assert (found, sound) == ([], False)


def test_a_task_reaches_the_child() -> None:
    """The parent's side is framed alike."""
    task = Task("1", {"goal": "a\nb", "n": [1, None]})
    assert list(parent_messages().feed(encode(task))) == [task]


def test_what_cannot_be_sent_is_refused_by_the_sender() -> None:
    """A payload that is no JSON, or too long, is an error where it is made."""
    with pytest.raises(ProtocolError, match="JSON"):
        encode(Finished(object()))
    with pytest.raises(ProtocolError, match="longer than"):
        encode(Finished("x" * 100), max_line_bytes=100)
