"""How delegation comes by its subagents: what runs as one, how it is started, and what it is given."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import trio

from odek.events import Notice
from odek.sessions.child_usage import ChildUsage
from odek.subagents import DelegationParts, credentials_of
from odek.tools.fan_out import Delegator, Standing
from subagent.reserve import open_reserve
from subagent.spawner import FreshSpawner, Launch
from subagent.supervisor import Supervisor
from subagent.warm import open_warm_spawner

__all__ = ["SUBAGENT_MODULES", "open_delegator"]

SUBAGENT_COMMAND = (sys.executable, "-P", "-m", "odek", "subagent", "--supervised")
"""``-P``: the workspace, in which it starts, is no place to import from."""

SUBAGENT_MODULES = (
    "odek.cli.error_groups",
    "odek.processes",
    "odek.worker",
    "subagent.child",
    "subagent.title",
)
"""What the entry of a subagent imports; the rehearsal brings the rest."""


@asynccontextmanager
async def open_delegator(parts: DelegationParts, usage: ChildUsage) -> AsyncGenerator[Delegator]:
    """Yield what delegation works with; nothing is started before its ``prepare`` is called."""
    config, session, order = parts.resolved.config, parts.session, parts.order
    launch = Launch(
        cwd=parts.workspace,
        env=parts.resolved.environment,
        title="odek subagent: waiting",  # for its task, which brings a title of its own
        secret=msgspec.json.encode(credentials_of(parts.resolved)),
    )

    def notice(text: str) -> None:
        if config.interaction_mode == "verbose":
            parts.emit(Notice(text))

    async with (
        open_warm_spawner(
            preload=SUBAGENT_MODULES,
            rehearsal="odek.rehearsal:prepare",
            entry="odek.cli.subagent:serve_forked",
            fallback=FreshSpawner(SUBAGENT_COMMAND),
            on_notice=notice,
            title="odek subagent template",
        ) as spawner,
        open_reserve(spawner) as reserve,
        trio.open_nursery() as nursery,
    ):
        announced: set[int] = set()

        async def get_ready() -> None:
            await spawner.prepare()
            template = spawner.template_pid
            if template is None:  # fresh interpreters are too dear to let them wait for what may not come
                return
            if template not in announced:
                announced.add(template)
                notice(f"subagents are forked from process {template}")
            reserve.fill(launch, config.subagent.max_concurrency)

        yield Delegator(
            supervisor=Supervisor(reserve, max_concurrency=config.subagent.max_concurrency),
            config=config,
            launch=launch,
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
            prepare=lambda: nursery.start_soon(get_ready),
        )
        nursery.cancel_scope.cancel()
