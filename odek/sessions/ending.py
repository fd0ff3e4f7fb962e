"""What the memory needs of sessions to remember them when they end."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import trio

from odek.embedding.embedder import Embedder
from odek.events import Event
from odek.llm.model import Model
from odek.memory.ask import ANSWER_SECONDS, ask_with
from odek.memory.drain import Drain
from odek.memory.episodes import EpisodeLimits, EpisodeStore
from odek.memory.service import Memory
from odek.memory.session_end import SessionEndParts, SessionRecord
from odek.sessions.names import lock_path, session_path
from odek.sessions.store import SessionStore
from odek.storage.locks import hold

__all__ = ["read_record", "session_end_parts"]


def read_record(sessions: Path, session: str) -> SessionRecord | None:
    """Return what is on disk of a session, None when it is gone. Blocking.

    Raises:
        StoreBusyError: a process has it open.
        StoreError: it cannot be read.
    """
    if not session_path(sessions, session).exists():
        return None
    if lock_path(sessions, session).exists():
        hold(lock_path(sessions, session), timeout_seconds=0).release()
    reading = SessionStore(sessions).read(session)
    header = reading.header
    return SessionRecord(
        id=session,
        messages=reading.messages,
        turns=header.turns,
        ended_at=header.updated_at or header.created_at,
        episode_untrusted=header.episode_untrusted,
        taint_sources=header.taint_sources,
        is_complete=not reading.damaged,
    )


def session_end_parts(
    home: Path,
    memory: Memory,
    model: Model,
    *,
    emit: Callable[[Event], None],
    mask: Callable[[str], str],
    drain: Drain,
    make_embedder: Callable[[], Embedder],
) -> SessionEndParts:
    """Return what the end of a session works with, below ``home``; ``memory`` takes its facts."""
    directory, settings = home / "memory", memory.settings
    limits = EpisodeLimits(settings.max_episodes, settings.episode_ttl_days)
    return SessionEndParts(
        directory=directory,
        settings=settings,
        episodes=EpisodeStore(directory, limits, poll=trio.from_thread.check_cancelled),
        read=partial(read_record, home / "sessions"),
        ask=ask_with(model, timeout_seconds=ANSWER_SECONDS),
        make_embedder=make_embedder,
        keep_fact=memory.add,
        consolidate=memory.consolidate if settings.llm_consolidate else None,
        take_up=memory.take_up,
        emit=emit,
        mask=mask,
        drain=drain,
    )
