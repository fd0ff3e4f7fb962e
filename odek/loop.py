"""The loop: think, act, observe, until the model answers without asking for a tool.

It knows protocols only. What it is given decides which model answers, which tools
there are, who approves and who watches.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, Protocol

import msgspec
import trio

from odek.batch import Batch, Gate
from odek.budget import Budget, Limits
from odek.context import Fitted, Fitting, estimate_tools
from odek.errors import (
    ContextOverflowError,
    LimitReachedError,
    ModelError,
    ModelRejectedError,
    ModelUnavailableError,
    StoreError,
)
from odek.events import (
    AnswerDelta,
    ContextTrimmed,
    Event,
    ModelFinished,
    ModelRetrying,
    ModelStarted,
    Notice,
    ReasoningDelta,
    ReplyLedgerMismatch,
    TurnFinished,
    TurnStarted,
    Usage,
)
from odek.ledger import Ledger
from odek.llm.endings import notice_of
from odek.llm.model import (
    Model,
    ModelEvent,
    ModelRequest,
    ModelResponse,
    ReasoningText,
    Retrying,
    TextPiece,
    ToolCallBegun,
)
from odek.memory.buffer import TurnNote
from odek.messages import (
    CONTEXT_NAME,
    AssistantMessage,
    Message,
    SystemMessage,
    UserMessage,
)
from odek.tools.tool import Tool

__all__ = ["Agent", "Transcript", "TurnMemory", "TurnResult", "run_turn"]

Outcome = Literal["answered", "cancelled", "limit", "failed"]

SAVE_GRACE_SECONDS = 10.0
"""A save is finished even when its turn is cancelled, but a dead disk must not hold the exit for ever."""

MOST_REQUESTS = 3
"""For one answer that is empty, or refused as too long. No measurement behind this."""

CANCELLED_BY_USER = "cancelled by the user"


class Transcript(Protocol):
    """The conversation, owned by one process, and its way to the disk."""

    @property
    def id(self) -> str:
        """The session's id."""
        ...

    @property
    def messages(self) -> Sequence[Message]:
        """Everything said so far, system message first."""
        ...

    def append(self, *messages: Message) -> None:
        """Add messages in memory."""
        ...

    def add_usage(self, usage: Usage) -> None:
        """Add the tokens and money of a request to the session's totals."""
        ...

    async def save(self) -> None:
        """Make everything appended so far durable.

        Raises:
            StoreError: it is not on disk; the next save tries all of it again.
        """
        ...


class TurnMemory(Protocol):
    """What the memory adds behind the history of a turn."""

    async def context(self, query: str) -> Sequence[str]:
        """Return texts for the model beside the person's message, a message each; never fails."""
        ...

    def asked(self) -> None:
        """Take note that the person's message is saved; returns at once."""
        ...


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a turn works with. Built by ``odek.app``, owned there.

    ``max_parallel`` bounds the tool calls at once. ``mask`` hides secrets in text.
    ``note_turn`` is told what a turn did, before its last save; it never waits.
    ``on_budget`` is handed the budget of each turn, for whoever shares it out.
    ``unavailable`` says of tools that exist why they are not among ``tools``. ``fitting`` keeps the
    conversation within the model's window, from its first turn to its last.
    """

    model: Model
    tools: Mapping[str, Tool[msgspec.Struct]]
    gate: Gate
    transcript: Transcript
    emit: Callable[[Event], None]
    mask: Callable[[str], str]
    limits: Limits = Limits()
    max_parallel: int = 4
    max_tokens: int | None = None
    temperature: float | None = None
    thinking: str = ""
    memory: TurnMemory | None = None
    note_turn: Callable[[TurnNote], None] | None = None
    on_budget: Callable[[Budget], None] | None = None
    unavailable: Mapping[str, str] = {}
    fitting: Fitting = msgspec.field(default_factory=Fitting)


class TurnResult(msgspec.Struct, frozen=True):
    """How a turn ended. ``answer`` is the last text of the model, whole."""

    outcome: Outcome
    answer: str
    usage: Usage
    error: ModelError | LimitReachedError | None = None


async def run_turn(agent: Agent, text: str) -> TurnResult:
    """Give ``text`` to the agent and work until there is an answer.

    The transcript is saved after the question, every answer and every tool batch, and
    is valid for every provider however the turn ends. A cancelled turn is recorded as
    such before the cancellation goes on.
    """
    return await _Turn(agent).run(text)


class _Turn:
    """One turn: the state that lives as long as it does."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._transcript = agent.transcript
        self._emit = agent.emit
        self._budget = Budget(agent.limits, trio.current_time, agent.emit)
        self._ledger = Ledger()
        self._specs = tuple(tool.spec() for tool in agent.tools.values())
        self._schema_tokens = estimate_tools(self._specs)
        self._batch = Batch(
            agent.tools,
            agent.gate,
            agent.emit,
            agent.mask,
            agent.max_parallel,
            self._ledger,
            self._spend,
            agent.unavailable,
        )
        if agent.on_budget is not None:
            agent.on_budget(self._budget)
        self._partial: list[str] = []
        self._unsaved_reported = False
        self._sent_tokens = 0
        self._task = ""
        self._asked_at = _local_time()
        self._noted = False

    async def run(self, text: str) -> TurnResult:
        """Run the turn and report how it ended."""
        turn = sum(isinstance(message, UserMessage) for message in self._transcript.messages) + 1
        self._task = text
        self._emit(TurnStarted(self._transcript.id, turn, text))
        error: ModelError | LimitReachedError | None = None
        outcome: Outcome = "answered"
        try:
            await self._ask(text)
            answer = await self._work_in_time()
        except LimitReachedError as reached:
            error, outcome = reached, "limit"
            answer = await self._close(f"stopped: {reached}")
        except ModelError as failed:
            error, outcome = failed, "failed"
            answer = await self._close(f"no answer: {failed}")
        except BaseException as failure:
            # A cancellation, or a bug: recorded either way before it goes on its way.
            bug = isinstance(failure, Exception)
            reason = f"internal error: {type(failure).__name__}" if bug else CANCELLED_BY_USER
            answer = await self._close(reason)
            self._finish("failed" if bug else "cancelled", answer, reason if bug else "")
            raise
        self._finish(outcome, answer, str(error or ""))
        return TurnResult(outcome, answer, self._budget.usage, error)

    async def _work_in_time(self) -> str:
        limit_seconds = self._agent.limits.seconds
        with trio.move_on_after(limit_seconds or math.inf):
            return await self._work()
        raise LimitReachedError(f"the time budget of {limit_seconds:g} s (budget.seconds) is used up")

    async def _ask(self, text: str) -> None:
        """Record the person's message, what the memory adds to it, and save."""
        memory = self._agent.memory
        contexts = await memory.context(text) if memory is not None else ()
        messages: list[Message] = [SystemMessage(context, CONTEXT_NAME) for context in contexts]
        messages.append(UserMessage(text))
        self._transcript.append(*messages)
        await self._save()
        if memory is not None:
            memory.asked()

    async def _work(self) -> str:
        """Ask, act, observe; return the answer."""
        while True:
            self._budget.begin_iteration()
            response = await self._answer()
            message = response.message
            self._transcript.append(message)
            self._partial.clear()
            if not message.tool_calls:
                self._note()
            await self._save()
            if not message.tool_calls:
                self._check_reply(response)
                return message.content
            results = await self._batch.run(message.tool_calls)
            self._transcript.append(*results)
            await self._save()

    async def _answer(self) -> ModelResponse:
        """Get one usable response: fit harder once, and ask again while it is empty."""
        refusal: ContextOverflowError | None = None
        for left in reversed(range(MOST_REQUESTS)):
            try:
                response = await self._request(refusal)
            except ContextOverflowError as error:
                if refusal is None:
                    refusal = error
                    continue
                advice = "start a new session or attach less"
                raise ContextOverflowError(f"{error}; {advice}", partial=error.partial) from error
            if response.message.content.strip() or response.message.tool_calls:
                return response
            if response.finish_reason == "length":
                raise ModelError("the answer reached its length limit before any text: raise llm.max_tokens")
            if response.finish_reason == "content_filter":
                raise ModelRejectedError("the provider's content filter blocked the answer")
            if left:
                self._emit(Notice("the model gave an empty answer; asking again", "warning"))
        raise ModelUnavailableError(f"{self._agent.model.name} gave only empty answers")

    def _fitted(self, refusal: ContextOverflowError | None) -> Fitted:
        """Return what the next request carries: much less than the one of ``refusal``, if there was one.

        Raises:
            ContextOverflowError: what must stay is too much; tells what ``refusal`` said.
        """
        window = self._agent.model.context_window
        try:
            fitted = self._agent.fitting.fit(
                self._transcript.messages,
                window=window,
                reserved_tokens=self._schema_tokens,
                harder=refusal is not None,
            )
        except ContextOverflowError as error:
            if refusal is None:
                raise
            raise ContextOverflowError(f"{refusal}; {error}", partial=refusal.partial) from error
        groups, shortened = fitted.newly_left_out, fitted.newly_shortened
        if groups or shortened:
            self._emit(ContextTrimmed(groups, fitted.estimated_tokens, window or 0, shortened))
        return fitted

    async def _request(self, refusal: ContextOverflowError | None) -> ModelResponse:
        """Send the conversation, fitted, once."""
        fitted = self._fitted(refusal)
        request = ModelRequest(
            fitted.messages,
            self._specs,
            max_tokens=self._agent.max_tokens,
            temperature=self._agent.temperature,
            thinking=self._agent.thinking,
        )
        started = trio.current_time()
        self._partial.clear()
        self._emit(ModelStarted(self._budget.iterations, fitted.estimated_tokens))
        response = await self._agent.model.complete(request, self._on_model_event)
        self._spend(response.usage)
        seconds = trio.current_time() - started
        calls, self._sent_tokens = len(response.message.tool_calls), fitted.estimated_tokens
        self._emit(ModelFinished(response.usage, response.finish_reason, calls, seconds))
        return response

    def _spend(self, usage: Usage) -> None:
        self._budget.spend(usage)
        self._transcript.add_usage(usage)

    def _on_model_event(self, event: ModelEvent) -> None:
        match event:
            case TextPiece(text):
                self._partial.append(text)
                self._emit(AnswerDelta(text))
            case ReasoningText(text):
                self._emit(ReasoningDelta(text))
            case ToolCallBegun(name):
                if name in self._agent.tools:
                    self._agent.tools[name].expect()
            case Retrying(attempt, wait_seconds, reason):
                self._emit(ModelRetrying(attempt, wait_seconds, reason))

    def _check_reply(self, response: ModelResponse) -> None:
        if notice := notice_of(response, self._agent.tools, self._sent_tokens):
            self._emit(Notice(notice, "warning"))
        if self._ledger.denied_by(response.message.content):
            self._emit(ReplyLedgerMismatch(tuple(self._ledger.changes)))

    async def _close(self, reason: str) -> str:
        """Make an interrupted conversation valid again, save it, and return the text so far.

        Every unanswered call gets a result; an answer under way is kept with the reason
        behind it, so that the next message follows an assistant's.
        """
        partial = "".join(self._partial)
        self._transcript.append(*self._batch.abandon(reason))
        self._transcript.append(AssistantMessage(f"{partial}\n\n[{reason}]".strip()))
        self._note()
        await self._save()
        return partial

    def _note(self) -> None:
        """Tell once what the turn did: a turn may be cancelled while its last save is under way."""
        if self._agent.note_turn is not None and not self._noted:
            self._noted = True
            actions = tuple(self._batch.actions)
            task = self._agent.mask(self._task)
            self._agent.note_turn(
                TurnNote(task=task, asked_at=self._asked_at, ended_at=_local_time(), actions=actions)
            )

    async def _save(self) -> None:
        """Save, and say so once when the disk does not take it: the turn goes on in memory."""
        try:
            with trio.move_on_after(SAVE_GRACE_SECONDS, shield=True) as grace:
                await self._transcript.save()
            if grace.cancelled_caught:
                raise StoreError(f"saving the session took more than {SAVE_GRACE_SECONDS:g} s")
        except StoreError as error:
            if not self._unsaved_reported:
                self._unsaved_reported = True
                self._emit(
                    Notice(f"the session is not saved: {error}; every next step tries again", "warning")
                )
        else:
            if self._unsaved_reported:
                self._unsaved_reported = False
                self._emit(Notice("the session is saved again"))

    def _finish(self, outcome: Outcome, answer: str, reason: str) -> None:
        budget = self._budget
        self._emit(
            TurnFinished(
                self._transcript.id,
                outcome,
                answer,
                budget.usage,
                budget.seconds,
                budget.iterations,
                self._agent.mask(reason),
            )
        )


def _local_time() -> datetime:
    return datetime.now(UTC).astimezone()
