"""What the runtime reports while it works.

Events are progress: for a slow reader some are merged. What must arrive, such as the
answer, is a return value. Each encodes to one JSON line for ``--json``, with its
kind in ``type``.
"""

from typing import Literal, TypeVar

import msgspec

__all__ = [
    "AnswerDelta",
    "ApprovalResolved",
    "BudgetWarning",
    "ChildState",
    "ChildrenChanged",
    "ContextTrimmed",
    "Event",
    "MemoryEvent",
    "ModelFinished",
    "ModelRetrying",
    "ModelStarted",
    "Notice",
    "PlanChanged",
    "ReasoningDelta",
    "ReplyLedgerMismatch",
    "ToolFinished",
    "ToolOutputLine",
    "ToolRecovery",
    "ToolRunning",
    "ToolStarted",
    "TurnDiverged",
    "TurnDivergence",
    "TurnFinished",
    "TurnStarted",
    "Usage",
]

_N = TypeVar("_N", int, float)


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens and money of one or more requests.

    None means that the provider did not report it; it is never guessed. Money is
    in US dollars.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None

    def __add__(self, other: "Usage") -> "Usage":
        """Sum field by field; a known figure plus an unknown one is the known one."""
        return Usage(
            prompt_tokens=_add(self.prompt_tokens, other.prompt_tokens),
            completion_tokens=_add(self.completion_tokens, other.completion_tokens),
            cached_tokens=_add(self.cached_tokens, other.cached_tokens),
            cost_usd=_add(self.cost_usd, other.cost_usd),
        )


def _add(left: _N | None, right: _N | None) -> _N | None:
    if left is None:
        return right
    return left if right is None else left + right


class TurnStarted(msgspec.Struct, frozen=True, tag="turn_started"):
    """A turn begins; ``task`` is the person's text."""

    session_id: str
    turn: int
    task: str


class ModelStarted(msgspec.Struct, frozen=True, tag="model_started"):
    """A request goes out. ``iteration`` counts the requests of this turn from 1."""

    iteration: int
    estimated_tokens: int


class AnswerDelta(msgspec.Struct, frozen=True, tag="answer_delta"):
    """A piece of the text of the answer, as it arrived."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, tag="reasoning_delta"):
    """A piece of the model's reasoning text."""

    text: str


class ModelRetrying(msgspec.Struct, frozen=True, tag="model_retrying"):
    """A request failed and is sent again after ``wait_seconds``."""

    attempt: int
    wait_seconds: float
    reason: str


class ModelFinished(msgspec.Struct, frozen=True, tag="model_finished"):
    """A request is answered."""

    usage: Usage
    finish_reason: str
    tool_calls: int
    seconds: float


class ToolStarted(msgspec.Struct, frozen=True, tag="tool_started"):
    """A tool call was allowed and runs now; ``summary`` is one line for a person."""

    call_id: str
    name: str
    summary: str


class ToolOutputLine(msgspec.Struct, frozen=True, tag="tool_output_line"):
    """The newest line of output of a running tool, secrets masked."""

    call_id: str
    line: str


class ToolRunning(msgspec.Struct, frozen=True, tag="tool_running"):
    """A call has been running for a while."""

    call_id: str
    name: str
    seconds: float


class ToolFinished(msgspec.Struct, frozen=True, tag="tool_finished", omit_defaults=True):
    """A tool call ended, was denied, or was cancelled.

    ``preview`` is the first line of the result; ``diff`` a unified diff of a file
    that the call changed, its beginning if it is longer than 262,144 characters.
    """

    call_id: str
    name: str
    summary: str
    outcome: Literal["ok", "error", "denied", "cancelled"]
    seconds: float
    preview: str = ""
    diff: str = ""


class ChildState(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where one subagent is. ``action`` is what it did last, or how it ended.

    Memory is the most that was seen so far of it and all that it started.
    """

    name: str
    state: Literal["waiting", "working", "done", "failed"]
    seconds: float = 0.0
    tokens: int = 0
    action: str = ""
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0


class ChildrenChanged(msgspec.Struct, frozen=True, tag="children_changed"):
    """Where all subagents of a call are, in the order of their tasks; ``finished``: all have ended."""

    call_id: str
    children: tuple[ChildState, ...]
    finished: bool = False


class ApprovalResolved(msgspec.Struct, frozen=True, tag="approval_resolved"):
    """A call that needed approval was answered; ``by`` says by whom."""

    call_id: str
    name: str
    risk: str
    approved: bool
    by: Literal["person", "policy", "session_trust"]


class PlanChanged(msgspec.Struct, frozen=True, tag="plan_changed"):
    """The plan was replaced; each step is (state, title)."""

    steps: tuple[tuple[str, str], ...]


class ContextTrimmed(msgspec.Struct, frozen=True, tag="context_trimmed"):
    """Old message groups were left out of the request, or new tool results shortened, so that it fits."""

    groups: int
    estimated_tokens: int
    limit_tokens: int
    shortened: int = 0


class ToolRecovery(msgspec.Struct, frozen=True, tag="tool_recovery"):
    """A tool failed the same way several times; the model got a corrective hint."""

    name: str
    failures: int


class BudgetWarning(msgspec.Struct, frozen=True, tag="budget_warning"):
    """A budget passed 50, 75 or 90 percent."""

    budget: Literal["tokens", "cost", "iterations", "time"]
    percent: int
    used: float
    limit: float


class ReplyLedgerMismatch(msgspec.Struct, frozen=True, tag="reply_ledger_mismatch"):
    """The answer denies changes which did complete; ``changes`` lists them."""

    changes: tuple[str, ...]


class TurnDivergence(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that the agent acted on, or answered with, and that only outside content had named.

    ``source`` is what brought that content in, ``evidence`` where it names ``resource``. ``tool``
    and ``summary`` are the call that acted.
    """

    how: Literal["acted", "answered"]
    kind: str
    resource: str
    source: str
    evidence: str
    tool: str = ""
    summary: str = ""


class TurnDiverged(msgspec.Struct, frozen=True, tag="turn_diverged"):
    """A turn did, or suggests, what outside content named and the person did not; told behind its end."""

    turn: int
    divergences: tuple[TurnDivergence, ...]


class Notice(msgspec.Struct, frozen=True, tag="notice"):
    """One line that the person should see: a repair, a warning, something left undone."""

    text: str
    level: Literal["info", "warning"] = "info"


class MemoryEvent(msgspec.Struct, frozen=True, tag="memory_event", omit_defaults=True):
    """Something happened to what is remembered.

    ``target`` is the fact file, or the type of an atom; ``count`` the turns of an episode, the
    entries before a consolidation, or the atoms that went; ``sessions`` the episodes that were
    evicted. Of a quarantined atom ``content`` is the reason, never the text.
    """

    kind: Literal[
        "fact_added",
        "fact_merged",
        "fact_replaced",
        "fact_removed",
        "fact_consolidated",
        "episode_stored",
        "episode_deduped",
        "episode_evicted",
        "episode_promoted",
        "episode_pending_review",
        "atom_added",
        "atom_refreshed",
        "atom_quarantined",
        "atom_promoted",
        "atom_forgotten",
        "atom_evicted",
    ]
    target: str = ""
    content: str = ""
    session_id: str = ""
    sessions: tuple[str, ...] = ()
    similarity: float | None = None
    count: int = 0
    new_count: int = 0
    untrusted: bool = False


class TurnFinished(msgspec.Struct, frozen=True, tag="turn_finished", omit_defaults=True):
    """The turn is over; it is saved unless a notice before says that it is not."""

    session_id: str
    outcome: Literal["answered", "cancelled", "limit", "failed"]
    answer: str
    usage: Usage
    seconds: float
    iterations: int
    reason: str = ""


Event = (
    TurnStarted
    | ModelStarted
    | AnswerDelta
    | ReasoningDelta
    | ModelRetrying
    | ModelFinished
    | ToolStarted
    | ToolOutputLine
    | ToolRunning
    | ToolFinished
    | ChildrenChanged
    | ApprovalResolved
    | PlanChanged
    | ContextTrimmed
    | ToolRecovery
    | BudgetWarning
    | ReplyLedgerMismatch
    | MemoryEvent
    | Notice
    | TurnDiverged
    | TurnFinished
)
