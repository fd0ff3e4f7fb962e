"""The index that episodes and sessions share, for commands that changed one of them. Blocks."""

from collections.abc import Iterable
from pathlib import Path

from odek.memory.index_texts import document_id
from odek.memory.index_upkeep import EPISODES, INDEX_DIRECTORY, upkeep_of
from odek.sessions.texts import SessionTexts

__all__ = ["take_up_episodes", "take_up_sessions"]

LIMIT_SECONDS = 5.0
"""For one change; it takes some 50 ms. What is left then is done before the next search."""


def take_up_sessions(home: Path, session_ids: Iterable[str]) -> None:
    """Let the index say what the files of these sessions say, if there is one: nothing of those deleted.

    Raises:
        StoreError: it cannot be written.
    """
    ids = tuple(session_ids)
    only = {document_id("session", name) for name in ids} | {document_id("episode", name) for name in ids}
    if only and (home / "memory" / INDEX_DIRECTORY).is_dir():
        upkeep = upkeep_of(home / "memory", SessionTexts(home / "sessions"))
        upkeep.catch_up(upkeep.kinds, seconds=LIMIT_SECONDS, only=only)
        upkeep.settle()


def take_up_episodes(home: Path) -> None:
    """Let the index say what the episodes say, if there is one.

    Raises:
        StoreError: it cannot be written.
    """
    if (home / "memory" / INDEX_DIRECTORY).is_dir():
        upkeep = upkeep_of(home / "memory", SessionTexts(home / "sessions"))
        upkeep.catch_up(EPISODES, seconds=LIMIT_SECONDS)
