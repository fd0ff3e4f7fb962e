"""How an agent comes by the record of what it takes in and what is decided."""

from collections.abc import Callable
from contextlib import AsyncExitStack

from odek.audit import Auditor, AuditParts, open_auditor
from odek.sessions.names import audit_path, is_id, session_path
from odek.sessions.session import Session
from odek.sessions.unsaved import UNSAVED
from odek.setup import Setup
from odek.trust.audit import AuditTrail
from odek.trust.paths import Where

__all__ = ["open_auditor_of"]


async def open_auditor_of(
    stack: AsyncExitStack, setup: Setup, session: Session, where: Where, mask: Callable[[str], str]
) -> Auditor:
    """Open the record of ``session``; a subagent adds to that of the session it works for.

    A session without a file has no record on disk either.
    """
    parts = AuditParts(
        trail=_trail_of(setup, session),
        where=where,
        messages=lambda: session.messages,
        turn=lambda: session.turns,
        emit=setup.emit,
        mask=mask,
        agent=setup.order.name if setup.order is not None else "",
    )
    return await stack.enter_async_context(open_auditor(parts))


def _trail_of(setup: Setup, session: Session) -> AuditTrail | None:
    directory = setup.home / "sessions"
    if setup.order is None:
        return None if session.id == UNSAVED else AuditTrail(audit_path(directory, session.id))
    parent = setup.order.parent_session
    if not parent or parent == UNSAVED or not is_id(parent) or not session_path(directory, parent).exists():
        return None
    return AuditTrail(audit_path(directory, parent))
