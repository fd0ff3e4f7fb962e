"""Text laid out in columns: widths as a terminal counts them, and words that wrap as they arrive."""

import os
from typing import Final, TextIO

import msgspec

from odek.cli.style import Attr, Style

__all__ = ["MAX_COLUMNS", "Span", "WordWrap", "char_width", "clip_columns", "columns_of", "terminal_columns"]

MAX_COLUMNS: Final = 100
"""Longer lines tire the eye, however wide the terminal is; typographers ask for less still."""
_UNKNOWN_COLUMNS: Final = 80  # a terminal that does not tell, such as a serial line
_FILE_COLUMNS: Final = 200  # a log is read with a pager or not at all; its lines still end somewhere

# Closing signs that East Asian typesetting never puts at the start of a line.
_NO_LINE_START: Final = frozenset("、。，．！？；：）」』】〉》〕］｝ー〜…")  # noqa: RUF001 - these very signs are meant


class Span(msgspec.Struct, frozen=True):
    """A piece of text with its attributes. It holds no line end and no control character."""

    text: str
    attr: Attr = Attr.NONE


_NEWLINE: Final = Span("\n")


def char_width(char: str) -> int:
    """Return how many columns ``char`` takes: 0 for a combining mark, 2 for CJK and emoji."""
    if char < "\x7f":
        return 1
    from wcwidth import wcwidth

    return max(wcwidth(char), 0)


def columns_of(text: str) -> int:
    """Return how many columns ``text`` takes."""
    return len(text) if text.isascii() else sum(map(char_width, text))


def clip_columns(text: str, columns: int, ellipsis: str = "…") -> str:
    """Return ``text`` in at most ``columns`` columns, ``ellipsis`` marking a cut."""
    if columns_of(text) <= columns:
        return text
    room = columns - len(ellipsis)
    kept: list[str] = []
    for char in text:
        room -= char_width(char)
        if room < 0:
            break
        kept.append(char)
    return ("".join(kept).rstrip() + ellipsis)[: max(columns, 0)]


def terminal_columns(stream: TextIO) -> int:
    """Return the width of the terminal behind ``stream`` now, 200 for what is no terminal."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or _UNKNOWN_COLUMNS
    except (OSError, ValueError):  # not a terminal, or a stream without a descriptor
        return _FILE_COLUMNS


class WordWrap:
    """Wraps words at ``width`` columns; what was written is never touched again.

    A word is written when what follows it is known, so that a line never has to be
    broken afterwards. Wide characters may be parted anywhere, other words only when they
    are longer than a whole line.
    """

    def __init__(self, width: int, style: Style) -> None:
        self._width = width
        self._style = style
        self._out: list[Span] = []
        self._column = 0
        self._indent = 0
        self._prefix = Span("")
        self._spaces = 0
        self._space_attr = Attr.NONE
        self._word: list[Span] = []
        self._word_width = 0

    def start(self, first: Span, rest: Span) -> None:
        """Begin a line with ``first``; lines that wrap from it begin with ``rest``."""
        self._prefix = rest
        self._indent = columns_of(rest.text)
        self.write(first)

    def add(self, spans: list[Span]) -> None:
        """Append text; a space ends a word."""
        for span in spans:
            if span.text.isascii() and " " not in span.text:
                if span.text:
                    self._grow(span, len(span.text))
                continue
            for char in span.text:
                self._add_char(char, span.attr)

    def write(self, span: Span) -> None:
        """Write ``span`` as it is, however long it is."""
        if span.text:
            self._out.append(span)
        self._column += columns_of(span.text)

    def end(self) -> None:
        """End the line."""
        self._end_word()
        self._spaces = 0
        self._out.append(_NEWLINE)
        self._column = 0

    def take(self) -> str:
        """Return what can be written by now."""
        text = "".join(self._style.paint(span.text, span.attr) for span in self._out)
        self._out.clear()
        return text

    def lines(self) -> list[list[Span]]:
        """End the last line and return all of them as spans."""
        self._end_word()
        lines: list[list[Span]] = [[]]
        for span in self._out:
            if span is _NEWLINE:
                lines.append([])
            else:
                lines[-1].append(span)
        self._out.clear()
        return lines

    def _add_char(self, char: str, attr: Attr) -> None:
        if char == " ":
            self._end_word()
            self._spaces += 1
            self._space_attr = attr
            return
        width = char_width(char)
        if width == 2 and char not in _NO_LINE_START:
            self._end_word()
        self._grow(Span(char, attr), width)

    def _grow(self, span: Span, width: int) -> None:
        if self._word and self._word[-1].attr == span.attr:
            span = Span(self._word.pop().text + span.text, span.attr)
        self._word.append(span)
        self._word_width += width

    def _end_word(self) -> None:
        if not self._word:
            return
        spans, width = self._word, self._word_width
        self._word, self._word_width = [], 0
        if self._column + self._spaces + width > self._width and self._column > self._indent:
            self._wrap()
        elif self._spaces and spans[0].attr == self._space_attr:
            spans[0] = Span(" " * self._spaces + spans[0].text, self._space_attr)
            width += self._spaces
        elif self._spaces:
            self.write(Span(" " * self._spaces, self._space_attr))
        self._spaces = 0
        if self._column + width <= self._width:
            for span in spans:
                self.write(span)
        else:
            self._write_in_pieces(spans)

    def _wrap(self) -> None:
        self._out.append(_NEWLINE)
        self._column = 0
        self.write(self._prefix)

    def _write_in_pieces(self, spans: list[Span]) -> None:
        for span in spans:
            piece = ""
            for char in span.text:
                width = char_width(char)
                if (
                    self._column + columns_of(piece) + width > self._width
                    and self._column + len(piece) > self._indent
                ):
                    self.write(Span(piece, span.attr))
                    self._wrap()
                    piece = ""
                piece += char
            self.write(Span(piece, span.attr))
