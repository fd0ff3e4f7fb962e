"""The bash grammar: text to a tree, loaded with the first command that is judged.

The parser's scanner looks characters up in a table of bytes, and crashes the process on
some beyond ASCII. It is therefore given ASCII alone: other characters are spelled between
two control characters, which no command that is parsed holds itself. ``text_of`` undoes that.
"""

import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node

__all__ = ["DECEIVING", "parse", "plain", "readings", "text_of"]

DECEIVING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
"""Characters that make a command look other than it is: controls, direction changes, tags."""

# A brace list that begins a word in the program's place, which the grammar does not take.
_GLUED_BRACE = re.compile(r"(?<![\w$\"'\\{}])\{(?=[^\s{}]*(?:,|\.\.)[^\s{}]*\})")
# The base of a number in arithmetic, in front of a variable: `10#$n`.
_BASE = re.compile(r"(?<=[-(+*/%,<>=&|^ ])\d{1,2}#(?=\$)")
# The separator spelled out: the grammar does not take `$IFS` in the middle of a word.
_BARE_IFS = re.compile(r"\$IFS(?![A-Za-z0-9_])")


# No text of this length takes long (measured: 20 ms for the worst that a fuzzer found).
_SHORT_BYTES = 2048
_PIECE_BYTES = 64 * 1024
# The parser's last step over a pipeline that does not end well cannot be given up, and takes the
# square of its length (measured: 3,000 stages 0.2 s, 10,000 stages 2.5 s).
_PIPES_LIMIT = 3000

_BEYOND_ASCII = re.compile("[^\x00-\x7f]")
_SPELLED = re.compile(rb"\x02([0-9a-f]{2,6})\x03")


def _spelled(text: str) -> bytes:
    return _BEYOND_ASCII.sub(lambda match: f"\x02{ord(match[0]):x}\x03", text).encode()


def plain(source: bytes) -> str:
    """Return a piece of what was parsed as it was before."""
    if b"\x02" not in source:
        return source.decode()
    written = _SPELLED.sub(lambda match: chr(int(match[1], 16)).encode("utf-8", "surrogatepass"), source)
    return written.decode("utf-8", "surrogatepass")


def text_of(node: "Node") -> str:
    """Return the source of a node."""
    return plain(node.text or b"")


def readings(text: str) -> tuple[str, ...]:
    """Return ``text``, and also as the shell joins its continued lines: the parser splits words there."""
    return (text, text.replace("\\\n", "")) if "\\\n" in text else (text,)


def parse(text: str, limit_seconds: float) -> "tuple[Node | None, bool]":
    """Return the tree of ``text``, and whether all of it was understood.

    Recovering from errors, the parser may take a time that grows with the square of the text.
    The tree is None when it takes more than ``limit_seconds`` of this thread's processor time,
    or is known to beforehand.
    """
    if text.count("|") > _PIPES_LIMIT:
        return None, False
    text = _BARE_IFS.sub("${IFS}", text)
    root = _root(_spelled(text), limit_seconds)
    if root is None or not root.has_error:
        return root, root is not None
    repaired = _BASE.sub("", _GLUED_BRACE.sub("''{", text))
    if repaired != text:
        second = _root(_spelled(repaired), limit_seconds)
        if second is not None and not second.has_error:
            return second, True
    return root, False


def _root(source: bytes, limit_seconds: float) -> "Node | None":
    """Parse ``source``; only a parse in pieces can be given up, and only one at once keeps the source."""
    from tree_sitter import Parser

    parser = Parser(_bash())
    if len(source) > _SHORT_BYTES:
        until = time.thread_time() + limit_seconds
        try:
            parser.parse(
                lambda at, _point: source[at : at + _PIECE_BYTES],
                progress_callback=lambda _at, _has_error: time.thread_time() > until,
            )
        except ValueError:
            return None
        parser.reset()
    return parser.parse(source).root_node


@lru_cache(maxsize=1)
def _bash() -> "Language":
    from tree_sitter import Language
    from tree_sitter_bash import language

    return Language(language())
