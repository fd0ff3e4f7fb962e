"""How an agent comes by its memory, and how its session is remembered when it ends."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import trio

from odek.background import Background
from odek.config.embedding_settings import EmbeddingSettings
from odek.config.memory_settings import MemorySettings
from odek.config.settings import Config
from odek.embedding.choice import check_embedder, choose_embedder
from odek.embedding.embedder import Embedder
from odek.events import Notice
from odek.guard import guard_of
from odek.llm.choice import choose
from odek.llm.model import Model
from odek.memory.ask import ANSWER_SECONDS, ask_with
from odek.memory.buffer import TurnNote, turn_lines
from odek.memory.drain import Drain, open_drained_jobs
from odek.memory.facts import FactLimits
from odek.memory.service import Memory, MemoryParts, open_memory
from odek.sessions.session import Session
from odek.setup import Setup

if TYPE_CHECKING:
    from odek.memory.extended.session_atoms import SessionAtoms
    from odek.memory.session_end import SessionEnd
    from odek.sessions.search import IndexedSearch, PlainSearch
    from odek.sessions.texts import SessionTexts

__all__ = [
    "Ending",
    "close_session",
    "embedder_of",
    "note_turn",
    "open_memory_of",
    "open_session_end_of",
    "session_search_of",
]


Ending: TypeAlias = Callable[[], "SessionEnd"]
"""Returns what keeps and pays the ends of sessions, which is loaded by the first who asks."""


async def open_memory_of(stack: AsyncExitStack, setup: Setup, model: Model) -> Memory | None:
    """Open the memory and tell what was left out of the prompt; None when it is switched off.

    Raises:
        ConfigError: texts are to be compared by what is not installed.
    """
    settings = setup.resolved.config.memory
    if not settings.enabled:
        return None
    check_embedder(*_embedding(setup.resolved.config, settings.embedding))
    limits = FactLimits(user=settings.facts_limit_user, env=settings.facts_limit_env)
    is_offline = choose(setup.resolved.config, "").endpoint is None
    guard = guard_of(setup.resolved.config.guard, setup.emit)
    parts = MemoryParts(
        settings=settings,
        make_embedder=partial(embedder_of, setup),
        ask=None if is_offline else ask_with(model, timeout_seconds=ANSWER_SECONDS),
        emit=setup.emit,
        watched=setup.watch_memory,
        object_to=guard.object_to if guard is not None else None,
        sessions=partial(_sessions, setup.home),
        keeps_up=setup.order is None,  # of many subagents none needs to
    )
    memory = await stack.enter_async_context(open_memory(setup.home / "memory", limits, parts))
    for notice in memory.notices:
        setup.emit(Notice(notice, "warning"))
    return memory


async def open_session_end_of(
    stack: AsyncExitStack,
    setup: Setup,
    memory: Memory | None,
    model: Model,
    mask: Callable[[str], str],
) -> Ending | None:
    """Begin to keep what sessions leave behind; None when nothing is to be remembered."""
    if memory is None or not setup.keep_session or not _wants_session_end(memory.settings):
        return None
    drain = setup.drain or Drain()
    jobs = await stack.enter_async_context(open_drained_jobs(drain))

    def load() -> "SessionEnd":
        from odek.memory.session_end import SessionEnd
        from odek.sessions.ending import session_end_parts

        parts = session_end_parts(
            setup.home,
            memory,
            model,
            emit=setup.emit,
            mask=mask,
            drain=drain,
            make_embedder=partial(embedder_of, setup),
        )
        return SessionEnd(parts, Background(jobs, setup.emit, "the end of the session"))

    return cache(load)


def _wants_session_end(settings: MemorySettings) -> bool:
    """Whether anything is to be remembered of sessions by itself."""
    return settings.llm_extract and (settings.extract_on_end or settings.extract_facts)


def _sessions(home: Path) -> "SessionTexts":
    from odek.sessions.texts import SessionTexts  # with the first episode, or the first search

    return SessionTexts(home / "sessions")


def embedder_of(setup: Setup, *, of_atoms: bool = False) -> Embedder:
    """Return what makes vectors, as the configuration says; ``of_atoms`` in Extended Memory.

    Raises:
        ConfigError: it is not installed.
    """
    memory = setup.resolved.config.memory
    wanted = memory.extended.embedding if of_atoms else memory.embedding
    embedder, notice = choose_embedder(*_embedding(setup.resolved.config, wanted), setup.home)
    if notice:
        setup.emit(Notice(notice, "warning"))
    return embedder


def _embedding(config: Config, wanted: EmbeddingSettings) -> tuple[EmbeddingSettings, str]:
    """Return ``wanted`` with the name of the outermost section that says so: inner ones inherit."""
    sections = {
        "embedding": config.embedding,
        "memory.embedding": config.memory.embedding,
        "memory.extended.embedding": config.memory.extended.embedding,
    }
    return wanted, next(name for name, settings in sections.items() if settings == wanted)


def session_search_of(
    setup: Setup, memory: Memory | None, disk: trio.CapacityLimiter
) -> "IndexedSearch | PlainSearch":
    """Return what finds sessions: the memory's index, or without a memory the files themselves."""
    from odek.sessions.search import IndexedSearch, PlainSearch

    sessions = setup.home / "sessions"
    return PlainSearch(sessions, disk) if memory is None else IndexedSearch(sessions, memory.index(), disk)


async def close_session(session: Session, ending: Ending) -> None:
    """Give the session up, and have it remembered."""
    session.release()
    await ending().finish(session.id)


def note_turn(
    session: Session,
    ending: Ending | None,
    note: TurnNote,
    *,
    buffer: bool,
    atoms: "SessionAtoms | None" = None,
) -> None:
    """Take up what a turn did, before it is saved."""
    for line in turn_lines(note) if buffer else ():
        session.add_buffer_line(line)
    if ending is not None:
        ending().owe_soon(session.id, session.turns)
    if atoms is not None:
        atoms.finished()
