"""What is inferred about a person: applied where little can go wrong, and else held for review.

The file may be edited by hand. What it says is scanned whenever it is read: a value that
fails is left out, as one that a stranger planted would be. Blocking.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from odek.config.extended_settings import ExtendedSettings
from odek.errors import StoreError
from odek.memory.extended.atom import as_confidence
from odek.memory.extended.scoring import age_days
from odek.storage.files import ensure_directory, read_file, replace_file
from odek.storage.locks import exclusive
from odek.text import clip_line
from odek.timestamps import timestamp
from odek.trust.scan import scan

__all__ = ["FIELDS", "Focus", "Inference", "Pending", "UserModel", "UserModelFile", "style_directive"]

FILE = "user_model.json"
LOCK_TIMEOUT_SECONDS = 10.0
VALUE_CHARACTERS = 200
"""Of one value; it stands in every prompt."""

MAX_LIST = 12
"""Languages, patterns or tools that are kept."""

_FILE_LIMIT_BYTES = 1024 * 1024

Field: TypeAlias = Literal[
    "style.verbosity",
    "style.humor",
    "style.formality",
    "style.explanation_depth",
    "style.tone",
    "technical.languages",
    "technical.patterns",
    "technical.tools",
    "current_focus.project",
    "current_focus.task",
    "current_focus.blocker",
    "interaction_patterns",
]

FIELDS: dict[Field, bool] = {
    "style.verbosity": True,
    "style.humor": False,
    "style.formality": True,
    "style.explanation_depth": True,
    "style.tone": False,
    "technical.languages": True,
    "technical.patterns": False,
    "technical.tools": True,
    "current_focus.project": True,
    "current_focus.task": True,
    "current_focus.blocker": False,
    "interaction_patterns": False,
}
"""Every field, and whether an inference may be applied unseen: a wrong one costs little, and passes."""

_LISTS = frozenset({"technical.languages", "technical.patterns", "technical.tools", "interaction_patterns"})


class Style(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a person likes to be answered."""

    verbosity: str = ""
    humor: str = ""
    formality: str = ""
    explanation_depth: str = ""
    tone: str = ""


class Technical(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person works with."""

    languages: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class Focus(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person is at."""

    project: str = ""
    task: str = ""
    blocker: str = ""


class Pending(msgspec.Struct, frozen=True, omit_defaults=True):
    """An inference that waits for a person's word."""

    id: str
    field: str
    value: str
    evidence: str = ""
    confidence: float = 0.5
    created_at: str = ""


class UserModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything inferred about a person."""

    style: Style = Style()
    technical: Technical = Technical()
    current_focus: Focus = Focus()
    interaction_patterns: tuple[str, ...] = ()
    pending_review: tuple[Pending, ...] = ()


class Inference(msgspec.Struct, frozen=True):
    """One thing that a model concludes from what a person wrote."""

    field: str
    value: str
    evidence: str = ""
    confidence: float = 0.5


class UserModelFile:
    """The user model below ``directory``, the atoms'. ``now`` tells the time."""

    def __init__(self, directory: Path, settings: ExtendedSettings, now: Callable[[], datetime]) -> None:
        self._path = directory / FILE
        self._settings = settings
        self._now = now

    def read(self) -> UserModel:
        """Return the model as it may be used: without what fails the scan or has expired.

        Raises:
            StoreError: the file cannot be read; the message says what to do.
        """
        try:
            data = read_file(self._path, limit_bytes=_FILE_LIMIT_BYTES)
        except FileNotFoundError:
            return UserModel()
        try:
            found = msgspec.json.decode(data, type=UserModel)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise StoreError(f"{self._path} cannot be read: {error}; move it away to begin anew") from error
        return self._usable(found)

    def apply(self, inferences: Sequence[Inference]) -> tuple[list[Inference], list[Pending]]:
        """Take up what was inferred; return what was applied at once, and what now waits.

        Raises:
            StoreError: nothing was changed.
        """
        applied: list[Inference] = []
        waiting: list[Pending] = []
        with self._locked():
            model = self.read()
            for inference in inferences:
                value = clip_line(" ".join(inference.value.split()), VALUE_CHARACTERS)
                if inference.field not in FIELDS or not value or scan(value) is not None:
                    continue
                if FIELDS[inference.field]:
                    model = _with_value(model, inference.field, value)
                    applied.append(msgspec.structs.replace(inference, value=value))
                elif not _has(model, inference.field, value):
                    model, pending = self._with_pending(model, inference, value)
                    waiting.append(pending)
            self._save(model)
        return applied, waiting

    def confirm(self, pending_id: str) -> Pending:
        """Apply what waits under an id; for a person alone.

        Raises:
            StoreError: nothing waits under it, or it cannot be written.
        """
        with self._locked():
            model, pending = self._take(pending_id)
            self._save(_with_value(model, pending.field, pending.value))
        return pending

    def reject(self, pending_id: str) -> Pending:
        """Drop what waits under an id.

        Raises:
            StoreError: nothing waits under it, or it cannot be written.
        """
        with self._locked():
            model, pending = self._take(pending_id)
            self._save(model)
        return pending

    def _take(self, pending_id: str) -> tuple[UserModel, Pending]:
        model = self.read()
        found = [each for each in model.pending_review if each.id == pending_id]
        if not found:
            raise StoreError(f"nothing waits for review under {pending_id[:40]}")
        rest = tuple(each for each in model.pending_review if each.id != pending_id)
        return msgspec.structs.replace(model, pending_review=rest), found[0]

    def _with_pending(self, model: UserModel, inference: Inference, value: str) -> tuple[UserModel, Pending]:
        """Return the model with an inference waiting; one that waits already is refreshed."""
        same = [each for each in model.pending_review if (each.field, each.value) == (inference.field, value)]
        evidence = clip_line(" ".join(inference.evidence.split()), VALUE_CHARACTERS)
        pending = Pending(
            id=same[0].id if same else os.urandom(4).hex(),
            field=inference.field,
            value=value,
            evidence=evidence if scan(evidence) is None else "",
            confidence=max([as_confidence(inference.confidence, 0.5), *(each.confidence for each in same)]),
            created_at=timestamp(self._now()),
        )
        others = [each for each in model.pending_review if each not in same]
        kept = [*others, pending][-self._settings.user_state_max_pending :]
        if not self._settings.user_state_max_pending:
            kept = []
        return msgspec.structs.replace(model, pending_review=tuple(kept)), pending

    def _usable(self, model: UserModel) -> UserModel:
        """Return ``model`` without what fails the scan, and without what waited too long."""
        plain = msgspec.to_builtins(model)
        patterns = _clean(plain.get("interaction_patterns", ()))
        return UserModel(
            style=Style(**_clean_fields(plain.get("style", {}))),
            technical=Technical(**{key: _clean(value) for key, value in plain.get("technical", {}).items()}),
            current_focus=Focus(**_clean_fields(plain.get("current_focus", {}))),
            interaction_patterns=patterns,
            pending_review=tuple(each for each in model.pending_review if self._is_waiting(each)),
        )

    def _is_waiting(self, pending: Pending) -> bool:
        limit = self._settings.user_state_pending_max_age_days
        if (
            pending.field not in FIELDS
            or scan(pending.value) is not None
            or scan(pending.evidence) is not None
        ):
            return False
        if not limit:
            return True
        return _is_date(pending.created_at) and age_days(pending.created_at, self._now()) <= limit

    def _locked(self) -> AbstractContextManager[None]:
        ensure_directory(self._path.parent)
        return exclusive(self._path.parent / ".user_model.lock", timeout_seconds=LOCK_TIMEOUT_SECONDS)

    def _save(self, model: UserModel) -> None:
        replace_file(self._path, msgspec.json.format(msgspec.json.encode(model), indent=1))


def style_directive(model: UserModel) -> str:
    """Return a sentence for the model on how to answer this person, "" when nothing is known."""
    named = {
        "verbosity": model.style.verbosity,
        "formality": model.style.formality,
        "depth of explanation": model.style.explanation_depth,
        "tone": model.style.tone,
        "humor": model.style.humor,
    }
    said = "; ".join(f"{name}: {value}" for name, value in named.items() if value)
    return f"This person prefers answers like this: {said}." if said else ""


def _with_value(model: UserModel, field: str, value: str) -> UserModel:
    section, _, name = field.partition(".")
    if not name:
        return msgspec.structs.replace(model, **{section: _joined(getattr(model, section), value)})
    old = getattr(model, section)
    new = _joined(getattr(old, name), value) if field in _LISTS else value
    return msgspec.structs.replace(model, **{section: msgspec.structs.replace(old, **{name: new})})


def _has(model: UserModel, field: str, value: str) -> bool:
    section, _, name = field.partition(".")
    held = getattr(getattr(model, section), name) if name else getattr(model, section)
    return value in held if isinstance(held, tuple) else value == held


def _joined(held: tuple[str, ...], value: str) -> tuple[str, ...]:
    """Return a list with ``value`` at its end, once; the oldest of too many go."""
    return (*(each for each in held if each.lower() != value.lower()), value)[-MAX_LIST:]


def _clean(values: Sequence[str]) -> tuple[str, ...]:
    kept = [clip_line(value, VALUE_CHARACTERS) for value in values if scan(value) is None]
    return tuple(kept[-MAX_LIST:])


def _clean_fields(fields: Mapping[str, str]) -> dict[str, str]:
    return {key: clip_line(value, VALUE_CHARACTERS) for key, value in fields.items() if scan(value) is None}


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
