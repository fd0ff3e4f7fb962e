"""Who is asked before a call runs, what they are asked, and what the session then trusts."""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from odek.config.settings import DangerousSettings
from odek.trust.policy import action_for, decide
from odek.trust.risk import Risk, Verdict

__all__ = [
    "Answer",
    "ApprovalRequest",
    "ApprovalState",
    "Approver",
    "NobodyApprover",
    "Ruling",
    "is_trustable",
    "resolve",
]

Answer = Literal["approve", "deny", "trust_class"]

_NEVER_TRUSTED = frozenset({Risk.UNKNOWN, Risk.DESTRUCTIVE, Risk.BLOCKED})
# Three of one class within a minute: who answers faster than that no longer reads. Not measured.
_FRICTION_APPROVALS = 3
_FRICTION_WINDOW_SECONDS = 60.0


class ApprovalRequest(msgspec.Struct, frozen=True):
    """A call to decide on, and to show whole if somebody must be asked.

    ``preview`` is the whole command or change; ``command`` the exact shell command if the
    call is one, and ``place`` says where it runs if not simply here. ``trustable`` says that
    "trust this class" may be offered.
    """

    call_id: str
    tool: str
    summary: str
    preview: str
    verdict: Verdict
    command: str | None = None
    place: str = ""
    trustable: bool = False


class Ruling(msgspec.Struct, frozen=True):
    """What is to become of one call, who said so, and why."""

    request: ApprovalRequest
    action: Literal["allow", "ask", "deny"]
    by: Literal["policy", "session_trust"]
    reason: str


class Approver(Protocol):
    """Asks the person."""

    async def ask(self, requests: Sequence[ApprovalRequest]) -> Sequence[Answer]:
        """Ask about all ``requests`` in one prompt, and return one answer for each, in order.

        An end of input, a closed terminal or a timeout is "deny".
        """
        ...


class NobodyApprover:
    """Answers for a run that has no terminal, as ``dangerous.non_interactive`` says."""

    def __init__(self, non_interactive: Literal["allow", "deny"]) -> None:
        self._answer: Answer = "approve" if non_interactive == "allow" else "deny"

    async def ask(self, requests: Sequence[ApprovalRequest]) -> Sequence[Answer]:
        """Return the configured answer for each request."""
        return [self._answer] * len(requests)


class ApprovalState:
    """What the person has approved in this session."""

    def __init__(self) -> None:
        self._trusted: set[Risk] = set()
        self._approvals: dict[Risk, list[float]] = {}

    @property
    def trusted(self) -> frozenset[Risk]:
        """The classes that run unasked for the rest of the session."""
        return frozenset(self._trusted)

    def trust(self, risk: Risk) -> None:
        """Trust one class; a class that may never be trusted is an error of the caller.

        Raises:
            ValueError: the class is unknown, destructive or blocked.
        """
        if risk in _NEVER_TRUSTED:
            raise ValueError(f"the class {risk.label} cannot be trusted for a session")
        self._trusted.add(risk)

    def record(self, risk: Risk, now: float) -> None:
        """Remember that the person approved a call of class ``risk``; ``now`` is in seconds."""
        self._approvals[risk] = [*self._recent(risk, now), now]

    def needs_friction(self, risk: Risk, now: float) -> bool:
        """Whether so many approvals of this class came so fast that the next one must cost effort."""
        return len(self._recent(risk, now)) >= _FRICTION_APPROVALS

    def _recent(self, risk: Risk, now: float) -> list[float]:
        return [at for at in self._approvals.get(risk, []) if now - at < _FRICTION_WINDOW_SECONDS]

    def covers(self, verdict: Verdict, settings: DangerousSettings) -> bool:
        """Whether ``verdict`` is on one command of a trusted class that does nothing else in question."""
        return verdict.risk in self._trusted and _is_single(verdict, settings)


def is_trustable(verdict: Verdict, settings: DangerousSettings) -> bool:
    """Whether "trust this class" may be offered: for one command, whose class may be trusted."""
    return verdict.risk not in _NEVER_TRUSTED and _is_single(verdict, settings)


def _is_single(verdict: Verdict, settings: DangerousSettings) -> bool:
    """Whether one command alone does more than look, and only its class is in question.

    A compound says more than the sum of its commands: nobody who trusts a class has seen it.
    """
    commands = {part.command for part in verdict.parts if part.risk > Risk.SAFE}
    asked = {part.risk for part in verdict.parts if action_for(part.risk, settings) != "allow"}
    return len(commands) <= 1 and asked <= {verdict.risk} and action_for(verdict.risk, settings) == "prompt"


def resolve(
    requests: Sequence[ApprovalRequest], settings: DangerousSettings, state: ApprovalState
) -> tuple[Ruling, ...]:
    """Apply policy and session trust; return one ruling for each request, in order.

    The ruling of a request that must be asked carries it with ``trustable`` filled in.
    """
    return tuple(_rule(request, settings, state) for request in requests)


def _rule(request: ApprovalRequest, settings: DangerousSettings, state: ApprovalState) -> Ruling:
    worst = max(request.verdict.parts, key=lambda part: part.risk, default=None)
    reason = (
        f"{request.verdict.risk.label}: {worst.reason}" if worst is not None else request.verdict.risk.label
    )
    match decide(request.verdict, settings, request.command):
        case "allow":
            return Ruling(request, "allow", "policy", reason)
        case "deny":
            return Ruling(request, "deny", "policy", reason)
        case "prompt" if state.covers(request.verdict, settings):
            return Ruling(request, "allow", "session_trust", reason)
        case "prompt":
            asked = msgspec.structs.replace(request, trustable=is_trustable(request.verdict, settings))
            return Ruling(asked, "ask", "policy", reason)
