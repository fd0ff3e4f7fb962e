"""Keeps the record of what a session takes in and what is decided in it, and looks where turns went off.

Nothing here delays an answer: records are written and turns are looked at in the background,
and on leaving both are waited for, not for long.
"""

from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
import trio

from odek.background import Background
from odek.batch import Admission, Gate, GateRequest
from odek.errors import StoreError
from odek.events import ApprovalResolved, Event, Notice, TurnDiverged, TurnDivergence, TurnStarted
from odek.memory.buffer import TurnNote
from odek.memory.drain import Drain, open_drained_jobs
from odek.messages import Message
from odek.text import clip_line
from odek.timestamps import current_timestamp
from odek.trust.audit import AuditRecord, AuditTrail, Decision, Diverged, Ingest, digest_of
from odek.trust.fence import fenced
from odek.trust.paths import Where, literal, reads_outside
from odek.trust.policy import assess

if TYPE_CHECKING:
    from odek.trust.divergence import Action, Divergence

__all__ = ["AuditParts", "AuditedGate", "Auditor", "open_auditor"]

LEAVING_SECONDS = 5.0
"""For the last records and the last look on leaving; both take milliseconds on a disk that works."""

TEXT_CHARACTERS = 300
"""Of one field of a record; no measurement behind this."""


class AuditParts(msgspec.Struct, frozen=True, kw_only=True):
    """What the record of a session is made from.

    ``trail`` None keeps nothing on disk. ``agent`` names the subagent whose record this is.
    ``messages`` is the conversation, ``turn`` its turn under way. ``mask`` hides credentials.
    """

    trail: AuditTrail | None
    where: Where
    messages: Callable[[], Sequence[Message]]
    turn: Callable[[], int]
    emit: Callable[[Event], None]
    mask: Callable[[str], str]
    agent: str = ""


@asynccontextmanager
async def open_auditor(parts: AuditParts) -> AsyncGenerator["Auditor"]:
    """Yield the keeper of a session's record; leaving waits for what is still to be written."""
    async with open_drained_jobs(Drain(LEAVING_SECONDS)) as jobs:
        yield Auditor(parts, Background(jobs, parts.emit, "the record of what happens"))


class Auditor:
    """Takes in what happens; nothing here waits or raises."""

    def __init__(self, parts: AuditParts, jobs: Background) -> None:
        self._parts = parts
        self._jobs = jobs
        self._unwritten: list[AuditRecord] = []
        self._is_writing = False
        self._has_failed = False
        self._heard: dict[str, ApprovalResolved] = {}
        self._running: list[GateRequest] = []

    def took_in(self, source: str, content: str, call_id: str = "", *, turn: int | None = None) -> None:
        """Record outside content that the model is given, as it is given."""
        sha256, size_bytes = digest_of(content)
        self._record(
            Ingest(
                time=current_timestamp(),
                turn=self._parts.turn() if turn is None else turn,
                source=self._short(source),
                sha256=sha256,
                size_bytes=size_bytes,
                call_id=call_id,
                agent=self._parts.agent,
            )
        )

    def hear(self, event: Event) -> None:
        """Take in what a gate and a loop tell, and pass it on."""
        if isinstance(event, ApprovalResolved):
            self._heard[event.call_id] = event
        self._parts.emit(event)
        if isinstance(event, TurnStarted):
            for source, content in fenced(event.task):  # files from outside that the person attached
                self.took_in(source, content, turn=event.turn)

    def decided(self, request: GateRequest, admission: Admission) -> None:
        """Record what became of a call, unless the policy simply allowed it."""
        if admission.allowed:
            self._running.append(request)
        if told := self._heard.pop(request.call_id, None):
            self._record(
                Decision(
                    time=current_timestamp(),
                    turn=self._parts.turn(),
                    call_id=told.call_id,
                    tool=told.name,
                    summary=self._short(request.prepared.summary),
                    risk=told.risk,
                    allowed=told.approved,
                    by=told.by,
                    reason=self._short(admission.why),
                    agent=self._parts.agent,
                )
            )

    def after(self, note: Callable[[TurnNote], None]) -> Callable[[TurnNote], None]:
        """Return what does as ``note``, and then begins to look at the turn that was noted."""

        def noted(turn: TurnNote) -> None:
            note(turn)
            self._turn_over()

        return noted

    def _turn_over(self) -> None:
        requests, self._running = self._running, []
        self._heard.clear()
        self._jobs.start_soon(self._look, tuple(self._parts.messages()), requests, self._parts.turn())

    async def _look(self, messages: Sequence[Message], requests: Sequence[GateRequest], turn: int) -> None:
        found = await trio.to_thread.run_sync(self._diverged, messages, requests, turn)
        for record in found:
            self._record(record)
        if found:
            self._parts.emit(TurnDiverged(turn, tuple(map(_told, found))))

    def _diverged(
        self, messages: Sequence[Message], requests: Sequence[GateRequest], turn: int
    ) -> list[Diverged]:
        from odek.trust.divergence import find_divergences  # no turn before the first has use for it

        actions = {request.call_id: self._action(request) for request in requests}
        found = find_divergences(
            messages,
            actions,
            where=self._parts.where,
            is_own=self._is_own,
            is_delegated=bool(self._parts.agent),
        )
        return [self._diverged_record(divergence, turn) for divergence in found]

    def _action(self, request: GateRequest) -> "Action":
        from odek.trust.divergence import Action

        effects, summary = request.prepared.effects, self._short(request.prepared.summary)
        return Action(
            request.call_id, request.tool, summary, effects, assess(effects, self._parts.where).risk
        )

    def _is_own(self, path: str) -> bool:
        """Tell whether a path, as a command or a declaration writes it, exists in the workspace."""
        where = self._parts.where
        if path.startswith("~") or reads_outside(literal(path, str(where.cwd)), where):
            return False
        try:
            return (where.workspace / path).exists()
        except (OSError, ValueError):  # a name too long for a file, a directory that may not be entered
            return False

    def _diverged_record(self, found: "Divergence", turn: int) -> Diverged:
        action = found.action
        return Diverged(
            time=current_timestamp(),
            turn=turn,
            how=found.how,
            kind=found.resource.kind,
            resource=self._short(found.resource.shown),
            source=self._short(found.source),
            evidence=self._short(found.evidence),
            source_call_id=found.source_call_id,
            call_id=action.call_id if action else "",
            tool=action.tool if action else "",
            summary=action.summary if action else "",
        )

    def _short(self, text: str) -> str:
        return clip_line(self._parts.mask(text), TEXT_CHARACTERS)

    def _record(self, record: AuditRecord) -> None:
        if self._parts.trail is None:
            return
        self._unwritten.append(record)
        if not self._is_writing:
            self._is_writing = True
            self._jobs.start_soon(self._write, self._parts.trail)

    async def _write(self, trail: AuditTrail) -> None:
        try:
            while self._unwritten:
                records, self._unwritten = self._unwritten, []
                try:
                    await trio.to_thread.run_sync(trail.append, records)
                except StoreError as error:
                    if not self._has_failed:
                        self._has_failed = True
                        self._parts.emit(Notice(f"what happens is not put on record: {error}", "warning"))
        finally:
            self._is_writing = False


class AuditedGate:
    """Passes calls to another gate, whose events go to ``auditor.hear``, and tells what came of it."""

    def __init__(self, gate: Gate, auditor: Auditor, mask: Callable[[str], str]) -> None:
        self._gate = gate
        self._auditor = auditor
        self._mask = mask
        self._calls: dict[str, deque[str]] = defaultdict(deque)

    async def admit(self, requests: Sequence[GateRequest]) -> Sequence[Admission]:
        """Decide as the other gate does."""
        admissions = await self._gate.admit(requests)
        for request, admission in zip(requests, admissions, strict=True):
            self._auditor.decided(request, admission)
            if admission.fence_source is not None:
                self._calls[self._mask(admission.fence_source)].append(request.call_id)
        return admissions

    def fence(self, content: str, source: str) -> str:
        """Mark ``content`` as the other gate does."""
        # Of two calls that are named alike, the one that was asked for first is taken.
        calls = self._calls.get(self._mask(source))
        self._auditor.took_in(source, content, calls.popleft() if calls else "")
        return self._gate.fence(content, source)


def _told(record: Diverged) -> TurnDivergence:
    return TurnDivergence(
        record.how, record.kind, record.resource, record.source, record.evidence, record.tool, record.summary
    )
