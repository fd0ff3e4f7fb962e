"""The composition root: the only place where an agent is put together.

async with open_agent(setup) as opened:
    result = await run_turn(opened.agent, text)
"""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from odek.audit import AuditedGate
from odek.audit_wiring import open_auditor_of
from odek.budget import Budget, Limits
from odek.config.settings import Config
from odek.errors import ConfigError, StoreBusyError, StoreError
from odek.events import Event, Notice, PlanChanged
from odek.first_answer import FirstAnswer
from odek.gate import PolicyGate
from odek.guard import SecondOpinion, guard_of
from odek.home import access_hint
from odek.llm.choice import choose
from odek.llm.model import Model
from odek.loop import Agent
from odek.masked_events import MaskedEvents
from odek.memory.observers import also_to
from odek.memory.service import Memory
from odek.memory.turn_context import TurnContext, origin_of
from odek.memory_wiring import (
    close_session,
    note_turn,
    open_memory_of,
    open_session_end_of,
    session_search_of,
)
from odek.messages import SystemMessage
from odek.sandbox_wiring import goes_on_in_sandbox, in_sandbox, open_launcher
from odek.session_prompt import session_prompt
from odek.sessions.session import Session
from odek.sessions.store import SessionStore
from odek.sessions.unsaved import unsaved_session
from odek.setup import Setup
from odek.subagents import DelegationParts, open_delegation
from odek.tool_choice import chosen_tools, unavailable_tools
from odek.tools.edit_files import PatchTool, WriteFileTool
from odek.tools.http_get import HttpGetTool
from odek.tools.listing import GlobTool, TreeTool
from odek.tools.memory import MemoryTool
from odek.tools.plan import Plan, PlanTool
from odek.tools.read_file import ReadFileTool
from odek.tools.search_files import SearchFilesTool
from odek.tools.session_search import SessionSearchTool
from odek.tools.shell import Shell
from odek.tools.tool import Tool
from odek.trust.fence import fence
from odek.trust.paths import Where, judge_read, literal, reads_outside
from odek.trust.risk import Risk
from odek.trust.secrets import Masker
from subagent.background import open_background

if TYPE_CHECKING:
    from odek.attachments import Attached
    from odek.extended_wiring import ExtendedLayer
    from odek.memory.extended.session_atoms import SessionAtoms

__all__ = ["OpenAgent", "Setup", "open_agent", "open_extended_alone", "open_memory_alone"]

DISK_THREADS = 4
"""Threads for files at once: disk work must not use up those that name look-ups need."""


class OpenAgent(msgspec.Struct, frozen=True):
    """An agent that is ready, and what a command shows of it."""

    agent: Agent
    session: Session
    plan: Plan
    memory: Memory | None
    where: Where
    atoms: "SessionAtoms | None" = None

    def attach(self, task: str, named: list[str], *, mentions: bool = True) -> "Attached":
        """Return ``task`` with its files behind it; blocking. Files from outside taint the session.

        ``mentions`` False takes ``@path`` in the task for text.
        """
        from odek.attachments import attach  # most tasks have none

        attached = attach(
            task,
            named,
            self.where.workspace,
            lambda content, source: fence(content, source=source),
            lambda path: reads_outside(literal(str(path), str(self.where.cwd)), self.where),
            self._objection,
            mentions=mentions,
        )
        if attached.outside:
            self.session.add_taint(("outside_content",), ingested=True)
        return attached

    def _objection(self, path: Path) -> str:
        """Say why a file must not be attached: what a tool may not read unasked, a task does not either."""
        risk, reason = judge_read(literal(str(path), str(self.where.cwd)), self.where)
        return "" if risk is Risk.SAFE else reason


@asynccontextmanager
async def open_agent(setup: Setup) -> AsyncGenerator[OpenAgent]:
    """Yield an agent; leaving the block ends everything that it started.

    Raises:
        ConfigError: the configuration asks for something that is not there.
        StoreBusyError: another process has the session.
    """
    config = setup.resolved.config
    if setup.memory_event_handler is not None:
        setup = msgspec.structs.replace(setup, emit=also_to(setup.emit, setup.memory_event_handler))
    masker = Masker(setup.resolved.secrets)
    first = FirstAnswer(setup.emit)
    setup = msgspec.structs.replace(setup, emit=MaskedEvents(first.emit, masker).emit)
    where = Where(setup.workspace, setup.workspace, Path.home(), setup.home)
    for notice in setup.resolved.notices:
        setup.emit(Notice(notice, "warning"))
    async with AsyncExitStack() as stack:
        launcher = await open_launcher(stack, setup)
        model = await _open_model(stack, setup)
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
            layer = await _open_extended(stack, setup, model, masker.mask, memory.object_to)
        auditor = await open_auditor_of(stack, setup, session, where, masker.mask)
        background = await stack.enter_async_context(open_background())
        plan = Plan(lambda steps: setup.emit(PlanChanged(steps)))
        plan.restore(session.messages)
        disk = trio.CapacityLimiter(DISK_THREADS)
        shell = Shell(
            setup.workspace,
            config.shell,
            dict(setup.resolved.environment),
            background,
            masker,
            launcher,
        )
        offered = _tools(setup, memory, plan, disk, shell, session, layer)
        budgets: list[Budget] = []
        if setup.depth < config.subagent.max_depth:
            parts = DelegationParts(
                resolved=setup.resolved,
                home=setup.home,
                workspace=setup.workspace,
                order=setup.order,
                task=setup.task,
                session=session,
                trusted=lambda: setup.approval.trusted,
                asks_nobody=setup.approver is None,
                budget=lambda: budgets[-1],
                emit=setup.emit,
                later=first.then,
            )
            offered.append(await stack.enter_async_context(open_delegation(parts)))
        gate = PolicyGate(
            where=where,
            settings=config.dangerous,
            state=setup.approval,
            approver=setup.approver,
            emit=auditor.hear,
            taint=session.add_taint,
            is_untrusted=lambda: session.episode_untrusted,
        )
        turns, atoms = None, None
        if memory is not None:
            if layer is not None:
                from odek.extended_wiring import session_atoms

                atoms = session_atoms(setup, layer, session)
            turns = TurnContext(
                memory,
                session,
                plan.open_titles,
                keep_record=setup.keep_session,
                mask=masker.mask,
                atoms=atoms,
            )
        agent = Agent(
            model=model,
            tools=chosen_tools(offered, config),
            gate=AuditedGate(gate, auditor, masker.mask),
            transcript=session,
            emit=auditor.hear,
            mask=masker.mask,
            limits=_limits(config),
            max_parallel=config.max_tool_parallel,
            max_tokens=config.llm.max_tokens,
            temperature=config.llm.temperature,
            thinking=config.thinking,
            memory=turns,
            on_budget=lambda budget: budgets.__setitem__(slice(None), [budget]),
            unavailable=unavailable_tools(offered, config, setup.depth),
            note_turn=auditor.after(
                partial(note_turn, session, ending, buffer=config.memory.buffer_enabled, atoms=atoms)
            ),
        )
        yield OpenAgent(agent, session, plan, memory, where, atoms)


@asynccontextmanager
async def open_memory_alone(setup: Setup) -> AsyncGenerator[Memory]:
    """Yield the memory with its model, for a command that needs no agent.

    Raises:
        ConfigError: the memory is switched off.
    """
    async with AsyncExitStack() as stack:
        memory = await open_memory_of(stack, setup, await _open_model(stack, setup))
        if memory is None:
            raise ConfigError("memory.enabled is false; nothing is remembered")
        yield memory


@asynccontextmanager
async def open_extended_alone(setup: Setup, *, needs_model: bool) -> AsyncGenerator["ExtendedLayer"]:
    """Yield Extended Memory, for a command that needs no agent.

    Raises:
        ConfigError: the memory is switched off.
    """
    if not setup.resolved.config.memory.enabled:
        raise ConfigError("memory.enabled is false; nothing is remembered")
    async with AsyncExitStack() as stack:
        model = await _open_model(stack, setup) if needs_model else None
        guard = guard_of(setup.resolved.config.guard, setup.emit)
        object_to = guard.object_to if guard is not None else None
        layer = await _open_extended(stack, setup, model, Masker(setup.resolved.secrets).mask, object_to)
        if layer is None:
            raise ConfigError("memory.extended.enabled is false")
        yield layer


async def _open_extended(
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


async def _open_model(stack: AsyncExitStack, setup: Setup) -> Model:
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
    return session


def _tools(
    setup: Setup,
    memory: Memory | None,
    plan: Plan,
    disk: trio.CapacityLimiter,
    shell: Shell,
    session: Session,
    layer: "ExtendedLayer | None",
) -> list[Tool[Any]]:
    """Return every tool there is; a new one is a line here."""
    workspace = setup.workspace
    return [
        shell,
        ReadFileTool(workspace, disk),
        WriteFileTool(workspace, disk),
        PatchTool(workspace, disk),
        SearchFilesTool(workspace, disk),
        GlobTool(workspace, disk),
        TreeTool(workspace, disk),
        HttpGetTool(),
        PlanTool(plan),
        SessionSearchTool(partial(session_search_of, setup, memory, disk), session=session.id),
        *([_memory_tool(memory, session, layer)] if memory is not None else []),
    ]


def _memory_tool(memory: Memory, session: Session, layer: "ExtendedLayer | None") -> Tool[Any]:
    if layer is None:
        return MemoryTool(memory, partial(origin_of, session))
    from odek.tools.memory_atoms import ExtendedMemoryTool

    return ExtendedMemoryTool(memory, partial(origin_of, session), layer.memory, layer.user)


def _limits(config: Config) -> Limits:
    return Limits(
        iterations=config.max_iterations,
        tokens=config.budget.tokens,
        cost_usd=config.budget.cost_usd,
        seconds=config.budget.seconds,
    )
