"""Text made fit for a terminal: where something is decided, and where it is only read."""

import pytest

from odek.text import readable, visible

PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    "text", [PERSIAN, FAMILY, "\u0915\u094d\u200d\u0937"], ids=["Persian", "emoji", "Hindi"]
)
def test_joiners_stay_where_text_is_read_and_are_seen_where_it_is_decided_on(text: str) -> None:
    """A person reads their own language as it is written; what is approved hides nothing."""
    assert readable(text) == text
    assert "\\u{200" in visible(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rm\u200c -rf", "rm\\u{200c} -rf"),
        ("\u200dx", "\\u{200d}x"),
        ("\x1b[2J\u202e\u200b", "\\x1b[2J\\u{202e}\\u{200b}"),
        ("\u0645\u200c\u200c\u0645", "\u0645\u200c\u200c\u0645"),
        ("a\tb\nc\r", "a    b\nc\\x0d"),
    ],
)
def test_all_else_is_written_out_in_both(text: str, shown: str) -> None:
    """No escape sequence, nothing that hides or reorders text, and no joiner behind ASCII."""
    assert readable(text) == shown
    assert visible(text).isprintable() or "\n" in text
