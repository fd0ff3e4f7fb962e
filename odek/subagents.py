"""Offers delegation to an agent: little of it is loaded, and nothing started, before it is likely."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio

from odek.background import Background
from odek.budget import Budget
from odek.config.keys import credentials_in
from odek.config.layers import Resolved
from odek.delegation import Credentials, WorkOrder
from odek.events import Event
from odek.sessions.session import Session
from odek.tools.delegate import DelegateTool
from odek.trust.risk import Risk

if TYPE_CHECKING:
    from odek.sessions.child_usage import ChildUsage
    from odek.tools.fan_out import Delegator

__all__ = ["DELEGATE_TASKS", "DelegationParts", "credentials_of", "open_delegation"]

DELEGATE_TASKS = DelegateTool.name

DELEGATION_WORDS = ("delegat", "subagent", "sub-agent", "parallel", "side by side")
"""A task with one of them will likely delegate; getting ready meanwhile costs half a second of one core."""


class DelegationParts(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's delegation works with.

    ``order`` is that of the agent itself, if it is a subagent. ``trusted`` returns the classes
    that the session trusts now, ``budget`` that of the turn under way. ``later`` is told what
    must not delay the first request.
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
    later: Callable[[Callable[[], None]], None]


def credentials_of(resolved: Resolved) -> Credentials:
    """Return what a subagent needs to know that may stand in no file, argument or environment."""
    origin = resolved.origins.get("api_key")
    return Credentials(credentials_in(resolved.config), origin.name if origin else "", resolved.secrets)


@asynccontextmanager
async def open_delegation(parts: DelegationParts) -> AsyncGenerator[DelegateTool]:
    """Yield the tool for subagents; leaving the block ends all that was made ready for them."""
    if parts.session.turns:  # a new session has left nothing
        await _usage_of(parts).count_left()
    async with trio.open_nursery() as nursery:
        background = Background(nursery, parts.emit, "worktrees of subagents")
        parts.later(lambda: background.start_soon(_sweep, parts.home))
        delegation = _Delegation(parts, nursery)
        if any(word in parts.task.lower() for word in DELEGATION_WORDS):
            delegation.expect()
        yield DelegateTool(delegation)
        nursery.cancel_scope.cancel()


def _usage_of(parts: DelegationParts) -> "ChildUsage":
    from odek.sessions.child_usage import ChildUsage

    order = parts.order
    below = Path(order.usage_file).with_suffix("") if order and order.usage_file else None
    return ChildUsage(parts.home, parts.session, below=below)


async def _sweep(home: Path) -> None:
    """Remove the worktrees of killed processes."""
    from odek.tools.worktree import sweep_worktrees

    await trio.to_thread.run_sync(sweep_worktrees, home)


class _Delegation:
    """Gives the tool its delegator, which the first who expects a call has made."""

    def __init__(self, parts: DelegationParts, nursery: trio.Nursery) -> None:
        self._parts = parts
        self._nursery = nursery
        self._delegator: Delegator | None = None
        self._opened: trio.Event | None = None  # made by the first who expects a call

    def expect(self) -> None:
        """Begin to get ready, or go on with it."""
        if self._delegator is not None:
            self._delegator.prepare()
        elif self._opened is None:
            self._opened = trio.Event()
            self._nursery.start_soon(self._serve, self._opened)

    async def delegator(self) -> "Delegator":
        """Return the delegator once there is one."""
        while self._delegator is None:
            self.expect()
            if self._opened is not None:
                await self._opened.wait()
        return self._delegator

    async def _serve(self, opened: trio.Event) -> None:
        """Have a delegator until cancelled."""
        from odek.delegation_wiring import open_delegator  # a cost of every run otherwise

        async with open_delegator(self._parts, _usage_of(self._parts)) as self._delegator:
            self._delegator.prepare()
            opened.set()
            await trio.sleep_forever()
