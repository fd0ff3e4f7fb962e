"""What an agent is made from."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from odek.config.layers import Resolved
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
    ``depth`` counts the delegations above this agent; it offers none when that is the most allowed.
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
    depth: int = 0
    memory_event_handler: Callable[[MemoryEvent], None] | None = None
    watch_memory: bool = False
