"""What a person searches for, and what was found: the words that matched stand out."""

import os
import re
import sys
from collections.abc import Iterable

__all__ = ["highlighted", "query_of"]

# No text of a program or of prose is likely to hold these, so that they are nothing but marks.
_PLAIN_MARKS = ("«", "»")


def query_of(words: Iterable[str]) -> str:
    """Return what the words of a command line look for.

    Raises:
        StoreError: there is no word in them.
    """
    from odek.errors import StoreError

    query = " ".join(words)
    if not re.search(r"\w", query):
        raise StoreError(f"{query!r} holds no word to look for")
    return query


def highlighted(text: str, query: str) -> str:
    """Return ``text``, fit for stdout, with the words of ``query`` bold, or in «marks» without colour."""
    from odek.cli.style import Attr, detect_style
    from odek.memory.excerpt import marked
    from odek.text import readable

    style = detect_style(sys.stdout, os.environ)
    before, after = _PLAIN_MARKS if style.unicode else ("*", "*")
    if style.color:
        before, _, after = style.paint("\0", Attr.BOLD).partition("\0")
    return marked(readable(text), query, before, after)
