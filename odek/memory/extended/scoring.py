"""Which atoms a turn is given. Pure."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from odek.memory.extended.atom import PROJECT_BOUND, Atom
from odek.timestamps import moment_of

__all__ = [
    "OTHER_PROJECT_FACTOR",
    "Scored",
    "age_days",
    "composite",
    "contrast",
    "cut",
    "may_be_recalled",
    "retention",
]

LIKENESS_SHARE = 0.6
RETENTION_SHARE = 0.4
"""Of the composite score."""

CONTRAST_POWER = 2
"""How much less than the best one an atom counts that is less relevant. With atoms of a year and of any
confidence, hit@3 is .46 at 0, .65 at 1, .67 at 2 and 4; what the index finds alone is .69. Without it
age outweighs what the question is about. benchmarks/bench_atoms.py measures it (``turn_aged``)."""

OTHER_PROJECT_FACTOR = 0.8
"""The current project is preferred. No measurement behind it: enough to decide between near equals."""

_SECONDS_PER_DAY = 86_400


class Scored(msgspec.Struct, frozen=True):
    """An atom, how like the question it is, 0 to 1, and what it counts in the end."""

    atom: Atom
    likeness: float
    score: float


def age_days(created_at: str, now: datetime) -> float:
    """Return the age of a date in days, 0 when it lies ahead or is none."""
    then = moment_of(created_at)
    return max((now - then).total_seconds() / _SECONDS_PER_DAY, 0.0) if then is not None else 0.0


def retention(atom: Atom, now: datetime, half_life_days: float) -> float:
    """Return how well an atom is kept: its confidence, halved with each half-life; 0 for a tainted one."""
    if not atom.is_trusted:
        return 0.0
    return float(atom.confidence * 0.5 ** (age_days(atom.created_at, now) / half_life_days))


def contrast(relevance: float, best: float) -> float:
    """Return what part of the best one's likeness an atom of this relevance has, 0 to 1."""
    return max(relevance / best, 0.0) ** CONTRAST_POWER if best > 0 else 1.0


def composite(likeness: float, kept: float) -> float:
    """Return what an atom counts for a question."""
    return LIKENESS_SHARE * likeness + RETENTION_SHARE * kept


def may_be_recalled(atom: Atom, project: str) -> bool:
    """Tell whether an atom may be shown in ``project``."""
    return atom.is_trusted and (atom.type not in PROJECT_BOUND or atom.project in {"", project})


def cut(scored: Iterable[Scored], *, count: int, budget_chars: int) -> tuple[list[Scored], list[Scored]]:
    """Return the best atoms, each once, that fit, and those that did not; best first."""
    best: dict[str, Scored] = {}
    for each in sorted(scored, key=lambda each: (-each.score, each.atom.id)):
        best.setdefault(each.atom.id, each)
    taken: list[Scored] = []
    left: list[Scored] = []
    room = budget_chars
    for each in best.values():
        if len(taken) < count and len(each.atom.text) <= room:
            taken.append(each)
            room -= len(each.atom.text)
        else:
            left.append(each)
    return taken, left
