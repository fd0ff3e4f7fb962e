"""How an agent, or a command, comes by Extended Memory. Imported only where it is switched on."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
import trio

from odek.background import Background
from odek.config.extended_settings import ExtendedSettings
from odek.config.settings import Config
from odek.errors import ConfigError, StoreError
from odek.events import Notice
from odek.guard import SecondOpinion
from odek.llm.choice import choose
from odek.llm.model import Model
from odek.memory.ask import ANSWER_SECONDS
from odek.memory.drain import Drain, open_drained_jobs
from odek.memory.extended.atom_index import open_atom_index
from odek.memory.extended.atom_jobs import AtomJobs, AtomJobsParts, Said
from odek.memory.extended.atom_store import EXTENDED
from odek.memory.extended.memory_model import DailyBudget, MemoryModel
from odek.memory.extended.nudges import NudgeLog
from odek.memory.extended.service import ExtendedMemory, ExtendedParts
from odek.memory.extended.session_atoms import SessionAtoms
from odek.memory.extended.tally import Tally
from odek.memory.extended.turns import AtomTurns, AtomTurnsParts
from odek.memory.extended.user_model import UserModelFile
from odek.memory.index_vectors import is_of_words
from odek.memory_wiring import embedder_of
from odek.sessions.ending import read_record
from odek.sessions.session import Session
from odek.setup import Setup

__all__ = ["ExtendedLayer", "memory_model_of", "open_extended", "session_atoms"]


class ExtendedLayer(msgspec.Struct, frozen=True):
    """The layer as it is open; ``model`` is None when there is nobody to ask."""

    settings: ExtendedSettings
    memory: ExtendedMemory
    user: UserModelFile
    nudges: NudgeLog
    tally: Tally
    object_to: SecondOpinion | None
    model: MemoryModel | None
    jobs: Background


@asynccontextmanager
async def open_extended(
    setup: Setup,
    model: Model | None,
    mask: Callable[[str], str],
    object_to: SecondOpinion | None = None,
) -> AsyncGenerator[ExtendedLayer]:
    """Yield the layer; leaving waits for what runs beside the answer within the setup's drain.

    Raises:
        ConfigError: the memory's model is configured so that it cannot be asked.
    """
    config = setup.resolved.config
    settings = config.memory.extended
    memory, now = setup.home / "memory", _now
    async with AsyncExitStack() as stack:
        asked = await memory_model_of(stack, config, model, memory / EXTENDED, mask)
        if asked is not None and not asked.is_dedicated and config.thinking not in {"", "disabled"}:
            setup.emit(
                Notice(
                    "memory.extended.llm is not set, so that the main model, which thinks, also works for "
                    "the memory; a small model there is faster and costs less",
                    "warning",
                )
            )
        counters: Counter[str] = Counter()
        tally = Tally(memory / EXTENDED, counters, now)
        stack.push_async_callback(_save, tally)  # after the jobs, which count too
        nursery = await stack.enter_async_context(open_drained_jobs(setup.drain or Drain()))
        jobs = Background(
            nursery,
            setup.emit,
            "Extended Memory",
            on_fault=lambda: counters.update(["background_failed"]),
        )
        embedder = embedder_of(setup, of_atoms=True)
        open_index = partial(open_atom_index, memory, "" if is_of_words(embedder) else embedder.fingerprint)
        parts = ExtendedParts(
            memory=memory,
            settings=settings,
            index=await trio.to_thread.run_sync(open_index),
            reader=await trio.to_thread.run_sync(open_index),
            embedder=embedder,
            project=str(setup.workspace),
            emit=setup.emit,
            mask=mask,
            now=now,
            object_to=object_to,
            counters=counters,
        )
        yield ExtendedLayer(
            settings,
            ExtendedMemory(parts, jobs),
            UserModelFile(memory / EXTENDED, settings, now),
            NudgeLog(memory / EXTENDED, settings, now),
            tally,
            object_to,
            asked,
            jobs,
        )


def session_atoms(setup: Setup, layer: ExtendedLayer, session: Session) -> SessionAtoms:
    """Return the layer's part in a session; in a subagent nothing is extracted."""

    def said() -> Said:
        return Said(session.messages, session.turns)

    jobs = None
    if layer.model is not None and setup.order is None and setup.keep_session:
        jobs = AtomJobs(
            AtomJobsParts(
                memory=setup.home / "memory",
                own=session.id,
                said=said,
                read=partial(_read, setup.home / "sessions"),
                ask=layer.model.ask,
                keep=layer.memory.add,
                counters=layer.memory.counters,
                emit=setup.emit,
            ),
            layer.jobs,
        )
        jobs.catch_up()
    parts = AtomTurnsParts(
        memory=layer.memory,
        user=layer.user,
        model=layer.model,
        jobs=jobs,
        said=said,
        tally=layer.tally,
        object_to=layer.object_to,
        emit=setup.emit,
    )
    return SessionAtoms(
        layer.memory,
        AtomTurns(parts, layer.jobs),
        layer.nudges,
        emit=setup.emit,
        starter=layer.jobs,
        session=session.id,
        turn=lambda: session.turns,
        last_seen=session.updated_at if setup.resume is not None else "",
    )


async def memory_model_of(
    stack: AsyncExitStack, config: Config, main: Model | None, directory: Path, mask: Callable[[str], str]
) -> MemoryModel | None:
    """Return the model that works for the memory: its own if one is configured, else ``main``.

    Raises:
        ConfigError: its own cannot be asked.
    """
    extended = config.memory.extended
    budget = DailyBudget(
        directory, max_calls=extended.daily_call_budget, max_tokens=extended.daily_token_budget, now=_now
    )
    own = extended.llm
    if not (own.base_url or own.model):
        if main is None:
            return None
        return MemoryModel(main, budget, mask, is_dedicated=False, timeout_seconds=ANSWER_SECONDS)
    from odek.llm.client import open_client

    wanted = msgspec.structs.replace(
        config,
        base_url=own.base_url or config.base_url,
        # A key goes to the endpoint that it is configured for, and nowhere else.
        api_key=own.api_key if own.base_url else own.api_key or config.api_key,
        model=own.model or config.model,
        thinking="",
    )
    endpoint = choose(wanted, "").endpoint
    if endpoint is None:
        raise ConfigError("memory.extended.llm names no endpoint: set memory.extended.llm.base_url")
    model = await stack.enter_async_context(open_client(endpoint))
    return MemoryModel(
        model,
        budget,
        mask,
        is_dedicated=True,
        timeout_seconds=own.timeout_seconds,
        max_tokens=own.max_tokens,
        temperature=own.temperature,
    )


async def _save(tally: Tally) -> None:
    """Add what was counted to what other processes have; a disk that does not take it is no misfortune."""
    if tally.is_behind:
        with suppress(StoreError), trio.CancelScope(shield=True):  # bounded by the wait for the lock
            await trio.to_thread.run_sync(tally.save)


def _read(sessions: Path, session: str) -> Said | None:
    record = read_record(sessions, session)
    return Said(record.messages, record.turns) if record is not None else None


def _now() -> datetime:
    return datetime.now(UTC)
