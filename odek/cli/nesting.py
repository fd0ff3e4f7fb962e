"""The quotes and list items that a line of Markdown stands in."""

import msgspec

from odek.cli.blocks import Bullet
from odek.cli.layout import Span, columns_of
from odek.cli.style import Attr, Style

__all__ = ["Nesting"]


class _Item(msgspec.Struct, frozen=True):
    """An open list item: the column of its marker in the source, its indentation on the screen."""

    column: int
    hang: str


class Nesting:
    """Follows quotes and lists from line to line and gives each line its prefix.

    Nesting goes by the marker's column: two columns further in is one level deeper. That
    accepts what CommonMark does and the smaller indentations that models write.
    """

    def __init__(self, width: int, style: Style) -> None:
        self.quotes = 0
        self._width = width
        self._style = style
        self._items: list[_Item] = []
        self._items_quotes = 0
        self._marker = ""
        self._offset = 0

    @property
    def in_item(self) -> bool:
        """Whether the line belongs to a list item."""
        return bool(self._items)

    @property
    def opens_item(self) -> bool:
        """Whether the line has the marker of a list item."""
        return bool(self._marker)

    def next_line(self) -> None:
        """Begin a line: its quotes and markers are not known yet."""
        self.quotes = 0
        self._marker = ""
        self._offset = 0

    def open_item(self, bullet: Bullet) -> None:
        """Enter the item that ``bullet`` begins, leaving those which it does not lie in."""
        column = self._offset + bullet.indent
        self._leave(column)
        parent = self._items[-1].hang if self._items else ""
        marker = (bullet.number or self._style.glyph("bullet")) + " "
        if bullet.task:
            marker += f"[{bullet.task}] "
        hang = parent + " " * columns_of(marker)
        if len(hang) > self._width // 2:
            hang = parent  # deeper would leave no room for text
        self._marker = (self._marker or parent) + marker
        self._items.append(_Item(column, hang))
        self._items_quotes = self.quotes
        self._offset += bullet.content

    def settle(self, indent: int, *, continues: bool) -> None:
        """Leave the items that a line without a marker does not lie in.

        ``continues`` says that the line goes on with a paragraph, whatever its indentation.
        """
        if not self._marker and not (continues and self.quotes == self._items_quotes):
            self._leave(indent)

    def prefixes(self) -> tuple[Span, Span]:
        """Return what the line begins with, and what lines that wrap from it begin with."""
        bars = self.bars(self.quotes)
        hang = self._items[-1].hang if self._items else ""
        return _prefix(bars + (self._marker or hang)), _prefix(bars + hang)

    def bars(self, quotes: int) -> str:
        """Return the bars of ``quotes`` nested quotes."""
        return f"{self._style.glyph('bar')} " * min(quotes, max(self._width // 8, 2))

    def _leave(self, column: int) -> None:
        if self.quotes != self._items_quotes:
            self._items.clear()
        while self._items and column < self._items[-1].column + 2:
            self._items.pop()


def _prefix(text: str) -> Span:
    return Span(text, Attr.DIM if text.strip() else Attr.NONE)
