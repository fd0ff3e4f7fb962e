"""What a pronoun in a short message may stand for. Pure."""

import re
from collections.abc import Iterable
from datetime import datetime

from odek.memory.extended.atom import Atom
from odek.memory.extended.scoring import Scored, age_days

__all__ = ["antecedent", "resolved"]

RECENT_DAYS = 1.0
"""What a pronoun means was said lately."""

# A noun behind "this" or "that" says itself what is meant.
_PRONOUN = re.compile(
    r"\b(it|its|they|them|their|he|him|his|she|her|(?:this|that|these|those)(?!\s+\w)|"
    r"sie|ihn|ihm|ihr|er|es|elle|lui|eux|cela|ella|ello|eso|lo)\b",
    re.IGNORECASE,
)
# A longer message says itself what it is about. No measurement behind it.
_MAX_WORDS = 12


def antecedent(message: str, found: Iterable[Scored], now: datetime) -> Atom | None:
    """Return the recent atom that the message's first pronoun may stand for, None if there is no such.

    ``found`` are the atoms that the message itself finds: all are trusted, and like enough.
    """
    pronoun = _PRONOUN.search(message)
    if pronoun is None or len(message.split()) > _MAX_WORDS or _names(message[: pronoun.start()]):
        return None
    recent = [each for each in found if age_days(each.atom.created_at, now) <= RECENT_DAYS]
    return max(recent, key=lambda each: each.likeness).atom if recent else None


def _names(before: str) -> bool:
    """Tell whether what stands before a pronoun names something that it may stand for."""
    # The first word is written large anyhow, and "I" is not what is asked about.
    return any(word[0].isupper() and word.split("'")[0] != "I" for word in before.split()[1:])


def resolved(message: str, meant: Atom) -> str:
    """Return the message with what its pronoun stands for behind it, for looking things up."""
    return f"{message}\n{meant.text}"
