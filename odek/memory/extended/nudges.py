"""Short reminders made from atoms: open questions, stale goals, blockers, drift. Sparing by design."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from odek.config.extended_settings import ExtendedSettings
from odek.errors import StoreError
from odek.memory.extended.atom import Atom
from odek.memory.extended.scoring import age_days
from odek.memory.extended.user_model import Focus
from odek.storage.files import ensure_directory, read_file, replace_file
from odek.storage.locks import exclusive
from odek.text import clip_line
from odek.timestamps import timestamp

__all__ = ["PREVIEWED", "Nudge", "NudgeKind", "NudgeLog", "nudges_for"]

NudgeKind: TypeAlias = Literal["open_question", "stale_goal", "blocker", "drift"]

PREVIEWED = 2
"""Shown by a preview at most."""

DRIFT_WORDS = 4
"""A task with fewer words says too little to tell whether the last message is about it."""

_FILE = "nudges.json"
_FILE_LIMIT_BYTES = 1024 * 1024
_LOCK_TIMEOUT_SECONDS = 2.0
_HOURS_PER_DAY = 24
_TEXT_CHARACTERS = 160


class Nudge(msgspec.Struct, frozen=True):
    """A reminder. ``atom_id`` names what it is made of, "" for the user model."""

    kind: NudgeKind
    text: str
    atom_id: str = ""


class _Delivered(msgspec.Struct, frozen=True):
    kind: str
    atom_id: str
    time: str


class NudgeLog:
    """What was delivered, in a file that all processes share. Blocking.

    Args:
        directory: The atoms'.
        settings: Budget a day and cool-down.
        now: Tells the time.
    """

    def __init__(self, directory: Path, settings: ExtendedSettings, now: Callable[[], datetime]) -> None:
        self._directory = directory
        self._settings = settings
        self._now = now

    def deliver(self, candidates: Sequence[Nudge]) -> Nudge | None:
        """Return the first candidate that may be shown now, and record that it was; None if none may.

        Raises:
            StoreError: it cannot be recorded; then it must not be shown.
        """
        with self._locked():
            delivered = self._read()
            chosen = next((nudge for nudge in candidates if self._may_show(nudge, delivered)), None)
            if chosen is not None:
                time = timestamp(self._now())
                entry = _Delivered(chosen.kind, chosen.atom_id, time)
                kept = [each for each in delivered if age_days(each.time, self._now()) <= self._kept_days]
                replace_file(self._directory / _FILE, msgspec.json.encode([*kept, entry]))
        return chosen

    def forget(self, atom_id: str) -> None:
        """Take an atom out of the record; that something was shown stays in it.

        Raises:
            StoreError: it cannot be read or written.
        """
        with self._locked():
            delivered = self._read()
            if any(each.atom_id == atom_id for each in delivered):
                kept = [
                    _Delivered(e.kind, e.atom_id if e.atom_id != atom_id else "", e.time) for e in delivered
                ]
                replace_file(self._directory / _FILE, msgspec.json.encode(kept))

    @property
    def _kept_days(self) -> float:
        return max(1.0, self._settings.nudge_cooldown_hours / _HOURS_PER_DAY)

    def _may_show(self, nudge: Nudge, delivered: Sequence[_Delivered]) -> bool:
        now, today = self._now(), self._now().astimezone(UTC).date().isoformat()
        spent = sum(each.time[:10] == today for each in delivered)
        cooled_days = self._settings.nudge_cooldown_hours / _HOURS_PER_DAY
        is_cool = all(
            age_days(each.time, now) >= cooled_days for each in delivered if each.kind == nudge.kind
        )
        return spent < self._settings.nudge_max_per_day and is_cool

    def _read(self) -> list[_Delivered]:
        try:
            data = read_file(self._directory / _FILE, limit_bytes=_FILE_LIMIT_BYTES)
            return msgspec.json.decode(data, type=list[_Delivered])
        except FileNotFoundError:
            return []
        except msgspec.MsgspecError as error:
            raise StoreError(f"{self._directory / _FILE} cannot be read: {error}; remove it") from error

    def _locked(self) -> AbstractContextManager[None]:
        ensure_directory(self._directory)
        return exclusive(self._directory / ".nudges.lock", timeout_seconds=_LOCK_TIMEOUT_SECONDS)


def nudges_for(
    atoms: Sequence[Atom], focus: Focus, settings: ExtendedSettings, now: datetime, *, message: str = ""
) -> list[Nudge]:
    """Return what may be worth a reminder, the most pressing first. Pure.

    Args:
        atoms: The live, trusted ones.
        focus: What the person is at.
        settings: From when on a question is open and a goal stale.
        now: For their age.
        message: The person's last one, which tells whether the work has drifted.
    """
    found: list[Nudge] = []
    if focus.blocker:
        found.append(Nudge("blocker", f"You were blocked by: {_short(focus.blocker)}. Is that solved?"))
    questions = [
        atom
        for atom in atoms
        if atom.type == "question"
        and age_days(atom.created_at, now) * _HOURS_PER_DAY >= settings.nudge_open_question_min_age_hours
    ]
    goals = [
        atom
        for atom in atoms
        if atom.type in {"goal", "intent"}
        and age_days(atom.created_at, now) >= settings.nudge_stale_goal_days
    ]
    found += [
        Nudge("open_question", f"Still open: {_short(atom.text)}", atom.id)
        for atom in _oldest_first(questions)
    ]
    found += [
        Nudge(
            "stale_goal",
            f"Not touched for {age_days(atom.created_at, now):.0f} days: {_short(atom.text)}",
            atom.id,
        )
        for atom in _oldest_first(goals)
    ]
    if _has_drifted(focus.task, message):
        found.append(Nudge("drift", f"You set out to: {_short(focus.task)}. Shall it wait?"))
    return found


def _oldest_first(atoms: Sequence[Atom]) -> list[Atom]:
    return sorted(atoms, key=lambda atom: (atom.created_at, atom.id))


def _has_drifted(task: str, message: str) -> bool:
    """Tell whether a message shares no telling word with the task."""
    from odek.memory.substance import claims

    aim, said = set(claims(task).content), set(claims(message).content)
    return len(aim) >= DRIFT_WORDS and len(said) >= DRIFT_WORDS and not aim & said


def _short(text: str) -> str:
    return clip_line(text.rstrip("."), _TEXT_CHARACTERS)
