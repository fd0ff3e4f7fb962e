"""Markdown inside a line: emphasis, code, links, escapes.

The rules are CommonMark's where a terminal can show the difference. Reference links,
entities and HTML are left as they are written.
"""

import re
from typing import Final

import msgspec

from odek.cli.layout import Span
from odek.cli.style import Attr, Style
from odek.patterns import late_pattern

__all__ = ["Inline", "parse_inline"]

_SPECIAL: Final = late_pattern(r"[\\`*_~\[\]!<]")
_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CODE_SPAN: Final = late_pattern(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_DUNDER: Final = late_pattern(r"__\w+__(?!_)")  # a name of Python's; nobody sets one word in bold this way
_AUTOLINK: Final = late_pattern(r"<((?:https?|mailto|ftp)[^\s<>]*)>")
# One level of brackets or parentheses inside; deeper ones do not occur in prose.
_LINK: Final = late_pattern(
    r"(!?)\[((?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\(\s*(<[^<>]*>|(?:[^\s()\\]|\\.|\([^\s()]*\))*)(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
)
_LINK_OPEN: Final = late_pattern(r"\[(?:[^\[\]\\]|\\.|\[[^\[\]]*\])*(?:\]\([^()]*(?:\([^()]*\)[^()]*)*)?$")


class Inline(msgspec.Struct, frozen=True):
    """Parsed text; ``is_open`` says that text to come could still change how it reads."""

    spans: list[Span]
    is_open: bool


class _Run(msgspec.Struct):
    """A run of emphasis characters, consumed from both ends while it is matched."""

    char: str
    left: int
    can_open: bool
    can_close: bool


class _Piece(msgspec.Struct):
    """Text, or a run of emphasis characters, with the attributes found so far."""

    text: str = ""
    attr: Attr = Attr.NONE
    run: _Run | None = None


def parse_inline(text: str, style: Style, *, complete: bool) -> Inline:
    """Return ``text`` as spans.

    Args:
        text: a line, or the part of it that has arrived.
        style: decides whether code and struck text keep their marks.
        complete: nothing follows, so that unmatched marks are plain text.
    """
    if not _SPECIAL.search(text):
        return Inline([Span(text)], is_open=False)
    pieces, is_open = _split(text, style, complete=complete)
    _match_emphasis(pieces, keep_strike=not style.color)
    spans: list[Span] = []
    for piece in pieces:
        if piece.run is None:
            spans.append(Span(piece.text, piece.attr))
        elif piece.run.left:
            spans.append(Span(piece.run.char * piece.run.left, piece.attr))
            is_open = is_open or piece.run.can_open
    return Inline(spans, is_open=is_open and not complete)


def _split(text: str, style: Style, *, complete: bool) -> tuple[list[_Piece], bool]:
    """Cut ``text`` into literal pieces and runs; say whether code or a link is unfinished."""
    pieces: list[_Piece] = []
    is_open = False
    position = 0
    while match := _SPECIAL.search(text, position):
        start = match.start()
        if start > position:
            pieces.append(_Piece(text[position:start]))
        char = text[start]
        position = start + 1
        if char == "\\":
            escaped = text[position : position + 1]
            if escaped in _PUNCTUATION:
                pieces.append(_Piece(escaped))
                position += 1
                continue
        elif char == "`":
            if found := _CODE_SPAN.match(text, start):
                pieces.append(_code(found, style))
                position = found.end()
                continue
            position = start + _run_length(text, start)
            is_open = True
        elif char == "_" and (found := _DUNDER.match(text, start)):
            position = found.end()
        elif char in "*_~":
            position = start + _run_length(text, start)
            pieces.append(_Piece(run=_run(text, start, position)))
            continue
        elif char == "<":
            if found := _AUTOLINK.match(text, start):
                pieces.append(_Piece(found[1], Attr.UNDERLINE))
                position = found.end()
                continue
        elif char in "![":
            if found := _LINK.match(text, start):
                pieces.extend(_link(found, style))
                position = found.end()
                continue
            if char == "[" and not complete and _LINK_OPEN.match(text, start):
                is_open = True
        pieces.append(_Piece(text[start:position]))
    pieces.append(_Piece(text[position:]))
    return pieces, is_open


def _run_length(text: str, start: int) -> int:
    return len(text) - start - len(text[start:].lstrip(text[start]))


def _code(match: re.Match[str], style: Style) -> _Piece:
    body = match[2]
    if body.startswith(" ") and body.endswith(" ") and body.strip():
        body = body[1:-1]
    return _Piece(body if style.color else f"{match[1]}{body}{match[1]}", Attr.CODE)


def _link(match: re.Match[str], style: Style) -> list[_Piece]:
    """Show a link as its text and its target, so that the target can be read and copied."""
    image, label, target = match[1], match[2], match[3].strip("<>")
    inner = parse_inline(label, style, complete=True)
    pieces = [_Piece(span.text, span.attr) for span in inner.spans]
    if image:
        pieces = [_Piece("[image: "), *pieces, _Piece("]")]
    elif label == target:
        return [_Piece(target, Attr.UNDERLINE)]
    if not target or target.startswith("#"):
        return pieces
    return [*pieces, _Piece(" "), _Piece(f"<{target}>", Attr.DIM)]


def _run(text: str, start: int, end: int) -> _Run:
    """Decide by its neighbours whether a run may open or close emphasis."""
    before, after = text[start - 1 : start] or " ", text[end : end + 1] or " "
    left = not after.isspace() and (after.isalnum() or _is_border(before) or not _is_border(after))
    right = not before.isspace() and (before.isalnum() or _is_border(after) or not _is_border(before))
    char = text[start]
    if char == "_":
        return _Run(
            char,
            end - start,
            left and (not right or _is_border(before)),
            right and (not left or _is_border(after)),
        )
    if char == "~" and end - start != 2:
        return _Run(char, end - start, can_open=False, can_close=False)
    return _Run(char, end - start, left, right)


def _is_border(char: str) -> bool:
    # Scripts without spaces have no word edges: there a mark may stand anywhere.
    return not char.isalnum() or char >= "\u2e80"


def _match_emphasis(pieces: list[_Piece], *, keep_strike: bool) -> None:
    """Pair closing runs with the nearest opening ones and mark what lies between."""
    closer = 0
    while closer < len(pieces):
        run = pieces[closer].run
        if run is None or not run.can_close or not run.left:
            closer += 1
            continue
        opener = next((at for at in range(closer - 1, -1, -1) if _opens(pieces[at].run, run)), None)
        if opener is None:
            closer += 1
            continue
        opening = pieces[opener].run
        if opening is None:  # excluded by _opens; tells the type checker
            return
        count = 2 if run.left >= 2 and opening.left >= 2 else 1
        attr = Attr.STRIKE if run.char == "~" else Attr.BOLD if count == 2 else Attr.ITALIC
        opening.left -= count
        run.left -= count
        if run.char == "~" and keep_strike:
            pieces[opener] = pieces[closer] = _Piece("~~")  # without it the text would say the opposite
        for piece in pieces[opener + 1 : closer]:
            piece.attr |= attr
            if piece.run is not None:  # an opener that was passed over can no longer match
                piece.run.can_open = piece.run.can_close = False


def _opens(candidate: _Run | None, closer: _Run) -> bool:
    if candidate is None or not candidate.can_open or not candidate.left or candidate.char != closer.char:
        return False
    # CommonMark's "rule of three", for runs that could do both.
    both = (candidate.can_close or closer.can_open) and candidate.char != "~"
    return not both or (candidate.left + closer.left) % 3 != 0 or closer.left % 3 == 0
