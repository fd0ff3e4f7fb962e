"""The gate of tool calls: what their effects mean, what the policy says, what a person answers."""

from collections.abc import Callable, Sequence

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
    ) -> None:
        self._where = where
        self._settings = settings
        self._state = state
        self._approver = approver
        self._emit = emit
        self._taint = taint

    async def admit(self, requests: Sequence[GateRequest]) -> Sequence[Admission]:
        """Decide about ``requests``; all that need a person are asked about at once."""
        verdicts = await trio.to_thread.run_sync(self._assess, requests)
        questions = [_question(request, verdict) for request, verdict in zip(requests, verdicts, strict=True)]
        rulings = resolve(questions, self._settings, self._state)
        answers = await self._ask([ruling for ruling in rulings if ruling.action == "ask"])
        return [
            self._admission(request, ruling, answers.get(ruling.request.call_id))
            for request, ruling in zip(requests, rulings, strict=True)
        ]

    def fence(self, content: str, source: str) -> str:
        """Mark ``content`` as data from ``source``."""
        return fence(content, source=source)

    def _assess(self, requests: Sequence[GateRequest]) -> list[Verdict]:
        return [assess(request.prepared.effects, self._where) for request in requests]

    async def _ask(self, asked: Sequence[Ruling]) -> dict[str, Answer]:
        if not asked:
            return {}
        approver = self._approver or NobodyApprover(self._settings.non_interactive)
        questions = [ruling.request for ruling in asked]
        answers = await approver.ask(questions)
        for question, answer in zip(questions, answers, strict=True):
            risk = question.verdict.risk
            if answer == "trust_class" and question.trustable:
                self._state.trust(risk)
            if answer != "deny":
                self._state.record(risk, trio.current_time())
        return {question.call_id: answer for question, answer in zip(questions, answers, strict=True)}

    def _admission(self, request: GateRequest, ruling: Ruling, answer: Answer | None) -> Admission:
        allowed = ruling.action == "allow" if answer is None else answer != "deny"
        verdict = ruling.request.verdict
        if ruling.action != "allow" or ruling.by != "policy":
            by_person = answer is not None and self._approver is not None
            by = "person" if by_person else ruling.by
            self._emit(ApprovalResolved(request.call_id, request.tool, verdict.risk.label, allowed, by))
        if not allowed:
            return Admission(allowed=False, reason=self._refusal(ruling, answer))
        effects = request.prepared.effects
        self._taint(taints(effects, verdict, self._where), ingests_untrusted(effects))
        fenced = needs_fence(effects, verdict, self._where)
        return Admission(
            allowed=True, fence_source=f"{request.tool}: {request.prepared.summary}" if fenced else None
        )

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


def _question(request: GateRequest, verdict: Verdict) -> ApprovalRequest:
    prepared = request.prepared
    return ApprovalRequest(
        call_id=request.call_id,
        tool=request.tool,
        summary=prepared.summary,
        preview=prepared.preview or prepared.summary,
        verdict=verdict,
        command=prepared.effects.command,
    )
