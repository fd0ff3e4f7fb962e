"""One answer of the model within a turn: fitted to its window, and asked for again while it is empty."""

from collections.abc import Callable

import trio

from odek.agent import Agent
from odek.budget import Budget
from odek.context import Fitted, estimate_tools
from odek.errors import ContextOverflowError, ModelError, ModelRejectedError, ModelUnavailableError
from odek.events import (
    AnswerDelta,
    ContextTrimmed,
    ModelFinished,
    ModelRetrying,
    ModelStarted,
    Notice,
    ReasoningDelta,
    Usage,
)
from odek.llm.model import (
    ModelEvent,
    ModelRequest,
    ModelResponse,
    ReasoningText,
    Retrying,
    TextPiece,
    TextWasReasoning,
    ToolCallBegun,
)

__all__ = ["Completion"]

MOST_REQUESTS = 3
"""For one answer that is empty, or refused as too long. No measurement behind this."""


class Completion:
    """Asks ``agent.model`` about the transcript as it is; ``spend`` is told what each request took."""

    def __init__(self, agent: Agent, budget: Budget, spend: Callable[[Usage], None]) -> None:
        self.sent_tokens = 0
        """Estimated of the request that was answered last."""
        self._agent = agent
        self._budget = budget
        self._spend = spend
        self._specs = tuple(tool.spec() for tool in agent.tools.values())
        self._schema_tokens = estimate_tools(self._specs)
        self._pieces: list[str] = []

    @property
    def partial(self) -> str:
        """The text so far of an answer that is under way, or broke off; "" once it is taken."""
        return "".join(self._pieces)

    def take(self) -> None:
        """Say that the answer is in the transcript."""
        self._pieces.clear()

    async def complete(self) -> ModelResponse:
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
                self._agent.emit(Notice("the model gave an empty answer; asking again", "warning"))
        raise ModelUnavailableError(f"{self._agent.model.name} gave only empty answers")

    def _fitted(self, refusal: ContextOverflowError | None) -> Fitted:
        """Return what the next request carries: much less than the one of ``refusal``, if there was one.

        Raises:
            ContextOverflowError: what must stay is too much; tells what ``refusal`` said.
        """
        window = self._agent.model.context_window
        try:
            fitted = self._agent.fitting.fit(
                self._agent.transcript.messages,
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
            self._agent.emit(ContextTrimmed(groups, fitted.estimated_tokens, window or 0, shortened))
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
        self._pieces.clear()
        self._agent.emit(ModelStarted(self._budget.iterations, fitted.estimated_tokens))
        response = await self._agent.model.complete(request, self._on_model_event)
        self._spend(response.usage)
        seconds = trio.current_time() - started
        calls, self.sent_tokens = len(response.message.tool_calls), fitted.estimated_tokens
        self._agent.emit(ModelFinished(response.usage, response.finish_reason, calls, seconds))
        return response

    def _on_model_event(self, event: ModelEvent) -> None:
        match event:
            case TextPiece(text):
                self._pieces.append(text)
                self._agent.emit(AnswerDelta(text))
            case ReasoningText(text):
                self._agent.emit(ReasoningDelta(text))
            case TextWasReasoning():
                self._pieces.clear()  # it was shown as it came, and the answer will be told without it
            case ToolCallBegun(name):
                if name in self._agent.tools:
                    self._agent.tools[name].expect()
            case Retrying(attempt, wait_seconds, reason):
                self._agent.emit(ModelRetrying(attempt, wait_seconds, reason))
