"""Whether a new fact is one that is there already, and what both say together. Pure.

Likeness alone decides nothing: it chooses which entries to compare. What may be folded
together unasked is decided by what the texts claim (``substance``).
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from odek.memory.facts import FIELD_LIMIT_BYTES, Fact
from odek.memory.substance import claims, differs_in_substance, is_part_of

__all__ = ["Bands", "Decision", "Match", "accepts_judged", "decide", "differs_in_substance", "merged_text"]


class Bands(msgspec.Struct, frozen=True):
    """The cosines that part the three bands: below ``add`` a stranger, above ``merge`` the same fact."""

    merge: float = 0.7
    add: float = 0.3


class Match(msgspec.Struct, frozen=True):
    """An entry and how alike a new text is."""

    fact: Fact
    similarity: float


class Decision(msgspec.Struct, frozen=True):
    """What to do with a new text.

    ``merge``: put ``text`` in the place of the entry of ``match``. ``judge``: ask a model
    about that entry, and add if nobody can be asked. ``add``: store it by itself.
    """

    action: Literal["merge", "judge", "add"]
    match: Match | None = None
    text: str = ""


def decide(new: str, matches: Iterable[Match], bands: Bands) -> Decision:
    """Choose the band of ``new`` among the entries it was compared with.

    The most alike entry into which it may be folded wins over one that is more alike
    but says something else.
    """
    ranked = sorted(
        (match for match in matches if match.similarity >= bands.add and not match.fact.rejection),
        key=lambda match: match.similarity,
        reverse=True,
    )
    for match in ranked:
        if match.similarity > bands.merge and (text := merged_text(match.fact.text, new)) is not None:
            return Decision("merge", match, text)
    return Decision("judge", ranked[0]) if ranked else Decision("add")


def merged_text(old: str, new: str) -> str | None:
    """Return the one of two texts that says all that both say, None if neither does or may stand.

    Of two that say the same, the old one stays as it is.
    """
    if differs_in_substance(old, new):
        return None
    text = old if is_part_of(claims(new), claims(old)) else new
    return text if _may_stand(text) else None


def accepts_judged(merged: str, old: str, new: str) -> bool:
    """Tell whether the text that a model made of two facts may replace the old one.

    It may name nothing that neither names, must hold all that the new fact says, and of
    the old one leave out no more than what the new one puts in its place; and that only
    if both are mostly about the same.
    """
    one, other, both = claims(old), claims(new), claims(merged)
    words = (set(one.content), set(other.content), set(both.content))
    if not both.content or not _may_stand(merged):
        return False
    if not (other.exact <= both.exact and words[1] <= words[2] and other.markers <= both.markers):
        return False  # the new fact is not said whole
    if both.exact - one.exact - other.exact or both.markers - one.markers - other.markers:
        return False  # something is invented
    if len(words[2] - words[0] - words[1]) > _JOINING_WORDS:
        return False
    if other.exact - one.exact and both.exact & (one.exact - other.exact):
        return False  # the old number and the new one side by side: two claims about one thing
    if one.markers != other.markers and not (both.markers == other.markers and words[2] == words[1]):
        return False  # what is negated by one and not by the other can only be replaced, not joined
    lost = len(one.exact - both.exact), len(words[0] - words[2])
    if not any(lost) and one.markers <= both.markers:
        return True
    replaced = len(other.exact - one.exact), len(words[1] - words[0])
    return lost[0] <= replaced[0] and lost[1] <= replaced[1] and 2 * len(words[0] & words[1]) >= len(words[0])


# What it takes to make one sentence of two: "in", "for", "while". No measurement behind it.
_JOINING_WORDS = 2


def _may_stand(text: str) -> bool:
    """Tell whether ``text`` is short enough and passes the scan as any new fact does."""
    from odek.trust.scan import scan

    return len(text.encode()) <= FIELD_LIMIT_BYTES and scan(text) is None
