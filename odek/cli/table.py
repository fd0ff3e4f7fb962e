"""Markdown tables laid out for a terminal: aligned, shrunk to fit, or a list when nothing fits."""

from collections.abc import Collection, Iterable
from typing import Final, Literal

import msgspec

from odek.cli.inline import parse_inline
from odek.cli.layout import Span, WordWrap, columns_of
from odek.cli.style import PLAIN, Attr, Style
from odek.patterns import late_pattern
from odek.text import visible

__all__ = ["plain_table", "render_table"]

Align = Literal["left", "right", "center"]
Cell = list[Span]

_DELIMITER: Final = late_pattern(r"\|?(?: *:?-+:? *\|)* *:?-+:? *\|? *")
_NARROWEST_COLUMNS: Final = 8  # below this words break mid-way; no measurement behind it


class _Table(msgspec.Struct, frozen=True):
    """``rows`` begins with the header; every row has as many cells as it."""

    rows: list[list[Cell]]
    aligns: list[Align]


def render_table(lines: list[str], width: int, style: Style) -> list[str] | None:
    """Return the lines of the table that ``lines`` spell, or None if they spell none."""
    table = _parse(lines, style)
    if table is None:
        return None
    widths = _fit([max(_cell_width(row[at]) for row in table.rows) for at in range(len(table.aligns))], width)
    return _as_list(table, width, style) if widths is None else _as_grid(table, widths, style)


def plain_table(
    head: tuple[str, ...], rows: Iterable[tuple[str, ...]], width: int, *, numbers: Collection[str] = ()
) -> list[str]:
    """Return the lines of a table of texts without colour; columns named in ``numbers`` end flush."""
    marks = tuple("---:" if cell in numbers else "---" for cell in head)
    source = [_row(line) for line in (head, marks, *rows)]
    return render_table(source, width, PLAIN) or source


def _row(cells: tuple[str, ...]) -> str:
    return " | ".join(
        ["", *(visible(cell, keep_newlines=False).replace("|", "\\|") for cell in cells), ""]
    ).strip()


def _parse(lines: list[str], style: Style) -> _Table | None:
    if len(lines) < 2 or not _DELIMITER.fullmatch(lines[1].strip()):
        return None
    aligns = [_align(cell) for cell in _cells(lines[1])]
    header = _cells(lines[0])
    if len(header) != len(aligns):
        return None
    rows = [header, *(_cells(line) for line in lines[2:])]
    count = len(aligns)
    return _Table(
        [[_spans(cell, style) for cell in (row + [""] * count)[:count]] for row in rows],
        aligns,
    )


def _cells(line: str) -> list[str]:
    r"""Split a row at its bars; ``\|`` is a bar inside a cell, as is one inside code."""
    cells, cell, in_code, escaped = [], "", False, False
    for char in line.strip().removeprefix("|"):
        if char == "|" and escaped:
            cell = cell[:-1] + char
        elif char == "|" and not in_code:
            cells.append(cell.strip())
            cell = ""
        else:
            in_code ^= char == "`"
            cell += char
        escaped = char == "\\" and not escaped
    if cell.strip():
        cells.append(cell.strip())
    return cells


def _align(cell: str) -> Align:
    if cell.endswith(":"):
        return "center" if cell.startswith(":") else "right"
    return "left"


def _spans(cell: str, style: Style) -> Cell:
    return parse_inline(cell, style)


def _cell_width(cell: Cell) -> int:
    return sum(columns_of(span.text) for span in cell)


def _fit(natural: list[int], width: int) -> list[int] | None:
    """Shrink the widest columns until the row fits; None when they would become too narrow."""
    room = width - 3 * (len(natural) - 1)
    widths = [max(columns, 1) for columns in natural]
    if sum(min(columns, _NARROWEST_COLUMNS) for columns in widths) > room:
        return None
    # The cap under which all columns together use the room: each step lowers the widest only.
    cap = max(widths)
    while sum(min(columns, cap) for columns in widths) > room:
        cap -= 1
    return [min(columns, cap) for columns in widths]


def _as_grid(table: _Table, widths: list[int], style: Style) -> list[str]:
    bar = style.paint(f" {style.glyph('bar')} ", Attr.DIM)
    lines: list[str] = []
    for number, row in enumerate(table.rows):
        cells = [
            _cell_lines(cell, columns, style, Attr.BOLD if number == 0 else Attr.NONE)
            for cell, columns in zip(row, widths, strict=True)
        ]
        for at in range(max(map(len, cells))):
            parts = [
                _padded(cell[at] if at < len(cell) else [], columns, align, style)
                for cell, columns, align in zip(cells, widths, table.aligns, strict=True)
            ]
            lines.append(bar.join(parts).rstrip())
        if number == 0:
            rule = style.glyph("rule")
            lines.append(
                style.paint(f"{rule}{style.glyph('cross')}{rule}".join(rule * w for w in widths), Attr.DIM)
            )
    return lines


def _cell_lines(cell: Cell, columns: int, style: Style, attr: Attr) -> list[Cell]:
    """Wrap a cell; each line is a list of spans."""
    wrap = WordWrap(columns, style)
    wrap.add([Span(span.text, span.attr | attr) for span in cell])
    return wrap.lines()


def _padded(line: Cell, columns: int, align: Align, style: Style) -> str:
    text = "".join(style.paint(span.text, span.attr) for span in line)
    space = columns - _cell_width(line)
    before = space if align == "right" else space // 2 if align == "center" else 0
    return " " * before + text + " " * (space - before)


def _as_list(table: _Table, width: int, style: Style) -> list[str]:
    """Show each row as lines ``header: cell``, an empty line between rows."""
    wrap = WordWrap(width, style)
    header = table.rows[0]
    for number, row in enumerate(table.rows[1:]):
        if number:
            wrap.end()
        for name, cell in zip(header, row, strict=True):
            wrap.start(Span(""), Span("  "))
            wrap.add([Span(span.text, span.attr | Attr.BOLD) for span in name])
            wrap.add([Span(": "), *cell])
            wrap.end()
    return wrap.take().splitlines()
