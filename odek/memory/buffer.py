"""The buffer: what was asked and done in each of the last turns of a session, a line each. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from odek.text import clip_line, readable

__all__ = ["TurnNote", "turn_lines", "usable_lines"]

TASK_WIDTH = 100
ACTIONS_WIDTH = 160
"""Of the text of a line. The buffer travels with every request; twenty lines are about a thousand tokens."""

_VERBS = {
    "read_file": "read",
    "write_file": "wrote",
    "patch": "changed",
    "shell": "ran",
    "search_files": "searched",
    "glob": "looked for",
    "tree": "listed",
    "http_get": "fetched",
    "memory": "memory:",
    "session_search": "searched sessions for",
}
# How a plan is kept says nothing of what was done.
_SILENT = frozenset({"plan"})


class TurnNote(msgspec.Struct, frozen=True, kw_only=True):
    """What is noted of a turn: the question, when it came, and the calls that succeeded.

    ``actions`` are pairs of a tool's name and what it was called for, on one line.
    """

    task: str
    asked_at: datetime
    ended_at: datetime
    actions: tuple[tuple[str, str], ...] = ()


def turn_lines(note: TurnNote) -> tuple[str, ...]:
    """Return the lines of a turn: the person's, and the agent's if it did something."""
    task = clip_line(readable(note.task), TASK_WIDTH)
    lines = [f'{note.asked_at:%H:%M}  user   "{task}"']
    if done := _done(note.actions):
        lines.append(f"{note.ended_at:%H:%M}  agent  {clip_line(done, ACTIONS_WIDTH)}")
    return tuple(lines)


def usable_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the lines that a model may be shown: those that would be allowed into the memory."""
    from odek.trust.scan import scan

    return tuple(line for line in lines if scan(line) is None)


def _done(actions: Sequence[tuple[str, str]]) -> str:
    """Say what was done, the same once, in order."""
    said = (
        f"{_VERBS.get(tool, tool)} {clip_line(readable(what), 60)}".strip()
        for tool, what in actions
        if tool not in _SILENT
    )
    return ", ".join(dict.fromkeys(said))
