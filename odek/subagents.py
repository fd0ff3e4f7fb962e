"""Puts delegation together: what runs as a subagent, when that is made ready, and what it is given."""

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import trio

from odek.budget import Budget
from odek.config.layers import Resolved
from odek.delegation import Credentials, WorkOrder
from odek.events import Event, Notice
from odek.sessions.child_usage import ChildUsage
from odek.sessions.session import Session
from odek.tools.delegate import DelegateTool
from odek.tools.fan_out import Delegator, Standing
from odek.tools.worktree import sweep_worktrees
from odek.trust.risk import Risk
from subagent.spawner import FreshSpawner
from subagent.supervisor import Supervisor

__all__ = ["DELEGATE_TASKS", "DelegationParts", "credentials_of", "open_delegation"]

DELEGATE_TASKS = DelegateTool.name

SUBAGENT_COMMAND = (sys.executable, "-P", "-m", "odek", "subagent", "--supervised")
"""``-P``: the workspace, in which it starts, is no place to import from."""

SUBAGENT_MODULES = ("odek.cli.error_groups", "odek.processes", "odek.worker", "subagent.child")
"""What the entry of a subagent imports; the rehearsal brings the rest."""

DELEGATION_WORDS = ("delegat", "subagent", "sub-agent", "parallel", "side by side")
"""A task with one of them will likely delegate; getting ready meanwhile costs a second of one core."""


class DelegationParts(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's delegation works with.

    ``order`` is that of the agent itself, if it is a subagent. ``trusted`` returns the classes
    that the session trusts now, ``budget`` that of the turn under way.
    """

    resolved: Resolved
    home: Path
    workspace: Path
    order: WorkOrder | None
    task: str
    session: Session
    trusted: Callable[[], frozenset[Risk]]
    asks_nobody: bool
    budget: Callable[[], Budget]
    emit: Callable[[Event], None]


def credentials_of(resolved: Resolved) -> Credentials:
    """Return what a subagent needs to know that may stand in no file, argument or environment."""
    origin = resolved.origins.get("api_key")
    config = resolved.config
    return Credentials(
        config.api_key, config.embedding.api_key, origin.name if origin else "", resolved.secrets
    )


@asynccontextmanager
async def open_delegation(parts: DelegationParts) -> AsyncGenerator[DelegateTool]:
    """Yield the tool for subagents; none is started, nor made ready, before it is likely."""
    from subagent.warm import open_warm_spawner

    config, session = parts.resolved.config, parts.session
    order = parts.order
    below = Path(order.usage_file).with_suffix("") if order and order.usage_file else None
    usage = ChildUsage(parts.home, session, below=below)
    await usage.count_left()

    def notice(text: str) -> None:
        if config.interaction_mode == "verbose":
            parts.emit(Notice(text))

    async with (
        open_warm_spawner(
            preload=SUBAGENT_MODULES,
            rehearsal="odek.rehearsal:rehearse",
            entry="odek.cli.subagent:serve_parent",
            fallback=FreshSpawner(SUBAGENT_COMMAND),
            on_notice=notice,
            title="odek subagent template",
        ) as spawner,
        trio.open_nursery() as nursery,
    ):

        async def get_ready() -> None:
            await spawner.prepare()
            if spawner.template_pid is not None:
                notice(f"subagents are forked from process {spawner.template_pid}")

        def prepare() -> None:
            if spawner.template_pid is None:
                nursery.start_soon(get_ready)

        nursery.start_soon(trio.to_thread.run_sync, sweep_worktrees, parts.home)
        if any(word in parts.task.lower() for word in DELEGATION_WORDS):
            prepare()
        yield DelegateTool(
            Delegator(
                supervisor=Supervisor(spawner, max_concurrency=config.subagent.max_concurrency),
                config=config,
                credentials=credentials_of(parts.resolved),
                environment=parts.resolved.environment,
                home=parts.home,
                workspace=parts.workspace,
                depth=order.depth + 1 if order else 1,
                trust_level=order.task.trust_level if order else "trusted",
                usage=usage,
                standing=lambda: Standing(
                    order.parent_session if order else session.id,
                    parts.trusted(),
                    parts.asks_nobody,
                    session.taint_sources,
                    session.untrusted_ingested,
                ),
                budget=parts.budget,
                taint=session.add_taint,
                emit=parts.emit,
                prepare=prepare,
            )
        )
        nursery.cancel_scope.cancel()
