"""What kind of line Markdown text begins with; pure functions on the line's first characters."""

import re
from typing import Final, Literal

import msgspec

from odek.patterns import late_pattern

__all__ = ["Bullet", "Fence", "Heading", "LineStart", "Plain", "Quote", "Rule", "TableRow", "classify"]

LONGEST_ROW: Final = 4000
"""Characters of a table row; anything longer is no table that a terminal could show."""

_LONGEST_START: Final = 200
"""Characters after which a line that could still be anything is taken for text."""


class Plain(msgspec.Struct, frozen=True):
    """Text of a paragraph; an empty line when the whole line is blank."""


class Quote(msgspec.Struct, frozen=True):
    """A quote mark of ``length`` characters; what follows is a line start of its own."""

    length: int


class Bullet(msgspec.Struct, frozen=True):
    """A list item: ``length`` characters up to its text, ``number`` for ordered lists.

    ``task`` is the state of a task box, which is part of ``length``.
    """

    indent: int
    length: int
    content: int
    number: str = ""
    task: Literal["", " ", "x"] = ""


class Heading(msgspec.Struct, frozen=True):
    """A heading of ``level`` 1 to 6; ``length`` characters up to its text."""

    level: int
    length: int


class Rule(msgspec.Struct, frozen=True):
    """A thematic break, or the line below a heading of the older form."""


class Fence(msgspec.Struct, frozen=True):
    """The first line of fenced code."""

    indent: int
    mark: str
    language: str


class TableRow(msgspec.Struct, frozen=True):
    """A line that may be the row of a table."""


LineStart = Plain | Quote | Bullet | Heading | Rule | Fence | TableRow

_RULE: Final = late_pattern(r"(?:\*[ ]*){3,}|(?:-[ ]*){3,}|(?:_[ ]*){3,}|={3,}[ ]*")
_RULE_BEGUN: Final = late_pattern(r"(?:\*[ ]*)+|(?:-[ ]*)+|(?:_[ ]*)+|=+[ ]*")
_HEADING: Final = late_pattern(r"(#{1,6}) +")
_HEADING_BEGUN: Final = late_pattern(r"#{1,6} *")
_FENCE: Final = late_pattern(r"(`{3,}|~{3,}) *([^`]*)")
_FENCE_BEGUN: Final = late_pattern(r"`{1,2}|~{1,2}|`{3,}[^`]*|~{3,}.*")
_BULLET: Final = late_pattern(r"(?:[-*+]|(\d{1,9}[.)]))( +)(?:\[([ xX])\] )?")
_BULLET_BEGUN: Final = late_pattern(r"(?:[-*+]|\d{1,9}[.)]?)(?: *| +\[(?:[ xX]\]?)?)")


def classify(line: str, *, complete: bool) -> LineStart | None:
    """Return what ``line`` begins with, or None when more of it is needed.

    Args:
        line: the line so far, from where its containers end; tabs are expanded.
        complete: the line ends here.
    """
    text = line.lstrip(" ")
    indent = len(line) - len(text)
    undecided = not complete and len(line) <= _LONGEST_START
    if not text:
        return None if undecided else Plain()
    first = text[0]
    if first == ">":
        return _quote(text, indent, complete=complete)
    if first == "|":
        return TableRow() if complete else Plain() if len(line) > LONGEST_ROW else None
    if complete and _RULE.fullmatch(text):
        return Rule()
    if first in "#`~*-_=+" or first.isdigit():
        return None if undecided and _may_become(text) else _marked(text, indent, complete=complete)
    return Plain()


def _may_become(text: str) -> bool:
    begun = (_RULE_BEGUN, _FENCE_BEGUN, _HEADING_BEGUN, _BULLET_BEGUN)
    return any(pattern.fullmatch(text) for pattern in begun)


def _quote(text: str, indent: int, *, complete: bool) -> LineStart | None:
    if len(text) == 1:
        return Quote(indent + 1) if complete else None
    return Quote(indent + (2 if text[1] == " " else 1))


def _marked(text: str, indent: int, *, complete: bool) -> LineStart:
    if found := _HEADING.match(text):
        return Heading(len(found[1]), indent + found.end())
    if complete and (found := _FENCE.fullmatch(text)):
        return Fence(indent, found[1], found[2].strip())
    if complete and _BULLET_BEGUN.fullmatch(text):
        text = text.rstrip() + " "  # an item without text
    if found := _BULLET.match(text):
        return _bullet(found, indent)
    return Plain()


def _bullet(found: re.Match[str], indent: int) -> Bullet:
    number, spaces, task = found[1] or "", found[2], found[3]
    marker = len(number) or 1
    return Bullet(
        indent=indent,
        length=indent + found.end(),
        content=indent + marker + min(len(spaces), 4),
        number=number,
        task="" if task is None else "x" if task in "xX" else " ",
    )
