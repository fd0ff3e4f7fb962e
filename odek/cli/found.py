"""What a search found, as a person sees it: the words that matched stand out."""

import os
import sys

__all__ = ["highlighted"]

# No text of a program or of prose is likely to hold these, so that they are nothing but marks.
_PLAIN_MARKS = ("«", "»")


def highlighted(text: str, query: str) -> str:
    """Return ``text``, fit for stdout, with the words of ``query`` bold, or in «marks» without colour."""
    from odek.cli.style import Attr, detect_style
    from odek.memory.excerpt import marked
    from odek.text import visible

    style = detect_style(sys.stdout, os.environ)
    before, after = _PLAIN_MARKS if style.unicode else ("*", "*")
    if style.color:
        before, _, after = style.paint("\0", Attr.BOLD).partition("\0")
    return marked(visible(text), query, before, after)
