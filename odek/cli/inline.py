"""Markdown inside a line: emphasis, code, links, escapes.

The rules are CommonMark's where a terminal can show the difference. Reference links,
entities and HTML are left as they are written. Text is looked at once, however many
pieces it arrives in, except for what a mark of code or of a link holds up.
"""

import re
from typing import Final

import msgspec

from odek.cli.layout import Span
from odek.cli.style import Attr, Style
from odek.patterns import late_pattern

__all__ = ["InlineText", "parse_inline"]

_SPECIAL: Final = late_pattern(r"[\\`*_~\[\]!<]")
_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CODE_SPAN: Final = late_pattern(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_DUNDER: Final = late_pattern(r"__\w+__(?!_)")  # a name of Python's; nobody sets one word in bold this way
_DUNDER_OPEN: Final = late_pattern(r"__\w+$")
_AUTOLINK: Final = late_pattern(r"<((?:https?|mailto|ftp)[^\s<>]*)>")
# One level of brackets or parentheses inside; deeper ones do not occur in prose.
_LINK: Final = late_pattern(
    r"(!?)\[((?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\(\s*(<[^<>]*>|(?:[^\s()\\]|\\.|\([^\s()]*\))*)(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
)
_LINK_OPEN: Final = late_pattern(
    r"!?\[(?:[^\[\]\\]|\\.|\[[^\[\]]*\])*(?:\[[^\[\]]*|\]\([^()]*(?:\([^()]*\)[^()]*)*)?$"
)


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


def parse_inline(text: str, style: Style) -> list[Span]:
    """Return a whole line as spans; ``style`` decides whether code and struck text keep their marks."""
    if not _SPECIAL.search(text):
        return [Span(text)]
    line = InlineText(style)
    line.feed(text, complete=True)
    return line.take()


class InlineText:
    """Text that arrives word by word, until nothing that follows can change how it reads."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self._text = ""
        self._position = 0  # up to here the text is in pieces
        self._pieces: list[_Piece] = []
        # Where the runs are that may still open emphasis, those of each character in order.
        self._openers: dict[str, list[int]] = {"*": [], "_": [], "~": []}

    @property
    def is_open(self) -> bool:
        """Whether text to come could still change how this reads; False for complete text."""
        return self._position < len(self._text) or any(self._openers.values())

    def feed(self, text: str, *, complete: bool = False) -> None:
        """Add text that ends with a whole word.

        Args:
            text: what has arrived.
            complete: nothing follows, so that unmatched marks are plain text.
        """
        self._text += text
        text, position = self._text, self._position
        while match := _SPECIAL.search(text, position):
            start = match.start()
            if start > position:
                self._pieces.append(_Piece(text[position:start]))
            position = start
            end = self._take_mark(start, complete=complete)
            if end is None and not complete:
                break
            position = end or start + _mark_length(text, start)
            if end is None:
                self._pieces.append(_Piece(text[start:position]))
        else:
            self._pieces.append(_Piece(text[position:]))
            position = len(text)
        self._position = position
        if complete:
            self._openers = {char: [] for char in self._openers}

    def take(self) -> list[Span]:
        """Return what was fed, as spans, and begin anew; the text must not be open."""
        spans: list[Span] = []
        for piece in self._pieces:
            run = piece.run
            text = piece.text if run is None else run.char * run.left
            if text:
                spans.append(Span(text, piece.attr))
        self._text, self._position = "", 0
        self._pieces.clear()
        return spans

    def _take_mark(self, start: int, *, complete: bool) -> int | None:
        """Put the mark at ``start`` in pieces; return where it ends, None if that is still to come."""
        text, char = self._text, self._text[start]
        end = start + 1
        found: re.Match[str] | None
        if char == "\\" and text[end : end + 1] in _PUNCTUATION:
            self._pieces.append(_Piece(text[end : end + 1]))
            return end + len(text[end : end + 1])
        if char == "`":
            if not (found := _CODE_SPAN.match(text, start)):
                return None
            self._pieces.append(_code(found, self._style))
            return found.end()
        if char == "_" and (found := _DUNDER.match(text, start)):
            end = found.end()
        elif char in "*_~":
            return self._take_run(start, complete=complete)
        elif char == "<" and (found := _AUTOLINK.match(text, start)):
            self._pieces.append(_Piece(found[1], Attr.UNDERLINE))
            return found.end()
        elif char in "![":
            if found := _LINK.match(text, start):
                self._pieces.extend(_link(found, self._style))
                return found.end()
            if _LINK_OPEN.match(text, start):
                return None
        self._pieces.append(_Piece(text[start:end]))
        return end

    def _take_run(self, start: int, *, complete: bool) -> int | None:
        end = start + _mark_length(self._text, start)
        run = _run(self._text, start, end)
        if run.can_open and not complete and _DUNDER_OPEN.match(self._text, start):
            return None
        self._pieces.append(_Piece(run=run))
        if run.can_close:
            self._close(len(self._pieces) - 1, run)
        if run.can_open and run.left:
            self._openers[run.char].append(len(self._pieces) - 1)
        return end

    def _close(self, closer: int, run: _Run) -> None:
        """Pair a closing run with the nearest opening ones, and mark what lies between."""
        while run.left:
            openers = ((at, self._pieces[at].run) for at in reversed(self._openers[run.char]))
            opener, opening = next((found for found in openers if _opens(found[1], run)), (0, None))
            if opening is None:
                return
            count = 2 if run.left >= 2 and opening.left >= 2 else 1
            attr = Attr.STRIKE if run.char == "~" else Attr.BOLD if count == 2 else Attr.ITALIC
            opening.left -= count
            run.left -= count
            # An opener that was passed over can no longer match.
            for passed in self._openers.values():
                while passed and (passed[-1] > opener or (passed[-1] == opener and not opening.left)):
                    passed.pop()
            if run.char == "~" and not self._style.color:  # without it the text would say the opposite
                self._pieces[opener], self._pieces[closer] = _Piece("~~"), _Piece("~~")
            for piece in self._pieces[opener + 1 : closer]:
                piece.attr |= attr


def _mark_length(text: str, start: int) -> int:
    """Return how long the run of one mark is; one of brackets stands alone."""
    char = text[start]
    return len(text) - start - len(text[start:].lstrip(char)) if char in "`*_~" else 1


def _code(match: re.Match[str], style: Style) -> _Piece:
    body = match[2]
    if body.startswith(" ") and body.endswith(" ") and body.strip():
        body = body[1:-1]
    return _Piece(body if style.color else f"{match[1]}{body}{match[1]}", Attr.CODE)


def _link(match: re.Match[str], style: Style) -> list[_Piece]:
    """Show a link as its text and its target, so that the target can be read and copied."""
    image, label, target = match[1], match[2], match[3].strip("<>")
    pieces = [_Piece(span.text, span.attr) for span in parse_inline(label, style)]
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


def _opens(candidate: _Run | None, closer: _Run) -> bool:
    if candidate is None:
        return False
    # CommonMark's "rule of three", for runs that could do both.
    both = (candidate.can_close or closer.can_open) and candidate.char != "~"
    return not both or (candidate.left + closer.left) % 3 != 0 or closer.left % 3 == 0
