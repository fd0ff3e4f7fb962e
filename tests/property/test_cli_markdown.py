"""What holds for the rendering of any text."""

import re
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.cli.inline import InlineText, parse_inline
from odek.cli.layout import Span
from odek.cli.markdown import MarkdownStream
from odek.cli.style import Attr, Style

# Pieces from which Markdown is made, besides arbitrary text, so that structure is common.
PIECES = st.one_of(
    st.sampled_from(["\n", "\n\n", " ", "  ", "    ", "\t", "\r", "\r\n", "word", "https://a.b/c"]),
    st.sampled_from(["- ", "1. ", "10) ", "> ", "# ", "## ", "```", "```py\n", "~~~", "---", "==="]),
    st.sampled_from(["[ ] ", "[x] ", "|", "| a |", "|---|", "\n|--|\n"]),
    st.sampled_from(["*", "**", "_", "`", "~~", "[", "](", ")", "<", ">", "\\"]),
    st.sampled_from(
        ["\u65e5\u672c", "\u3001", "\U0001f469\u200d\U0001f4bb", "\x1b[31m", "\u202e", "e\u0301"]
    ),
    st.text(max_size=5),
)
TEXTS = st.lists(PIECES, max_size=40).map("".join)
MARKS = [
    *("*", "**", "***", "_", "__", "~~", "`", "``", "[", "](", ")", "!", "<https://a.b>", "\\", '"'),
    *(" ", " ", " ", "word", "a.b", "__init__", "[a](b)", "![a](<b>)"),
]
STYLES = st.sampled_from([Style(color=True), Style(color=False), Style(color=False, unicode=False)])


def attributed(spans: list[Span]) -> list[tuple[str, Attr]]:
    """Return each character with its attributes."""
    return [(char, span.attr) for span in spans for char in span.text]


@settings(max_examples=60, deadline=None)
@given(TEXTS, STYLES, st.integers(8, 60), st.data())
def test_output_does_not_depend_on_how_the_text_is_cut(
    text: str, style: Style, width: int, data: st.DataObject
) -> None:
    """Fed whole, by the character or in any pieces, the text looks the same."""
    whole = MarkdownStream(width, style)
    expected = whole.feed(text) + whole.finish()

    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    stream = MarkdownStream(width, style)
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    single = MarkdownStream(width, style)

    assert "".join(map(stream.feed, pieces)) + stream.finish() == expected
    assert "".join(map(single.feed, text)) + single.finish() == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(MARKS), max_size=40).map("".join), STYLES)
def test_words_that_arrive_one_by_one_read_as_the_whole_line(text: str, style: Style) -> None:
    """Emphasis, code and links are found alike, and nothing that was given out reads otherwise later."""
    line = InlineText(style)
    spans: list[Span] = []
    for word in re.findall("[^ ]* |[^ ]+$", text):
        line.feed(word)
        if not line.is_open:
            spans += line.take()
    line.feed("", complete=True)
    spans += line.take()

    assert attributed(spans) == attributed(parse_inline(text, style))


@settings(max_examples=60, deadline=None)
@given(TEXTS, st.integers(8, 60))
def test_output_is_safe_for_a_terminal(text: str, width: int) -> None:
    """Without colour no control character but the line end is in the output, and it ends with one."""
    stream = MarkdownStream(width, Style(color=False))
    shown = stream.feed(text) + stream.finish()

    assert not any(unicodedata.category(char) == "Cc" for char in shown.replace("\n", ""))
    assert shown == "" or (shown.endswith("\n") and not shown.endswith("\n\n\n"))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.text("abcäöü,.;:?", min_size=1, max_size=12), min_size=1, max_size=60), st.integers(16, 90)
)
def test_plain_words_are_all_there(words: list[str], width: int) -> None:
    """Words without marks come out in order, none lost, none doubled."""
    stream = MarkdownStream(width, Style())

    assert (stream.feed(" ".join(words)) + stream.finish()).split() == words


@pytest.mark.parametrize(
    "piece",
    ["*", "**a", "`", "`a", "[", "[a](", "_a ", "~~", "|", "| a ", "> ", "- ", "<", "#", "\\", "1. ", " "],
)
def test_hostile_repetition_takes_linear_time(piece: str) -> None:
    """Thousands of repetitions of any mark are rendered at once."""
    started = time.perf_counter()
    stream = MarkdownStream(80, Style(color=True))
    stream.feed(piece * 4000)
    stream.finish()

    assert time.perf_counter() - started < 5  # a tenth of it is usual; a quadratic rule takes minutes
