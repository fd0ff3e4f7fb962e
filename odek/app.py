"""The composition root: the only place where an agent is put together.

async with open_agent(setup) as opened:
    result = await run_turn(opened.agent, text)
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from odek.agent import Agent
from odek.audit import AuditedGate
from odek.budget import Budget, Limits
from odek.config.settings import Config
from odek.errors import ConfigError
from odek.events import PlanChanged
from odek.gate import PolicyGate
from odek.ground import Ground, open_extended_of, open_ground, open_model
from odek.guard import guard_of
from odek.memory.service import Memory
from odek.memory.turn_context import TurnContext, origin_of
from odek.memory_wiring import (
    note_turn,
    open_memory_of,
    session_search_of,
)
from odek.sessions.session import Session
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
from odek.tools.seen_files import seen_before
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

__all__ = ["OpenAgent", "Setup", "TurnBudget", "open_agent", "open_extended_alone", "open_memory_alone"]

DISK_THREADS = 4
"""Threads for files at once: disk work must not use up those that name look-ups need."""


class TurnBudget:
    """The budget of the turn under way, or of the last one; there is one before the first tool is called."""

    _budget: Budget

    def begin(self, budget: Budget) -> None:
        """A turn begins, with this one."""
        self._budget = budget

    def now(self) -> Budget:
        """Return it."""
        return self._budget


class OpenAgent(msgspec.Struct, frozen=True):
    """An agent that is ready, and what a command shows of it."""

    agent: Agent
    budget: TurnBudget
    session: Session
    plan: Plan
    memory: Memory | None
    where: Where
    atoms: "SessionAtoms | None" = None

    def attach(self, task: str, named: list[str], *, mentions: bool = True, piped: str = "") -> "Attached":
        """Return ``task`` with its files and what was ``piped`` in behind it; blocking.

        Files from outside taint the session, and so does what was piped in. ``mentions`` False takes
        ``@path`` in the task for text.
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
            piped=piped,
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
    async with AsyncExitStack() as stack:
        ground = await open_ground(stack, setup)
        setup, session, memory, mask = ground.setup, ground.session, ground.memory, ground.masker.mask
        config, auditor = setup.resolved.config, ground.auditor
        plan = Plan(lambda steps: setup.emit(PlanChanged(steps)))
        plan.restore(session.messages)
        atoms = _session_atoms(ground)
        budget = TurnBudget()
        offered = await _open_tools(stack, ground, plan, budget)
        agent = Agent(
            model=ground.model,
            tools=chosen_tools(offered, config),
            gate=AuditedGate(_gate(ground), auditor, mask),
            transcript=session,
            emit=auditor.hear,
            mask=mask,
            limits=_limits(config),
            max_parallel=config.max_tool_parallel,
            max_tokens=config.llm.max_tokens,
            temperature=config.llm.temperature,
            thinking=config.thinking,
            memory=_turn_context(ground, plan, atoms),
            on_budget=budget.begin,
            unavailable=unavailable_tools(offered, config, setup.depth),
            note_turn=auditor.after(
                partial(note_turn, session, ground.ending, buffer=config.memory.buffer_enabled, atoms=atoms)
            ),
        )
        yield OpenAgent(agent, budget, session, plan, memory, ground.where, atoms)


async def _open_tools(
    stack: AsyncExitStack, ground: Ground, plan: Plan, budget: TurnBudget
) -> list[Tool[Any]]:
    """Return every tool there is for this agent, switched off or not; a new one is a line here."""
    setup, memory, session = ground.setup, ground.memory, ground.session
    workspace = setup.workspace
    disk = trio.CapacityLimiter(DISK_THREADS)
    shown = {ReadFileTool.name, WriteFileTool.name}
    seen = await trio.to_thread.run_sync(
        seen_before, session.messages, shown, workspace, session.updated_at, limiter=disk
    )
    background = await stack.enter_async_context(open_background())
    environment = dict(setup.resolved.environment)
    offered: list[Tool[Any]] = [
        Shell(
            workspace, setup.resolved.config.shell, environment, background, ground.masker, ground.launcher
        ),
        ReadFileTool(workspace, disk, seen),
        WriteFileTool(workspace, disk, seen),
        PatchTool(workspace, disk, seen),
        SearchFilesTool(workspace, disk),
        GlobTool(workspace, disk),
        TreeTool(workspace, disk),
        HttpGetTool(),
        PlanTool(plan),
        SessionSearchTool(partial(session_search_of, setup, memory, disk), session=session.id),
    ]
    if memory is not None:
        offered.append(_memory_tool(memory, session, ground.layer))
    if setup.depth < setup.resolved.config.subagent.max_depth:
        parts = DelegationParts(
            resolved=setup.resolved,
            home=setup.home,
            workspace=workspace,
            order=setup.order,
            task=setup.task,
            session=session,
            trusted=lambda: setup.approval.trusted,
            asks_nobody=setup.approver is None,
            budget=budget.now,
            emit=setup.emit,
            later=ground.later,
        )
        offered.append(await stack.enter_async_context(open_delegation(parts)))
    return offered


def _gate(ground: Ground) -> PolicyGate:
    setup, session = ground.setup, ground.session
    return PolicyGate(
        where=ground.where,
        settings=setup.resolved.config.dangerous,
        state=setup.approval,
        approver=setup.approver,
        emit=ground.auditor.hear,
        taint=session.add_taint,
        is_untrusted=lambda: session.episode_untrusted,
    )


def _session_atoms(ground: Ground) -> "SessionAtoms | None":
    """Return what Extended Memory does for the session; None, and nothing loaded, when it is switched off."""
    if ground.layer is None:
        return None
    from odek.extended_wiring import session_atoms

    return session_atoms(ground.setup, ground.layer, ground.session)


def _turn_context(ground: Ground, plan: Plan, atoms: "SessionAtoms | None") -> TurnContext | None:
    """Return what a turn is given from the memory; None when that is switched off."""
    if ground.memory is None:
        return None
    return TurnContext(
        ground.memory,
        ground.session,
        plan.open_titles,
        keep_record=ground.setup.keep_session,
        mask=ground.masker.mask,
        atoms=atoms,
    )


@asynccontextmanager
async def open_memory_alone(setup: Setup) -> AsyncGenerator[Memory]:
    """Yield the memory with its model, for a command that needs no agent.

    Raises:
        ConfigError: the memory is switched off.
    """
    async with AsyncExitStack() as stack:
        memory = await open_memory_of(stack, setup, await open_model(stack, setup))
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
        model = await open_model(stack, setup) if needs_model else None
        guard = guard_of(setup.resolved.config.guard, setup.emit)
        object_to = guard.object_to if guard is not None else None
        layer = await open_extended_of(stack, setup, model, Masker(setup.resolved.secrets).mask, object_to)
        if layer is None:
            raise ConfigError("memory.extended.enabled is false")
        yield layer


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
