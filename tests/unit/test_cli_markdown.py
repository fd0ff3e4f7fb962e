"""Markdown as it appears on a terminal."""

import pytest

from odek.cli.layout import columns_of
from odek.cli.markdown import MarkdownStream
from odek.cli.style import Style

PLAIN = Style(color=False)
COLOR = Style(color=True)
ASCII = Style(color=False, unicode=False)


def render(text: str, width: int = 80, style: Style = PLAIN) -> str:
    """Render a whole text."""
    stream = MarkdownStream(width, style)
    return stream.feed(text) + stream.finish()


def test_words_wrap_at_the_width_and_never_break() -> None:
    """No line is wider than the terminal and no word that fits is parted."""
    text = "the quick brown fox jumps over the lazy dog " * 5

    lines = render(text, 30).splitlines()

    assert all(len(line) <= 30 for line in lines)
    assert " ".join(lines).split() == text.split()


def test_a_word_longer_than_a_line_is_parted() -> None:
    """A word that no line can hold fills whole lines, nothing is lost."""
    lines = render("see " + "x" * 50, 20).splitlines()

    assert all(len(line) <= 20 for line in lines)
    assert "".join(lines).count("x") == 50


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("a **b** c", "a b c"),
        ("a *b* _c_ ***d***", "a b c d"),
        ("use `x*y*z` now", "use `x*y*z` now"),
        ("~~old~~ new", "~~old~~ new"),
        ("*args and **kwargs", "*args and **kwargs"),
        ("snake_case_name and __init__.py", "snake_case_name and __init__.py"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        (r"\*not\* \# a \`mark\`", "*not* # a `mark`"),
        ("[docs](https://a.b/c)", "docs <https://a.b/c>"),
        ("[https://a.b](https://a.b)", "https://a.b"),
        ("<https://a.b> and <b>html</b>", "https://a.b and <b>html</b>"),
        ("![cat](cat.png)", "[image: cat] <cat.png>"),
        ("[see **this**](x_(y).md)", "see this <x_(y).md>"),
        ("a[0] and [1, 2] (no link)", "a[0] and [1, 2] (no link)"),
        ("**bold never closed", "**bold never closed"),
        ("`code never closed", "`code never closed"),
        ("[link never](closed", "[link never](closed"),
        ("**粗体**的字", "粗体的字"),
        ("``a ` b``", "``a ` b``"),
    ],
)
def test_inline_marks_without_colour(source: str, shown: str) -> None:
    """Emphasis marks go, code keeps its backticks, what is no Markdown stays as written."""
    assert render(source) == shown + "\n"


def test_inline_marks_in_colour() -> None:
    """With colour, code loses its backticks and each run is reset at its end."""
    assert render("a **b** `c`", style=COLOR) == "a \x1b[1mb\x1b[0m \x1b[36mc\x1b[0m\n"


def test_text_is_shown_word_by_word() -> None:
    """A word is out as soon as the space behind it has come; an open emphasis waits for its end."""
    stream = MarkdownStream(80, PLAIN)

    assert stream.feed("one two") == "one"
    assert stream.feed(" **three") == " two"
    assert stream.feed(" four") == ""
    assert stream.feed("** five ") == " three four five"


def test_an_emphasis_that_never_ends_does_not_stall_the_text() -> None:
    """After some hundred characters the text behind an unmatched mark is shown as it is."""
    stream = MarkdownStream(80, PLAIN)

    assert "**word word" in stream.feed("**" + "word " * 200)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("*a " * 1000, "*a " * 1000),
        ("*a* " * 1000, "a " * 1000),
        ("**a *b* c** " * 500, "a b c " * 500),
        ("[a " * 1000, "[a " * 1000),
        ("`a` [b](c) " * 500, "`a` b <c> " * 500),
    ],
)
def test_marks_without_end_are_shown_as_ever(source: str, shown: str) -> None:
    """However many there are: what is closed is emphasised, and the rest is text."""
    assert render(source, 79).split() == shown.split()


@pytest.mark.parametrize("start", ["```\n", "    "])
def test_a_line_of_code_without_end_stays_a_line(start: str) -> None:
    """Nothing of it is lost, wrapped or taken for a mark."""
    line = "*_`|[x](y)\x1b" * 20_000

    assert render(start + line) == "    " + line.replace("\x1b", r"\x1b") + "\n"


def test_headings_keep_their_marks_without_colour() -> None:
    """A heading is bold in colour and keeps its number signs without."""
    assert render("## Title ##\n#hashtag") == "## Title\n#hashtag\n"
    assert render("# Big", style=COLOR) == "\x1b[1;4mBig\x1b[0m\n"


def test_list_items_hang_under_their_text() -> None:
    """Wrapped and continued lines of an item begin where its text does, at any depth."""
    text = (
        "1. alpha beta gamma delta\n   - one two three four five\n\n   more of it\n"
        "10. ten\n- [x] done\n* [ ] open"
    )

    assert render(text, 20) == (
        "1. alpha beta gamma\n   delta\n   • one two three\n     four five\n\n   more of it\n"
        "10. ten\n• [x] done\n• [ ] open\n"
    )


def test_paragraph_after_a_list_is_not_part_of_it() -> None:
    """Text at the margin behind an empty line ends the list."""
    assert render("- a\n- b\n\nend\n") == "• a\n• b\n\nend\n"


def test_quotes_have_a_bar_on_every_line() -> None:
    """Every line of a quote, wrapped ones too, begins with one bar for each level."""
    assert render("> one two three\n>\n> > four\n\nout", 12) == "│ one two\n│ three\n│\n│ │ four\n\nout\n"


def test_fenced_code_is_indented_labelled_and_never_wrapped() -> None:
    """Code keeps its lines whole, marks inside it mean nothing, the language is named."""
    long = "x = 1  # " + "long " * 30
    text = f"```python\ndef f():\n    **no**\n\n{long.rstrip()}\n```\nafter"

    assert render(text, 40) == (f"  ── python\n    def f():\n        **no**\n\n    {long.rstrip()}\nafter\n")


@pytest.mark.parametrize(
    "text", ["```\na\n~~~\nb\n```\n", "~~~\na\n~~~\n", "````\n```\n````", "```\nnever closed"]
)
def test_a_fence_ends_with_its_own_mark_or_the_text(text: str) -> None:
    """Only a mark of the same kind and length closes code; an open one is harmless."""
    shown = render(text + ("" if "never" in text else "\nend"))

    assert "never closed" in shown or shown.endswith("\nend\n")


def test_code_in_a_list_and_in_a_quote_stands_where_it_belongs() -> None:
    """Code inside containers is indented with them and loses their marks."""
    assert render("- a\n  ```\n  x\n    y\n  ```\n> ```\n> z\n> ```\nend") == (
        "• a\n      x\n        y\n│     z\nend\n"
    )


def test_a_table_is_aligned() -> None:
    """Columns line up by display width and follow the alignment that the table asks for."""
    text = "| Name | Size |\n|:--|--:|\n| `a` | 12 |\n| 日本語 | 4,210 |\n| a \\| b | |\n\nend"

    assert render(text) == (
        "Name   │  Size\n───────┼──────\n`a`    │    12\n日本語 │ 4,210\na | b  │\n\nend\n"
    )


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_a_table_fits_every_width(width: int) -> None:
    """A table too wide is shrunk, and shown as a list when its columns would be too narrow."""
    row = "| " + " | ".join(["some words of text"] * 6) + " |"
    table = f"| {' | '.join('abcdef')} |\n|{'---|' * 6}\n{row}\n{row}\n"

    lines = render(table, width).splitlines()

    assert all(columns_of(line) <= width for line in lines)
    assert " ".join(lines).count("text") == 12
    assert ("a: some words of" in lines[0]) == (width <= 60)


def test_lines_with_bars_that_are_no_table_stay() -> None:
    """Rows without a delimiter row are text."""
    assert render("| a | b |\nnext") == "| a | b |\nnext\n"


def test_rules_and_empty_lines() -> None:
    """A thematic break is a rule; empty lines are kept, but one at a time and none at the ends."""
    assert render("\n\na\n\n\n\n---\n***\nb\n\n\n", style=ASCII) == f"a\n\n{'-' * 20}\n{'-' * 20}\nb\n"


def test_wide_characters_wrap_by_columns() -> None:
    """Text without spaces wraps at its width in columns, never before a closing sign."""
    lines = render("日本語の文章、" * 6, 21).splitlines()

    assert all(columns_of(line) <= 22 for line in lines)
    assert not any(line.startswith("、") for line in lines)


def test_no_control_character_of_the_model_reaches_the_terminal() -> None:
    """Escape sequences, bidi marks and lone returns are written out; joined emoji are kept."""
    shown = render("a\x1b[2Jb \x9b31m \u202ec\rd \x07 👩\u200d💻 x\u200dy\r\nnext\x00")

    assert shown == "a\\x1b[2Jb \\x9b31m \\u{202e}c\\x0dd \\x07 👩\u200d💻 x\\u{200d}y\nnext\\x00\n"


def test_a_terminal_without_unicode_gets_ascii_signs() -> None:
    """Every sign that the renderer itself adds has an ASCII form."""
    text = "- a\n> b\n\n| h | i |\n|---|---|\n| 1 | 2 |\n\n```py\nx\n```\n---"

    assert render(text, style=ASCII).isascii()


def test_nothing_comes_of_nothing() -> None:
    """An empty text, or one of empty lines only, writes nothing."""
    assert render("") == ""
    assert render("\n \n\n") == ""
