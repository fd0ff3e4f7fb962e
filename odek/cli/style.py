"""What a stream can show: colour, redrawing, characters beyond ASCII.

Only attributes that read on light and on dark backgrounds are used: bold, dim and the
four colours of the basic palette that contrast with both. Without colour a heading keeps
its ``#`` and code its backticks, which carry meaning; emphasis is dropped.
"""

from collections.abc import Mapping
from enum import IntFlag
from typing import Final, TextIO

import msgspec

__all__ = ["PLAIN", "Attr", "Style", "detect_style"]


class Attr(IntFlag):
    """Attributes of a piece of text; they combine."""

    NONE = 0
    BOLD = 1
    DIM = 2
    ITALIC = 4
    UNDERLINE = 8
    STRIKE = 16
    CODE = 32
    RED = 64
    GREEN = 128
    MAGENTA = 256
    CYAN = 512


_SGR: Final = {
    Attr.BOLD: "1",
    Attr.DIM: "2",
    Attr.ITALIC: "3",
    Attr.UNDERLINE: "4",
    Attr.STRIKE: "9",
    Attr.CODE: "36",
    Attr.RED: "31",
    Attr.GREEN: "32",
    Attr.MAGENTA: "35",
    Attr.CYAN: "36",
}

# Two spellings of every sign that the terminal faces use: UTF-8 and anything less.
_GLYPHS: Final = {
    "ok": ("✓", "ok"),
    "fail": ("✗", "x"),
    "arrow": ("→", "->"),
    "active": ("▸", ">"),
    "bullet": ("•", "*"),
    "dot": ("·", "-"),
    "ellipsis": ("…", "..."),
    "rule": ("─", "-"),
    "cross": ("┼", "+"),
    "bar": ("│", "|"),
    "wrap": ("┊", ":"),
    "warning": ("!", "!"),
    "memory": ("🧠", ""),
}


class Style(msgspec.Struct, frozen=True):
    """What may be written to one stream.

    ``redraw`` allows to move within the current line; it needs a terminal that obeys.
    """

    color: bool = False
    unicode: bool = True
    redraw: bool = False

    def paint(self, text: str, attr: Attr) -> str:
        """Return ``text`` with ``attr``, reset at its end; unchanged without colour."""
        if not self.color or not attr or not text:
            return text
        codes = dict.fromkeys(code for flag, code in _SGR.items() if flag & attr)
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m"

    def glyph(self, name: str) -> str:
        """Return the sign called ``name`` in the richest form that the stream takes."""
        rich, ascii_only = _GLYPHS[name]
        return rich if self.unicode else ascii_only


PLAIN: Final = Style()
"""No colour and no redrawing, for files and pipes."""


def detect_style(stream: TextIO, environ: Mapping[str, str], *, no_color: bool = False) -> Style:
    """Return what ``stream`` can show.

    Colour needs a terminal that is not "dumb", or FORCE_COLOR or CLICOLOR_FORCE; the flag
    and NO_COLOR, when set to anything, turn it off whatever else is set.
    """
    terminal = stream.isatty()
    obeys = terminal and environ.get("TERM", "") not in {"", "dumb"}
    forced = any(environ.get(name, "0") not in {"", "0"} for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))
    refused = no_color or environ.get("NO_COLOR", "") != ""
    encoding = (stream.encoding or "utf-8").lower().replace("-", "").replace("_", "")
    return Style(color=not refused and (obeys or forced), unicode=encoding.startswith("utf"), redraw=obeys)
