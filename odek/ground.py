"""What an agent stands on: all that is opened before its tools and lives as long as it."""

import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from odek.audit import Auditor
from odek.audit_wiring import open_auditor_of
from odek.errors import StoreBusyError, StoreError
from odek.events import Event, Notice
from odek.first_answer import FirstAnswer
from odek.guard import SecondOpinion
from odek.home import access_hint, person_home
from odek.llm.choice import choose
from odek.llm.model import Model
from odek.masked_events import MaskedEvents
from odek.memory.observers import also_to
from odek.memory.service import Memory
from odek.memory_wiring import (
    Ending,
    close_session,
    open_memory_of,
    open_session_end_of,
)
from odek.messages import SystemMessage
from odek.prompt import told_workspace, workspace_change
from odek.sandbox.launcher import Launcher
from odek.sandbox_wiring import goes_on_in_sandbox, in_sandbox, open_launcher
from odek.session_prompt import session_prompt
from odek.sessions.session import Session
from odek.sessions.store import SessionStore
from odek.sessions.unsaved import unsaved_session
from odek.setup import Setup
from odek.text import without_surrogates
from odek.trust.paths import Where
from odek.trust.secrets import Masker

if TYPE_CHECKING:
    from odek.extended_wiring import ExtendedLayer

__all__ = ["Ground", "open_extended_of", "open_ground", "open_model"]


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent stands on. ``later`` is told what must not delay the first request."""

    setup: Setup
    masker: Masker
    where: Where
    later: Callable[[Callable[[], None]], None]
    launcher: Launcher
    model: Model
    memory: Memory | None
    ending: Ending | None
    session: Session
    layer: "ExtendedLayer | None"
    auditor: Auditor


async def open_ground(stack: AsyncExitStack, setup: Setup) -> Ground:
    """Open all that lives as long as the agent, in the order in which one needs the other.

    Raises:
        ConfigError: the configuration asks for something that is not there.
        StoreBusyError: another process has the session.
    """
    if setup.memory_event_handler is not None:
        setup = msgspec.structs.replace(setup, emit=also_to(setup.emit, setup.memory_event_handler))
    masker = Masker(setup.resolved.secrets)
    first = FirstAnswer(setup.emit)
    setup = msgspec.structs.replace(setup, emit=MaskedEvents(first.emit, masker).emit)
    where = Where(setup.workspace, setup.workspace, person_home(), setup.home)
    for notice in setup.resolved.notices:
        setup.emit(Notice(notice, "warning"))
    launcher = await open_launcher(stack, setup)
    model = await open_model(stack, setup)
    memory = await open_memory_of(stack, setup, model)
    ending = await open_session_end_of(stack, setup, memory, model, masker.mask)
    session = await _open_session(stack, setup, model.name, memory, masker.mask)
    if goes_on_in_sandbox(setup, session):
        setup = in_sandbox(setup)
        launcher = await open_launcher(stack, setup)
    if ending is not None:
        first.then(lambda: ending().catch_up(current=session.id))
        stack.push_async_callback(close_session, session, ending)
    layer = None
    if memory is not None:
        layer = await open_extended_of(stack, setup, model, masker.mask, memory.object_to)
    return Ground(
        setup=setup,
        masker=masker,
        where=where,
        later=first.then,
        launcher=launcher,
        model=model,
        memory=memory,
        ending=ending,
        session=session,
        layer=layer,
        auditor=await open_auditor_of(stack, setup, session, where, masker.mask),
    )


async def open_extended_of(
    stack: AsyncExitStack,
    setup: Setup,
    model: Model | None,
    mask: Callable[[str], str],
    object_to: SecondOpinion | None,
) -> "ExtendedLayer | None":
    """Open Extended Memory; None, and nothing loaded, when it is switched off."""
    config = setup.resolved.config
    if not config.memory.extended.enabled:
        return None
    from odek.extended_wiring import open_extended

    asked = model if choose(config, "").endpoint is not None else None
    return await stack.enter_async_context(open_extended(setup, asked, mask, object_to))


async def open_model(stack: AsyncExitStack, setup: Setup) -> Model:
    """Return the model that the configuration names, the offline one without any; say which, if that is news.

    Raises:
        ConfigError: its settings do not fit together.
    """
    origin = setup.resolved.origins.get("api_key")
    choice = choose(setup.resolved.config, origin.name if origin else "")
    if choice.endpoint is None:
        from odek.llm.offline import OfflineModel

        if choice.notice:
            setup.emit(Notice(choice.notice))
            await _name_local_servers(setup.emit)
        return OfflineModel()
    if choice.notice:
        setup.emit(Notice(choice.notice, "warning"))
    from odek.llm.client import open_client

    return await stack.enter_async_context(open_client(choice.endpoint))


async def _name_local_servers(emit: Callable[[Event], None]) -> None:
    """Tell a person without a key which servers on this machine would answer, and how to use them."""
    from odek.llm.local_servers import find_local_servers

    for server in await find_local_servers():
        model = server.models[0] if server.models else "NAME"
        emit(Notice(f"{server.name} answers here; to use it: --base-url {server.base_url} --model {model}"))


async def _open_session(
    stack: AsyncExitStack, setup: Setup, model: str, memory: Memory | None, mask: Callable[[str], str]
) -> Session:
    """Open the session to go on with, or begin one with its system prompt."""
    lines = setup.resolved.config.memory.buffer_lines
    store = SessionStore(setup.home / "sessions", mask=mask, buffer_lines=lines)
    if setup.resume is not None:
        session = await trio.to_thread.run_sync(store.open, setup.resume)
        session.model = model
    elif setup.keep_session:
        try:
            sandbox = setup.resolved.config.sandbox
            session = await trio.to_thread.run_sync(partial(store.create, model, setup.task, sandbox=sandbox))
        except StoreBusyError:
            raise
        except StoreError as error:  # as with a full disk: the work goes on, and the person is told
            hint = access_hint(str(error), os.environ)
            setup.emit(Notice(f"this session is not kept: {error}{hint}", "warning"))
            session = unsaved_session(model, setup.task)
    else:
        session = unsaved_session(model, setup.task)
    stack.callback(session.release)
    for notice in session.repairs:
        setup.emit(Notice(notice, "warning"))
    if not session.messages:
        block = memory.prompt_block() if memory is not None else ""
        prompt, notice = await trio.to_thread.run_sync(
            session_prompt, setup.resolved.config, setup.workspace, block
        )
        if notice:
            setup.emit(Notice(notice, "warning"))
        session.append(SystemMessage(prompt))
    else:
        _tell_of_workspace(session, mask(without_surrogates(str(setup.workspace))), setup.emit)
    return session


def _tell_of_workspace(session: Session, workspace: str, emit: Callable[[Event], None]) -> None:
    """Say so, to the person and the model, when a session goes on in another directory than before."""
    before = told_workspace(session.messages)
    if before and before != workspace:
        emit(Notice(f"this session was in {before}; it goes on in {workspace}", "warning"))
        session.append(workspace_change(workspace))
