"""The gate of tool calls: what their effects mean, what the policy says, what a person answers."""

from collections.abc import Callable, Collection, Sequence

import msgspec
import trio

from odek.batch import Admission, GateRequest
from odek.config.settings import DangerousSettings
from odek.events import ApprovalResolved, Event
from odek.trust.approval import (
    Answer,
    ApprovalRequest,
    ApprovalState,
    Approver,
    NobodyApprover,
    Ruling,
    resolve,
)
from odek.trust.bound_files import BoundFiles, bind
from odek.trust.fence import fence
from odek.trust.paths import Where
from odek.trust.policy import assess
from odek.trust.provenance import ingests_untrusted, needs_fence, taints
from odek.trust.risk import Verdict

__all__ = ["PolicyGate"]


class PolicyGate:
    """Implements ``Gate`` by the person's policy.

    Args:
        where: What paths are judged against.
        settings: The policy.
        state: What this session has approved so far.
        approver: Who is asked; None when nobody can be.
        emit: Takes the outcome of each question.
        taint: Is told, before an admitted call runs, why its result makes the session's
            memory untrusted (maybe for no reason), and whether it brings in text that
            the person did not write.
        is_untrusted: Whether the session has taken in untrusted content: a person must then
            allow what it writes to the memory, whatever the policy says.
    """

    def __init__(
        self,
        *,
        where: Where,
        settings: DangerousSettings,
        state: ApprovalState,
        approver: Approver | None,
        emit: Callable[[Event], None],
        taint: Callable[[tuple[str, ...], bool], None],
        is_untrusted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._where = where
        self._settings = settings
        self._state = state
        self._approver = approver
        self._emit = emit
        self._taint = taint
        self._is_untrusted = is_untrusted

    async def admit(self, requests: Sequence[GateRequest]) -> Sequence[Admission]:
        """Decide about ``requests``; all that need a person are asked about at once."""
        verdicts, bound = await trio.to_thread.run_sync(self._assess, requests)
        questions = [_question(request, verdict) for request, verdict in zip(requests, verdicts, strict=True)]
        guarded = {
            request.call_id
            for request in requests
            if request.prepared.effects.needs_person
            or (request.prepared.effects.writes_memory and self._is_untrusted())
        }
        rulings = [
            _for_a_person(ruling) if ruling.request.call_id in guarded else ruling
            for ruling in resolve(questions, self._settings, self._state)
        ]
        answers = await self._ask([ruling for ruling in rulings if ruling.action == "ask"], guarded)
        return [
            self._admission(request, ruling, answers.get(ruling.request.call_id), files)
            for request, ruling, files in zip(requests, rulings, bound, strict=True)
        ]

    def fence(self, content: str, source: str) -> str:
        """Mark ``content`` as data from ``source``."""
        return fence(content, source=source)

    def _assess(self, requests: Sequence[GateRequest]) -> tuple[list[Verdict], list[BoundFiles]]:
        """Judge ``requests``, and take down the files whose content they would run."""
        verdicts = [assess(request.prepared.effects, self._where) for request in requests]
        return verdicts, [bind(path for part in verdict.parts for path in part.code) for verdict in verdicts]

    async def _ask(self, asked: Sequence[Ruling], guarded: Collection[str]) -> dict[str, Answer]:
        """Ask about ``asked``; those that are ``guarded`` are for a person alone to allow."""
        if not asked:
            return {}
        approver = self._approver or NobodyApprover(self._settings.non_interactive)
        questions = [ruling.request for ruling in asked]
        answers = list(await approver.ask(questions))
        if self._approver is None:
            answers = ["deny" if q.call_id in guarded else a for q, a in zip(questions, answers, strict=True)]
        for question, answer in zip(questions, answers, strict=True):
            risk = question.verdict.risk
            if answer == "trust_class" and question.trustable:
                self._state.trust(risk)
            if answer != "deny":
                self._state.record(risk, trio.current_time())
        return {question.call_id: answer for question, answer in zip(questions, answers, strict=True)}

    def _admission(
        self, request: GateRequest, ruling: Ruling, answer: Answer | None, bound: BoundFiles
    ) -> Admission:
        allowed = ruling.action == "allow" if answer is None else answer != "deny"
        verdict = ruling.request.verdict
        by = "person" if answer is not None and self._approver is not None else ruling.by
        if ruling.action != "allow" or ruling.by != "policy":
            self._emit(ApprovalResolved(request.call_id, request.tool, verdict.risk.label, allowed, by))
        if not allowed:
            return Admission(allowed=False, reason=self._refusal(ruling, answer), by=by, why=ruling.reason)
        effects = request.prepared.effects
        self._taint(taints(effects, verdict, self._where), ingests_untrusted(effects))
        fenced = needs_fence(effects, verdict, self._where)
        source = f"{request.tool}: {request.prepared.summary}" if fenced else None
        # A person allowed what they could read: should a script be another one by then, ask again.
        changed = bound.changed if by == "person" and bound.identities else None
        return Admission(allowed=True, fence_source=source, by=by, changed=changed)

    def _refusal(self, ruling: Ruling, answer: Answer | None) -> str:
        """Say why a call does not run, so that the model can do something sensible instead."""
        if answer is None:
            return (
                f"not run: the policy denies this call ({ruling.reason}). "
                "Do not try to get around it; say what is needed and why."
            )
        if self._approver is None:
            return (
                f"not run: this call needs a person's approval ({ruling.reason}), "
                "and there is nobody to ask. Say what you would have run and why."
            )
        return f"not run: the person did not allow this call ({ruling.reason}). Ask what they want instead."


def _for_a_person(ruling: Ruling) -> Ruling:
    """Return the ruling on a memory write of a session that took in untrusted content."""
    if ruling.action == "deny":
        return ruling
    request = msgspec.structs.replace(ruling.request, trustable=False)
    return Ruling(request, "ask", "policy", "this session took in untrusted content, and memory outlives it")


def _question(request: GateRequest, verdict: Verdict) -> ApprovalRequest:
    prepared = request.prepared
    return ApprovalRequest(
        call_id=request.call_id,
        tool=request.tool,
        summary=prepared.summary,
        preview=prepared.preview or prepared.summary,
        verdict=verdict,
        command=prepared.effects.command,
        place=prepared.place,
    )
