r"""Markdown to terminal, as it arrives: what is written is never touched again.

A line is written word by word, except where only its end tells what it is: a table
waits for its last row, an emphasised phrase for its closing mark, a line of code for its
end. A line end inside a paragraph stays one, because models break lines on purpose.
"""

from typing import Final, Literal

import msgspec

from odek.cli.blocks import Bullet, Fence, Heading, Plain, Quote, Rule, TableRow, classify
from odek.cli.inline import InlineText, parse_inline
from odek.cli.layout import Span, WordWrap, char_width, columns_of
from odek.cli.nesting import Nesting
from odek.cli.style import Attr, Style
from odek.cli.table import render_table
from odek.text import joins, visible

__all__ = ["MarkdownStream"]

# How long text waits for the end of an emphasis, code or link: a long sentence, about a
# second of a fast model. No measurement behind it.
_HOLD_CHARACTERS: Final = 600
_UNFINISHED: Final = frozenset("*_~`[]!\\<")  # marks whose meaning depends on what follows
_RULE_COLUMNS: Final = 20
_LABEL_INDENT: Final = "  "
_CODE_INDENT: Final = "    "


class _OpenFence(msgspec.Struct, frozen=True):
    """Fenced code that is not closed yet, and where it stands."""

    mark: str
    indent: int
    quotes: int
    prefix: Span


class MarkdownStream:
    r"""Renders one text for a terminal of ``width`` columns, ``base`` added to all of it.

    The output depends on the text alone, not on how it is cut into pieces. The only
    control characters in it are line ends and the colours of ``style``; those of the
    text are written out, as ``\x1b``.
    """

    def __init__(self, width: int, style: Style, base: Attr = Attr.NONE) -> None:
        self._style = style
        self._base = base
        self._width = max(width, 8)
        self._wrap = WordWrap(self._width, style)
        self._inline = InlineText(style)
        self._nesting = Nesting(self._width, style)
        # What ``_buffer`` holds: a line of unknown kind, text that waits to be written, or
        # the beginning of a line of code, the rest of which is in ``_code``; or the line is
        # dealt with already.
        self._mode: Literal["start", "text", "code", "done"] = "start"
        self._buffer = ""
        self._code: list[str] = []
        self._read = 0  # characters of the waiting text that were looked at
        self._attr = base
        self._is_heading = False
        self._fence: _OpenFence | None = None
        self._table: list[str] = []
        self._table_prefix = Span("")
        self._after_blank = True
        self._gap: int | None = None  # an empty line is due; how many quotes it lies in
        self._is_empty = True
        self._return_seen = False
        self._last = ""

    def feed(self, text: str) -> str:
        """Take more of the text and return what can be written now."""
        for char in text:
            self._take(char)
        return self._wrap.take()

    def finish(self) -> str:
        """End the text and return the rest; what was written then ends with a line end."""
        if self._buffer or self._code or self._mode in {"text", "done"} or self._nesting.opens_item:
            self._end_line()
        self._flush_table()
        return self._wrap.take()

    def _take(self, char: str) -> None:
        if self._return_seen and char != "\n":
            self._put(visible("\r"))
        self._return_seen = char == "\r"
        if char == "\n":
            self._end_line()
        elif joins(char, self._last):
            self._put(char)  # joins emoji, and letters of scripts that need it
        elif char != "\r":
            self._put(visible(char))
        self._last = char

    def _put(self, chars: str) -> None:
        for char in chars:
            match self._mode:
                case "start":
                    self._buffer += char
                    self._start_line(complete=False)
                case "text":
                    self._put_text(char)
                case "code":
                    self._code.append(char)
                case "done":
                    pass

    # -- one line -----------------------------------------------------------------------

    def _start_line(self, *, complete: bool) -> None:
        """Find out what the line is: the containers first, then what stands in them."""
        while True:
            match classify(self._buffer, complete=complete):
                case None:
                    return
                case Quote(length):
                    self._buffer = self._buffer[length:]
                    self._nesting.quotes += 1
                case Bullet() as bullet:
                    self._flush_table()
                    self._buffer = self._buffer[bullet.length :]
                    self._nesting.open_item(bullet)
                case start:
                    line, self._buffer = self._buffer, ""
                    self._begin(start, line, complete=complete)
                    return

    def _begin(self, start: Plain | Heading | Rule | Fence | TableRow, line: str, *, complete: bool) -> None:
        indent = len(line) - len(line.lstrip(" "))
        if complete and not line.strip() and not self._nesting.opens_item:
            self._begin_blank()
            return
        continues = isinstance(start, Plain) and not self._after_blank
        self._nesting.settle(indent, continues=continues)
        is_code = self._after_blank and indent >= 4 and not self._nesting.in_item
        self._after_blank = False
        if not isinstance(start, TableRow):
            self._flush_table()
        match start:
            case TableRow():
                self._add_row(line)
            case Rule():
                self._rule()
            case Fence():
                self._open_fence(start)
            case Heading(level, length):
                self._begin_heading(level, line[length:])
            case Plain():
                if is_code:
                    self._mode, self._buffer = "code", line[4:]
                else:
                    self._open_line(self._base)
                    self._mode = "text"
                    self._put(line.lstrip(" ") if self._nesting.in_item else line)

    def _end_line(self) -> None:
        self._buffer += "".join(self._code)
        self._code.clear()
        if self._mode == "code":
            self._end_code_line()
        if self._mode == "start":
            self._start_line(complete=True)
        if self._mode == "code":  # indented code of a single line
            self._code_line(self._nesting.prefixes()[1], self._buffer)
        elif self._mode == "text":
            if self._is_heading and not self._buffer.strip("#"):
                self._buffer = ""  # the closing marks of a heading
            self._flush_text(complete=True)
            self._wrap.end()
        self._is_heading = False
        self._buffer = ""
        self._mode = "start" if self._fence is None else "code"
        self._nesting.next_line()

    def _open_line(self, attr: Attr) -> None:
        """Write what stands before the text of the line."""
        self._write_gap()
        self._attr = attr
        first, rest = self._nesting.prefixes()
        self._wrap.start(first, rest)

    def _begin_blank(self) -> None:
        self._flush_table()
        self._after_blank = True
        if not self._is_empty:
            self._gap = self._nesting.quotes
        self._mode = "done"

    def _write_gap(self) -> None:
        if self._gap is not None:
            bars = self._nesting.bars(min(self._gap, self._nesting.quotes))
            self._wrap.write(Span(bars.rstrip(), Attr.DIM))
            self._wrap.end()
        self._gap = None
        self._is_empty = False

    # -- text ---------------------------------------------------------------------------

    def _put_text(self, char: str) -> None:
        """Add to the line; write what waits where a word ends and nothing is open."""
        if self._buffer and self._buffer[-1] not in _UNFINISHED and char_width(char) == 2:
            self._flush_text(complete=False)
        self._buffer += char
        full = len(self._buffer) >= _HOLD_CHARACTERS
        if char == " " or full:
            self._flush_text(complete=full)

    def _flush_text(self, *, complete: bool) -> None:
        self._inline.feed(self._buffer[self._read :], complete=complete)
        self._read = len(self._buffer)
        if not self._inline.is_open:
            self._wrap.add([Span(span.text, span.attr | self._attr) for span in self._inline.take()])
            self._buffer, self._read = "", 0

    def _begin_heading(self, level: int, text: str) -> None:
        self._open_line(self._base | Attr.BOLD | (Attr.UNDERLINE if level == 1 else Attr.NONE))
        if not self._style.color:
            self._wrap.add([Span("#" * level + " ")])
        self._is_heading = True
        self._mode = "text"
        self._put(text)

    def _rule(self) -> None:
        self._open_line(self._base)
        self._wrap.write(Span(self._style.glyph("rule") * _RULE_COLUMNS, Attr.DIM))
        self._wrap.end()
        self._mode = "done"

    # -- code ---------------------------------------------------------------------------

    def _open_fence(self, fence: Fence) -> None:
        _, prefix = self._nesting.prefixes()
        self._fence = _OpenFence(fence.mark, fence.indent, self._nesting.quotes, prefix)
        self._mode = "done"
        if fence.language or self._nesting.opens_item:
            self._open_line(self._base)
            rule = self._style.glyph("rule")
            label = f"{_LABEL_INDENT}{rule}{rule} {fence.language}" if fence.language else ""
            self._wrap.write(Span(label, Attr.DIM))
            self._wrap.end()

    def _end_code_line(self) -> None:
        """Write a line of code, or find that the code is over."""
        fence = self._fence
        if fence is None:
            return
        line = self._buffer
        for _ in range(fence.quotes):
            line = line.lstrip(" ")
            if not line.startswith(">"):
                self._fence, self._mode = None, "start"  # the quote is over, and the code with it
                return
            line = line[1:].removeprefix(" ")
        self._mode = "done"
        text = line.strip(" ")
        if len(text) >= len(fence.mark) and not text.strip(fence.mark[0]):
            self._fence = None
            return
        indent = min(len(line) - len(line.lstrip(" ")), fence.indent)
        self._code_line(fence.prefix, line[indent:])

    def _code_line(self, prefix: Span, text: str) -> None:
        self._write_gap()
        if text.strip():
            self._wrap.write(prefix)
            self._wrap.write(Span(_CODE_INDENT + text, self._base))
        self._wrap.end()
        self._after_blank = self._fence is None  # indented code may go on

    # -- tables -------------------------------------------------------------------------

    def _add_row(self, line: str) -> None:
        if not self._table:
            self._table_prefix = self._nesting.prefixes()[0]
        self._table.append(line)
        self._mode = "done"

    def _flush_table(self) -> None:
        """Write the table that the last lines were, or the lines if they were none."""
        if not self._table:
            return
        prefix, source, self._table = self._table_prefix, self._table, []
        self._write_gap()
        lines = render_table(source, self._width - columns_of(prefix.text), self._style)
        for line in lines or ():
            self._wrap.write(prefix)
            self._wrap.write(Span(line))
            self._wrap.end()
        for line in source if lines is None else ():
            self._wrap.start(prefix, prefix)
            self._wrap.add(parse_inline(line, self._style))
            self._wrap.end()
