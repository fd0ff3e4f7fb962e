"""Framing of server-sent events holds whatever the pieces in which the bytes come."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.llm.sse import EventTooLongError, ServerSentEvent, SseDecoder

PLAIN = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n\0"), max_size=12)
EVENTS = st.lists(
    st.builds(ServerSentEvent, st.lists(PLAIN, min_size=1, max_size=3).map("\n".join), PLAIN), max_size=5
)
ENDINGS = st.sampled_from(["\n", "\r", "\r\n"])


def decode(pieces: list[bytes], *, close: bool = True) -> list[ServerSentEvent]:
    """Return all events of the pieces."""
    decoder = SseDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.close() if close else events


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut ``data`` at the places, taken modulo its length."""
    marks = sorted(place % (len(data) + 1) for place in places)
    return [data[start:end] for start, end in zip([0, *marks], [*marks, len(data)], strict=True)]


@settings(max_examples=150)
@given(
    events=EVENTS,
    endings=st.lists(ENDINGS, min_size=1, max_size=4),
    places=st.lists(st.integers(0, 10_000), max_size=8),
    bom=st.booleans(),
    space=st.booleans(),
    comment=st.booleans(),
)
def test_events_survive_any_line_ends_and_any_cuts(
    *,
    events: list[ServerSentEvent],
    endings: list[str],
    places: list[int],
    bom: bool,
    space: bool,
    comment: bool,
) -> None:
    """Encoded with mixed line ends, cut anywhere, with comments: the same events come out."""
    lines: list[str] = []
    for event in events:
        lines += [": a comment"] if comment else []
        lines += [f"event: {event.event}"] if event.event else []
        # Without the space a leading space of the value itself would be taken for it.
        lines += [
            f"data: {line}" if space or line.startswith(" ") else f"data:{line}"
            for line in event.data.split("\n")
        ]
        lines.append("")
    text = "".join(line + endings[at % len(endings)] for at, line in enumerate(lines))
    # CR LF of two neighbours is one line end: keep mixed ends from meeting so.
    if "\r" in endings and any(end.startswith("\n") for end in endings):
        text = "".join(line + endings[0] for line in lines)
    data = (b"\xef\xbb\xbf" if bom else b"") + text.encode()
    assert decode(cut(data, places)) == events


@settings(max_examples=150)
@given(data=st.binary(max_size=200), places=st.lists(st.integers(0, 10_000), max_size=8))
def test_any_bytes_decode_alike_in_any_pieces(data: bytes, places: list[int]) -> None:
    """Arbitrary bytes raise nothing, and the cuts make no difference."""
    assert decode(cut(data, places)) == decode([data])


@settings(max_examples=30)
@given(place=st.integers(0, 20_000))
def test_the_limit_holds_for_lines_and_for_events(place: int) -> None:
    """One long line and many short ones are both refused beyond the limit."""
    for data in (b"data: " + b"x" * 20_000, b"data: xxxxxxxx\n" * 2_000):
        decoder = SseDecoder(limit_bytes=10_000)
        with pytest.raises(EventTooLongError):
            for piece in cut(data, [place]):
                decoder.feed(piece)


def test_the_last_event_needs_no_blank_line() -> None:
    """A stream that ends right behind its data still gives it."""
    assert decode([b"data: a\n\ndata: b"]) == [ServerSentEvent("a"), ServerSentEvent("b")]
    assert decode([b"data: a"], close=False) == []


def test_invalid_utf8_is_replaced() -> None:
    """Bytes that are no UTF-8 become U+FFFD and harm nothing around them."""
    assert decode([b"data: a\xffb\n\n"]) == [ServerSentEvent("a\ufffdb")]
