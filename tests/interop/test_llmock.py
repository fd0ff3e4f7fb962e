"""The client against llmock, a mock of the providers' APIs that others wrote."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest

from odek.config.settings import LlmSettings
from odek.errors import ContextOverflowError, ModelError, ModelUnavailableError
from odek.llm.client import ChatModel, open_client
from odek.llm.endpoint import Endpoint
from odek.llm.model import ModelEvent, ModelRequest, Retrying, TextPiece, ToolSpec
from odek.messages import ToolMessage, UserMessage
from tests.support.interop import interop_python, open_server

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("interop")]

QUESTION = ModelRequest((UserMessage("What is the weather in Vienna?"),))
WEATHER = ToolSpec(
    "weather",
    "Look up the weather.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


@asynccontextmanager
async def open_llmock(*options: str, max_retries: int = 0) -> AsyncGenerator[ChatModel]:
    """Yield a client of a fresh llmock with these options."""
    argv = [interop_python("llmock"), "-m", "llmock.cli", "serve", "--port", "0", *options]
    with open_server(argv) as origin:
        settings = LlmSettings(max_retries=max_retries)
        endpoint = Endpoint(base_url=f"{origin}/v1", model="gpt-4o", api_key="sk-mock", settings=settings)
        async with open_client(endpoint) as model:
            yield model


async def failure_of(model: ChatModel) -> ModelError:
    """Ask once and return the error."""
    with pytest.raises(ModelError) as caught:
        await model.complete(QUESTION, lambda _: None)
    return caught.value


async def test_a_conversation_with_a_tool() -> None:
    """Text streams with usage; a tool offered is called by deltas, and its result is answered."""
    events: list[ModelEvent] = []
    async with open_llmock() as model:
        text = await model.complete(QUESTION, events.append)
        asked = msgspec.structs.replace(QUESTION, tools=(WEATHER,))
        called = await model.complete(asked, lambda _: None)
        (call,) = called.message.tool_calls
        results = (*asked.messages, called.message, ToolMessage("sunny", call.id))
        answered = await model.complete(msgspec.structs.replace(asked, messages=results), lambda _: None)
    assert text.message.content == "".join(event.text for event in events if isinstance(event, TextPiece))
    assert text.message.content
    assert text.usage.prompt_tokens
    assert text.usage.completion_tokens
    assert (call.name, called.finish_reason) == ("weather", "tool_calls")
    assert set(msgspec.json.decode(call.arguments)) == {"city"}
    assert answered.message.content
    assert not answered.message.tool_calls


async def test_injected_errors_are_ridden_out() -> None:
    """Some of the requests fail with 429 or 503, and all questions are answered."""
    events: list[ModelEvent] = []
    rates = ("--error-rate", "429=0.2", "--error-rate", "503=0.2")
    async with open_llmock(*rates, max_retries=12) as model:
        for _ in range(3):
            assert (await model.complete(QUESTION, events.append)).message.content
    assert all(event.wait_seconds <= 60 for event in events if isinstance(event, Retrying))


async def test_a_provider_that_is_down_is_reported() -> None:
    """When every request fails, the error says so in the provider's words."""
    async with open_llmock("--error-rate", "503=1") as model:
        error = await failure_of(model)
    assert isinstance(error, ModelUnavailableError)
    assert "answered 503: " in str(error)


@pytest.mark.parametrize("fault", ["truncate", "disconnect"])
async def test_a_broken_stream_is_no_answer(fault: str) -> None:
    """A stream that ends early is an error with what had arrived, never a short success."""
    async with open_llmock("--stream-fault", f"{fault}=1") as model:
        error = await failure_of(model)
    assert isinstance(error, ModelUnavailableError)


async def test_a_prompt_beyond_the_window() -> None:
    """The mock's context error is recognised as one."""
    async with open_llmock("--context-window", "50") as model:
        long = msgspec.structs.replace(QUESTION, messages=(UserMessage("word " * 500),))
        with pytest.raises(ContextOverflowError):
            await model.complete(long, lambda _: None)
