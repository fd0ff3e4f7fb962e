"""Reasoning of which only the end has a tag, as templates leave it that have written the beginning."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odek.llm.answer import AnswerDecoder
from odek.llm.model import ModelEvent, TextPiece, TextWasReasoning
from tests.support.model_server import chunk

STOP = chunk(finish_reason="stop")
CUTS = st.integers(1, 9)


def in_pieces(text: str, size: int) -> list[bytes]:
    """Return the chunks of an answer, ``size`` characters each."""
    return [*(chunk({"content": text[at : at + size]}) for at in range(0, len(text), size)), STOP]


def decoded(
    pieces: Sequence[bytes], events: list[ModelEvent] | None = None, *, lone_end: str = ""
) -> AnswerDecoder:
    """Return what has decoded the pieces; ``events`` takes what it reported."""
    decoder = AnswerDecoder(lone_end=lone_end)
    reported = [event for piece in pieces for event in decoder.feed(piece)] + decoder.close()
    if events is not None:
        events += reported
    return decoder


def texts(events: Sequence[ModelEvent]) -> str:
    """Return the text that was reported."""
    return "".join(event.text for event in events if isinstance(event, TextPiece))


LONE_ENDS = [
    ("so it is 4\n</think>\n\nFour.", "so it is 4\n", "Four."),
    ("so it is 4.</think>Four.", "so it is 4.", "Four."),
    ("so it is 4. </think> Four.", "so it is 4. ", "Four."),
    ("so `2 + 2`</think>Four.", "so `2 + 2`", "Four."),
    ("\n</think>\n\nFour.", "\n", "Four."),
    ("</think>Four.", None, "Four."),
    ("a `</think>` is no end.\n</think>\nFour.", "a `</think>` is no end.\n", "Four."),
    ("```\n</think>\n```\nno end.\n</think>Four.", "```\n</think>\n```\nno end.\n", "Four."),
    ("hm [so]\n[/THINK]Four.", "hm [so]\n", "Four."),
    ("hm\n</thinking>\nFour </think>. </think>", "hm\n", "Four </think>. </think>"),
    ("only this\n</think>", "only this\n", ""),
]
NAMED_ENDS = [
    "The `</think>` tag closes it.",
    "The </think> tag closes it.",
    'It ends with "</think>".',
    "It ends with “</think>” there.",
    "Write `<think>` and then\n</think>.",
    "<p>\nA tag.\n<think>\nhm.\n</think>",
    "```xml\nhm.\n</think>\n```",
    "~~~\nhm.</think>\n",
    "Like this:\n\n    hm.\n    </think>\n\n**</think>** (</think>) | </think> |",
    "a < b and c </ d </thin",
    "the end is <",
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(("text", "reasoning", "content"), LONE_ENDS)
def test_a_lone_closing_tag_ends_the_reasoning(
    text: str, reasoning: str | None, content: str, size: int
) -> None:
    """A template that has written the opening tag itself leaves the other one, however it is cut."""
    message = decoded(in_pieces(text, size)).response().message
    assert (message.reasoning_content, message.content) == (reasoning, content)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("text", NAMED_ENDS)
def test_a_closing_tag_that_is_named_ends_nothing(text: str, size: int) -> None:
    """In code, in quotes, in a sentence, or behind its opening tag it is what the answer says."""
    message = decoded(in_pieces(text, size)).response().message
    assert (message.reasoning_content, message.content) == (None, text)


def test_text_that_turns_out_to_be_reasoning_is_told() -> None:
    """What was reported as text is taken back before the answer begins."""
    events: list[ModelEvent] = []
    decoder = decoded(in_pieces("so\n</think>\nFour.", 3), events)
    assert decoder.response().message.content == "Four."
    turned = events.index(TextWasReasoning())
    assert (texts(events[:turned]), texts(events[turned:])) == ("so\n", "Four.")
    assert decoder.lone_end == "</think>"


@pytest.mark.parametrize(
    ("text", "reasoning", "content", "lone_end"),
    [
        ("so\n</think>\nFour.", "so\n", "Four.", "</think>"),
        ("<think>so</think>Four.", "so", "Four.", ""),
        ("Four.", "Four.", "Four.", ""),
        ("", None, "", "</think>"),
    ],
)
def test_an_answer_that_is_expected_to_begin_with_reasoning(
    text: str, reasoning: str | None, content: str, lone_end: str
) -> None:
    """It is told as such as it comes; one that does not is shown whole, and changes what is expected."""
    events: list[ModelEvent] = []
    decoder = decoded(in_pieces(text, 4), events, lone_end="</think>")
    message = decoder.response().message
    assert (message.reasoning_content, message.content) == (reasoning, content)
    assert decoder.lone_end == lone_end
    assert texts(events) == content


@given(
    st.lists(st.sampled_from(["</think>", "<think>", "a", ".", " ", "\n", "`", "```", "</thinking>", "<"])),
    CUTS,
)
def test_an_answer_reads_alike_however_it_is_cut(parts: list[str], size: int) -> None:
    """Nothing depends on where a piece of the stream ends."""
    text = "".join(parts)
    whole, cut = (decoded(in_pieces(text, each)).response().message for each in (len(text) or 1, size))
    assert whole == cut
