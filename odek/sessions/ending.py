"""What the memory needs of sessions to remember them when they end."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import trio

from odek.config.memory_settings import MemorySettings
from odek.embedding.embedder import Embedder
from odek.events import Event, Notice
from odek.llm.model import Model
from odek.memory.ask import ANSWER_SECONDS, ask_with
from odek.memory.drain import Drain
from odek.memory.episodes import EpisodeLimits, EpisodeStore
from odek.memory.service import Memory
from odek.memory.session_end import SessionEndParts, SessionRecord
from odek.processes import agent_above
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
    directory, settings = home / "memory", _reviewed_by_a_person(memory.settings, home, emit)
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


def _reviewed_by_a_person(
    settings: MemorySettings, home: Path, emit: Callable[[Event], None]
) -> MemorySettings:
    """Return the settings without an approval in advance where an agent may have given it.

    Whoever starts a command also chooses its variables, and an agent must not approve of what
    it remembers.
    """
    if not settings.auto_approve_episodes or agent_above(home) is None:
        return settings
    emit(Notice("memory.auto_approve_episodes does not count in an agent that an agent started", "warning"))
    return msgspec.structs.replace(settings, auto_approve_episodes=False)
