"""How wide a list is, and its texts made to fit; light, for lists load little else."""

import os
import sys

__all__ = ["FILE_COLUMNS", "list_columns", "on_one_line", "wrapped"]

FILE_COLUMNS = 80
"""Of a list that is written to a file or a pipe, or to a terminal that does not tell its width."""

MOST_COLUMNS = 120
"""Longer lines tire the eye. No measurement behind this figure."""

LEAST_COLUMNS = 20
"""Narrower than any window that a person reads in; such a figure is a mistake of the terminal."""


def list_columns() -> int:
    """Return how wide a list on stdout is: as its terminal, within what can be read."""
    if not sys.stdout.isatty():
        return FILE_COLUMNS
    return min(
        max(os.get_terminal_size(sys.stdout.fileno()).columns or FILE_COLUMNS, LEAST_COLUMNS), MOST_COLUMNS
    )


def on_one_line(text: str, columns: int) -> str:
    """Return ``text`` on a line of at most ``columns``, with all that a terminal would obey visible."""
    from odek.text import clip_line, readable

    shown = readable(" ".join(text.split()))
    if shown.isascii():
        return clip_line(shown, columns)
    from odek.cli.layout import clip_columns  # most lists do without

    return clip_columns(shown, columns)


def wrapped(line: str, *, indent: str = "", further: int = 4) -> str:
    """Return ``line``, which begins with ``indent``, as the terminal that stdout is has room for it.

    What does not fit goes on in lines below, ``further`` in. A pipe or a file gets it whole.
    """
    if not sys.stdout.isatty() or (len(line) <= list_columns() and line.isascii()):
        return line
    from odek.cli.layout import Span, WordWrap
    from odek.cli.style import PLAIN

    wrap = WordWrap(list_columns(), PLAIN)
    wrap.start(Span(indent), Span(indent + " " * further))
    wrap.add([Span(line[len(indent) :])])
    wrap.end()
    return wrap.take().removesuffix("\n")
