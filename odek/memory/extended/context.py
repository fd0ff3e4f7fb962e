"""The words in which the model is told of atoms and of the person. Pure."""

from collections.abc import Sequence
from datetime import datetime

from odek.memory.extended.atom import Atom
from odek.memory.extended.scoring import Scored, age_days
from odek.memory.extended.user_model import UserModel, style_directive

__all__ = ["atoms_text", "return_note", "shown_ids", "user_text"]

AWAY_DAYS = 0.5
"""A session that is resumed after so long has had a break."""

_TITLE = "── What You Know Of This Person ──"
_NOTE = "Said earlier, dated; where two disagree the newer holds. Use what bears on the message."


def atoms_text(atoms: Sequence[Scored]) -> str:
    """Return the atoms of a turn, each with its date and type; "" for none."""
    if not atoms:
        return ""
    by_date = sorted(atoms, key=lambda each: each.atom.created_at)
    return "\n".join([_TITLE, _NOTE, *map(_line, (each.atom for each in by_date))])


def shown_ids(contexts: Sequence[str], atoms: Sequence[Scored]) -> frozenset[str]:
    """Return the ids of the atoms that stand in one of the ``contexts`` as they are."""
    lines = {line for text in contexts for line in text.splitlines()}
    return frozenset(each.atom.id for each in atoms if _line(each.atom) in lines)


def user_text(user: UserModel, *, style: bool) -> str:
    """Return how to answer this person, and what is in focus; "" when nothing is known."""
    parts = [style_directive(user)] if style else []
    focus = user.current_focus
    named = {"project": focus.project, "task": focus.task, "blocked by": focus.blocker}
    said = "; ".join(f"{name}: {value}" for name, value in named.items() if value)
    if said:
        parts.append(f"In focus lately: {said}.")
    return "\n".join(filter(None, parts))


def return_note(last_seen: str, focus: str, loops: Sequence[Atom], now: datetime) -> str:
    """Return where the person left off, for a session that is resumed after a break; else "".

    Args:
        last_seen: When the session was last saved, RFC 3339.
        focus: What ``user_text`` says, or "".
        loops: Open questions and goals of the session.
        now: The time.
    """
    days = age_days(last_seen, now)
    if days < AWAY_DAYS or not (focus or loops):
        return ""
    away = f"{days:.0f} days" if days >= 1.5 else f"{days * 24:.0f} hours"
    open_loops = [f"- ({atom.type}) {atom.text}" for atom in loops]
    head = f"The person is back after {away}. Where they left off:"
    return "\n".join(filter(None, [head, focus, *open_loops]))


def _line(atom: Atom) -> str:
    text = " ".join(atom.text.split())
    return f"- [{atom.created_at[:10]}] ({atom.type}) {text}"
