"""What a variable, or the output of a command in a word, may be."""

from collections.abc import Callable

import msgspec

from odek.trust.paths import UNRESOLVED

__all__ = ["FOREIGN", "UNKNOWN", "Value", "join"]

# Beyond so many a value counts as not known; no measurement behind this.
_TEXTS_LIMIT = 32


class Value(msgspec.Struct, frozen=True):
    """What is known of a value before the command runs.

    Attributes:
        texts: What it may be, as marked text; several where that depends on which branch ran.
            ``UNRESOLVED`` stands for a part that is not known.
        foreign: It comes from data that the command reads, so that whoever wrote the data chose it.
        hidden: A decoder produced it, so that nobody reading the command could tell it.
    """

    texts: tuple[str, ...]
    foreign: bool = False
    hidden: bool = False

    @classmethod
    def of(cls, text: str) -> "Value":
        """Return the value that is exactly ``text``."""
        return cls((text,))

    @property
    def text(self) -> str | None:
        """The one text that it is, None when that is not known."""
        known = len(self.texts) == 1 and UNRESOLVED not in self.texts[0]
        return self.texts[0] if known and not self.foreign else None

    @property
    def size(self) -> int:
        """How many characters all that it may be has together."""
        return sum(map(len, self.texts))

    def map(self, change: Callable[[str], str]) -> "Value":
        """Return the value with each of its texts changed."""
        return Value(tuple(dict.fromkeys(map(change, self.texts))), self.foreign, self.hidden)


UNKNOWN = Value((UNRESOLVED,))
"""A variable of the environment: whoever started this process set it."""

FOREIGN = Value((UNRESOLVED,), foreign=True)
"""Whatever the data says."""


def join(one: Value, other: Value) -> Value:
    """Return what may be either of two values."""
    if one == other:
        return one
    texts = tuple(dict.fromkeys(one.texts + other.texts))
    if len(texts) > _TEXTS_LIMIT:
        return Value((UNRESOLVED,), foreign=True, hidden=one.hidden or other.hidden)
    return Value(texts, one.foreign or other.foreign, one.hidden or other.hidden)
