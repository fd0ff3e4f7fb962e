"""How a call that needs approval is shown: whole, exact and with reasons; pure functions."""

from collections.abc import Sequence
from typing import Final

from odek.cli.layout import char_width, clip_columns, columns_of
from odek.cli.notes import diff_attr, one_line
from odek.cli.style import Attr, Style
from odek.cli.verdict_text import explained, paint_risk, wrapped
from odek.text import visible
from odek.trust.approval import ApprovalRequest
from odek.trust.risk import Part, Risk

__all__ = ["exact_block", "request_text"]

_PART_COLUMNS: Final = 40  # of a part's text: the whole command stands above it
_NARROWEST_COLUMNS: Final = 16


def request_text(request: ApprovalRequest, style: Style, columns: int, *, title: str) -> str:
    """Return all that the person needs to decide about ``request``, ending with a line end."""
    head = style.paint(f"{title}{one_line(request.tool)}", Attr.BOLD)
    dot = style.glyph("dot")
    place = f" {dot} {one_line(request.place)}" if request.place else ""
    lines = [f"{head} {dot} {paint_risk(request.verdict.risk, style)}{place}"]
    preview = request.preview or request.summary
    if request.summary.strip() not in preview:
        lines += wrapped(one_line(request.summary), columns, indent="  ")
    lines += exact_block(preview, style, columns)
    lines += _part_lines(request.verdict.parts, style, columns)
    return "".join(line + "\n" for line in lines)


def exact_block(text: str, style: Style, columns: int) -> list[str]:
    """Return ``text`` line by line, nothing left out.

    Every line has a bar before it; a line that is longer than the terminal goes on behind
    a dotted one, so that it cannot be taken for a new line. What a terminal would not show,
    or would obey, is written out.
    """
    lines = text.removesuffix("\n").split("\n")
    is_diff = lines[0].startswith("--- ") and any(line.startswith("@@") for line in lines)
    out: list[str] = []
    for line in lines:
        mark = style.glyph("bar")
        attr = diff_attr(line) if is_diff else Attr.NONE
        for piece in _pieces(visible(line), max(columns - 2, _NARROWEST_COLUMNS)):
            out.append(f"{style.paint(mark, Attr.DIM)} {style.paint(piece, attr)}")
            mark = style.glyph("wrap")
    return out


def _part_lines(parts: Sequence[Part], style: Style, columns: int) -> list[str]:
    """Say of each part that is not safe why; the safe ones are counted."""
    risky = [part for part in parts if part.risk > Risk.SAFE]
    lines: list[str] = []
    label_columns = max((len(part.risk.label) for part in risky), default=0)
    indent = " " * (label_columns + 4)
    for part in sorted(risky, key=lambda part: -part.risk):
        text = clip_columns(one_line(part.text), _PART_COLUMNS, style.glyph("ellipsis"))
        reason = wrapped(
            f"{text}: {explained(part)}" if len(parts) > 1 else explained(part),
            columns,
            indent=indent,
        )
        padding = " " * (label_columns - len(part.risk.label))
        lines.append(f"  {paint_risk(part.risk, style)}{padding}  {reason[0][len(indent) :]}")
        lines += reason[1:]
    if risky and (safe := len(parts) - len(risky)):
        lines.append(style.paint(f"  and {safe} safe part{'s' if safe > 1 else ''}", Attr.DIM))
    return lines


def _pieces(text: str, columns: int) -> list[str]:
    """Cut ``text`` into pieces of at most ``columns`` columns; an empty text is one empty piece."""
    if columns_of(text) <= columns:
        return [text]
    pieces: list[str] = []
    start, width = 0, 0
    for at, char in enumerate(text):
        added = char_width(char)
        if width + added > columns:
            pieces.append(text[start:at])
            start, width = at, 0
        width += added
    return [*pieces, text[start:]]
