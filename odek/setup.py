"""What an agent is made from."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from odek.config.layers import Resolved
from odek.delegation import WorkOrder
from odek.events import Event, MemoryEvent
from odek.memory.drain import Drain
from odek.trust.approval import ApprovalState, Approver

__all__ = ["Setup"]


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is made from.

    ``resume`` names the session to go on with: an id, the start of one, or "" for the
    newest; None begins a new one about ``task``. ``keep_session`` False runs without a
    file. ``approver`` None means that nobody can be asked. ``drain`` bounds the wait for
    what is to be remembered on leaving. ``memory_event_handler`` gets what happens to the
    memory, beside ``emit``; it must not wait. ``watch_memory`` is for an agent that lives long.
    ``order`` is what a subagent was ordered to do; None is an agent that works for a person.
    """

    resolved: Resolved
    home: Path
    workspace: Path
    emit: Callable[[Event], None]
    approval: ApprovalState
    approver: Approver | None = None
    resume: str | None = None
    task: str = ""
    keep_session: bool = True
    drain: Drain | None = None
    order: WorkOrder | None = None
    memory_event_handler: Callable[[MemoryEvent], None] | None = None
    watch_memory: bool = False

    @property
    def depth(self) -> int:
        """How many delegations are above this agent; it offers none when that is the most allowed."""
        return self.order.depth if self.order is not None else 0
