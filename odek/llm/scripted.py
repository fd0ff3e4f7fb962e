"""A model that answers by a script: the fake for tests of all that talks to a model."""

import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from inspect import isawaitable
from typing import Any

import msgspec
import trio

from odek.errors import ModelRejectedError
from odek.events import Usage
from odek.llm.model import ModelRequest, ModelResponse, OnModelEvent, ReasoningText, TextPiece, ToolCallBegun
from odek.messages import AssistantMessage, FunctionCall, ToolCall

__all__ = ["ScriptItem", "ScriptedModel", "calls", "says"]

ScriptItem = ModelResponse | Exception | Callable[[ModelRequest], ModelResponse | Awaitable[ModelResponse]]
"""A response is given, an exception raised; a callable makes the response of the request."""


NOT_REPORTED = Usage()


class ScriptedModel:
    """Implements ``Model``: each request takes the next item of the script.

    ``requests`` records what was asked. A request beyond the script is a
    ModelRejectedError, which nobody tries again.
    """

    def __init__(
        self, script: Iterable[ScriptItem] = (), *, name: str = "scripted", context_window: int | None = None
    ) -> None:
        self.name = name
        self.context_window = context_window
        self.requests: list[ModelRequest] = []
        self._script = deque(script)

    def extend(self, items: Iterable[ScriptItem]) -> None:
        """Add items to the script."""
        self._script.extend(items)

    @property
    def items_left(self) -> int:
        """Items that no request has taken yet."""
        return len(self._script)

    async def complete(self, request: ModelRequest, on_event: OnModelEvent) -> ModelResponse:
        """Play the next item; reasoning and text are reported word by word."""
        await trio.lowlevel.checkpoint()
        self.requests.append(request)
        if not self._script:
            raise ModelRejectedError("the script holds no further answer")
        item = self._script.popleft()
        if isinstance(item, Exception):
            raise item
        response = item if isinstance(item, ModelResponse) else item(request)
        if isawaitable(response):
            response = await response
        for word in _words(response.message.reasoning_content or ""):
            on_event(ReasoningText(word))
        for word in _words(response.message.content):
            on_event(TextPiece(word))
        offered = {tool.name for tool in request.tools}
        for call in response.message.tool_calls:
            if call.name in offered:
                on_event(ToolCallBegun(call.name))
        return response


def says(text: str, *, reasoning: str | None = None, usage: Usage = NOT_REPORTED) -> ModelResponse:
    """Return an answer of text."""
    return ModelResponse(AssistantMessage(text, reasoning_content=reasoning), usage, "stop")


def calls(
    *wanted: tuple[str, Mapping[str, Any] | str], text: str = "", usage: Usage = NOT_REPORTED
) -> ModelResponse:
    """Return an answer that asks for tools: each a name and arguments, as a mapping or as JSON text.

    The ids differ from those of every other answer made here.
    """
    made = tuple(
        ToolCall(f"call_{next(_call_numbers)}", FunctionCall(name, _as_json(arguments)))
        for name, arguments in wanted
    )
    return ModelResponse(AssistantMessage(text, tool_calls=made), usage, "tool_calls")


def _as_json(arguments: Mapping[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def _words(text: str) -> Sequence[str]:
    """Split after each space, so that joining gives the text back."""
    *words, last = text.split(" ")
    return [*(f"{word} " for word in words), *([last] if last else [])]


_call_numbers = itertools.count(1)
