"""The seam between the loop and a language model."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec

from odek.events import Usage
from odek.messages import AssistantMessage, Message

__all__ = [
    "FinishReason",
    "Model",
    "ModelEvent",
    "ModelRequest",
    "ModelResponse",
    "OnModelEvent",
    "ReasoningText",
    "Retrying",
    "TextPiece",
    "TextWasReasoning",
    "ToolCallBegun",
    "ToolSpec",
]

FinishReason = Literal["stop", "tool_calls", "length", "content_filter"]


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as the model sees it; ``parameters`` is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


class ModelRequest(msgspec.Struct, frozen=True):
    """One question to a model.

    ``max_tokens`` bounds the answer; None leaves it to the provider. ``thinking`` is
    "", "disabled", "enabled", "low", "medium" or "high"; "" means the profile's default.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    thinking: str = ""

    @property
    def thinks(self) -> bool:
        """Whether reasoning is asked for, and not only left to the profile's default."""
        return self.thinking not in ("", "disabled")


class TextPiece(msgspec.Struct, frozen=True):
    """A piece of the answer's text."""

    text: str


class ReasoningText(msgspec.Struct, frozen=True):
    """A piece of the model's reasoning."""

    text: str


class TextWasReasoning(msgspec.Struct, frozen=True):
    """All text reported so far turns out to be reasoning: only the end of that had a tag."""


class ToolCallBegun(msgspec.Struct, frozen=True):
    """The model has begun to write a call of a tool on offer. A hint: the call may never be whole."""

    name: str


class Retrying(msgspec.Struct, frozen=True):
    """The request failed before anything was shown, and goes out again after a wait."""

    attempt: int
    wait_seconds: float
    reason: str


ModelEvent = TextPiece | ReasoningText | TextWasReasoning | ToolCallBegun | Retrying
OnModelEvent = Callable[[ModelEvent], None]
"""Called synchronously from within the stream: it must not block."""


class ModelResponse(msgspec.Struct, frozen=True):
    """A whole answer. ``finish_reason`` "length" or "content_filter" says that it was cut."""

    message: AssistantMessage
    usage: Usage
    finish_reason: FinishReason


class Model(Protocol):
    """Answers a request. Real, offline and scripted models pass one contract test."""

    @property
    def name(self) -> str:
        """The model's name, as the session records it."""
        ...

    @property
    def context_window(self) -> int | None:
        """Tokens that a request and its answer may take together; None when unknown."""
        ...

    async def complete(self, request: ModelRequest, on_event: OnModelEvent) -> ModelResponse:
        """Ask once, report pieces as they arrive, return the whole answer.

        Raises:
            ModelUnavailableError: the provider could not be reached, or kept failing.
            ModelRejectedError: the provider refused the request.
            ContextOverflowError: the request does not fit the window.
        """
        ...
