"""One question to a model, without tools: how the memory has texts judged and condensed."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio

from odek.errors import ModelError, ModelUnavailableError
from odek.llm.model import Model, ModelEvent, ModelRequest
from odek.messages import SystemMessage, UserMessage

__all__ = ["ANSWER_SECONDS", "Ask", "ask_with"]

ANSWER_SECONDS = 120.0
"""For one judgement by a slow local model, and one record of a session; leaving waits for the drain alone."""

Ask: TypeAlias = Callable[[str, str], Awaitable[str]]
"""Instructions and a text → the text of the answer. Raises ModelError."""


def ask_with(model: Model, *, timeout_seconds: float) -> Ask:
    """Return a function that asks ``model`` once, and waits no longer than ``timeout_seconds``.

    An answer that was cut short is a ModelError: half a judgement is none.
    """

    async def ask(instructions: str, text: str) -> str:
        request = ModelRequest((SystemMessage(instructions), UserMessage(text)))
        with trio.move_on_after(timeout_seconds):
            response = await model.complete(request, _ignore)
            if response.finish_reason in {"length", "content_filter"}:
                raise ModelError(f"{model.name} did not finish its answer", partial=response.message.content)
            return response.message.content.strip()
        raise ModelUnavailableError(f"{model.name} gave no answer within {timeout_seconds:g} s")

    return ask


def _ignore(event: ModelEvent) -> None:
    """Nobody watches these answers arrive."""
