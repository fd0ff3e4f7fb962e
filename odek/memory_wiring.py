"""How an agent comes by its memory, and how its session is remembered when it ends."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from odek.embedding.choice import check_embedder, choose_embedder
from odek.embedding.embedder import Embedder
from odek.events import Notice
from odek.guard import guard_of
from odek.llm.choice import choose
from odek.llm.model import Model
from odek.memory.ask import ask_with
from odek.memory.buffer import TurnNote, turn_lines
from odek.memory.drain import Drain
from odek.memory.facts import FactLimits
from odek.memory.service import Memory, MemoryParts, open_memory
from odek.memory.session_end import SessionEnd, open_session_end
from odek.sessions.ending import ANSWER_SECONDS, session_end_parts, wants_session_end
from odek.sessions.session import Session
from odek.setup import Setup

if TYPE_CHECKING:
    from odek.memory.extended.session_atoms import SessionAtoms
    from odek.sessions.search import IndexedSearch, PlainSearch
    from odek.sessions.texts import SessionTexts

__all__ = [
    "close_session",
    "embedder_of",
    "note_turn",
    "open_memory_of",
    "open_session_end_of",
    "session_search_of",
]


async def open_memory_of(stack: AsyncExitStack, setup: Setup, model: Model) -> Memory | None:
    """Open the memory and tell what was left out of the prompt; None when it is switched off.

    Raises:
        ConfigError: texts are to be compared by what is not installed.
    """
    settings = setup.resolved.config.memory
    if not settings.enabled:
        return None
    check_embedder(setup.resolved.config, setup.resolved.origins)
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
) -> SessionEnd | None:
    """Begin to keep what sessions leave behind; None when nothing is to be remembered."""
    if memory is None or not (setup.keep_session and wants_session_end(memory.settings)):
        return None
    parts = session_end_parts(
        setup.home,
        memory,
        model,
        emit=setup.emit,
        mask=mask,
        drain=setup.drain or Drain(),
        make_embedder=partial(embedder_of, setup),
    )
    return await stack.enter_async_context(open_session_end(parts))


def _sessions(home: Path) -> "SessionTexts":
    from odek.sessions.texts import SessionTexts  # with the first episode, or the first search

    return SessionTexts(home / "sessions")


def embedder_of(setup: Setup) -> Embedder:
    """Return what makes vectors, as the configuration says."""
    embedder, notice = choose_embedder(setup.resolved.config, setup.resolved.origins, setup.home)
    if notice:
        setup.emit(Notice(notice, "warning"))
    return embedder


def session_search_of(
    setup: Setup, memory: Memory | None, disk: trio.CapacityLimiter
) -> "IndexedSearch | PlainSearch":
    """Return what finds sessions: the memory's index, or without a memory the files themselves."""
    from odek.sessions.search import IndexedSearch, PlainSearch

    sessions = setup.home / "sessions"
    return PlainSearch(sessions, disk) if memory is None else IndexedSearch(sessions, memory.index(), disk)


async def close_session(session: Session, ending: SessionEnd) -> None:
    """Give the session up, and have it remembered."""
    session.release()
    await ending.finish(session.id)


def note_turn(
    session: Session,
    ending: SessionEnd | None,
    note: TurnNote,
    *,
    buffer: bool,
    atoms: "SessionAtoms | None" = None,
) -> None:
    """Take up what a turn did, before it is saved."""
    for line in turn_lines(note) if buffer else ():
        session.add_buffer_line(line)
    if ending is not None:
        ending.owe_soon(session.id, session.turns)
    if atoms is not None:
        atoms.finished()
