"""The loop: think, act, observe, until the model answers without asking for a tool.

It knows protocols only. What it is given decides which model answers, which tools
there are, who approves and who watches.
"""

import math
from datetime import UTC, datetime
from typing import Literal

import msgspec
import trio

from odek.agent import Agent
from odek.batch import Batch
from odek.budget import Budget
from odek.completion import Completion
from odek.errors import LimitReachedError, ModelError, StoreError
from odek.events import Notice, ReplyLedgerMismatch, TurnFinished, TurnStarted, Usage
from odek.ledger import Ledger
from odek.llm.endings import notice_of
from odek.llm.model import ModelResponse
from odek.memory.buffer import TurnNote
from odek.messages import CONTEXT_NAME, AssistantMessage, Message, SystemMessage, UserMessage

__all__ = ["TurnResult", "run_turn"]

Outcome = Literal["answered", "cancelled", "limit", "failed"]

SAVE_GRACE_SECONDS = 10.0
"""A save is finished even when its turn is cancelled, but a dead disk must not hold the exit for ever."""

CANCELLED_BY_USER = "cancelled by the user"


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
        self._completion = Completion(agent, self._budget, self._spend)
        self._unsaved_reported = False
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
            response = await self._completion.complete()
            message = response.message
            self._transcript.append(message)
            self._completion.take()
            if not message.tool_calls:
                self._note()
            await self._save()
            if not message.tool_calls:
                self._check_reply(response)
                return message.content
            results = await self._batch.run(message.tool_calls)
            self._transcript.append(*results)
            await self._save()

    def _spend(self, usage: Usage) -> None:
        self._budget.spend(usage)
        self._transcript.add_usage(usage)

    def _check_reply(self, response: ModelResponse) -> None:
        if notice := notice_of(response, self._agent.tools, self._completion.sent_tokens):
            self._emit(Notice(notice, "warning"))
        if self._ledger.denied_by(response.message.content):
            self._emit(ReplyLedgerMismatch(tuple(self._ledger.changes)))

    async def _close(self, reason: str) -> str:
        """Make an interrupted conversation valid again, save it, and return the text so far.

        Every unanswered call gets a result; an answer under way is kept with the reason
        behind it, so that the next message follows an assistant's.
        """
        partial = self._completion.partial
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
