"""Clients of the loopback model server, with limits fit for tests; and an address where nobody is."""

import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
import trio

from odek.config.settings import LlmSettings
from odek.errors import ModelError
from odek.llm.client import ChatModel, open_client
from odek.llm.endpoint import Endpoint
from odek.llm.model import ModelEvent, ModelRequest, ToolSpec
from odek.messages import UserMessage
from tests.support.model_server import Answer, ModelServer, open_model_server
from tests.support.waiting import HANG_SECONDS

__all__ = ["QUESTION", "SOON", "failure_of", "ignore", "open_scripted_endpoint", "refusing_port", "text_of"]

QUESTION = ModelRequest(
    (UserMessage("list the files"),),
    tools=(
        ToolSpec("shell", "Run a command.", {"type": "object"}),
        ToolSpec("tree", "Show.", {"type": "object"}),
    ),
)

SOON = {"retry-after-ms": "1"}
"""Headers of an error that asks to be tried again at once, so that a test need not wait."""


def ignore(_: ModelEvent) -> None:
    """Take an event and do nothing."""


async def text_of(model: ChatModel) -> str:
    """Ask the usual question and return the text of the answer."""
    return (await model.complete(QUESTION, ignore)).message.content


async def failure_of(model: ChatModel, events: list[ModelEvent] | None = None) -> ModelError:
    """Ask the usual question and return the error."""
    with pytest.raises(ModelError) as caught, trio.fail_after(HANG_SECONDS):
        await model.complete(QUESTION, ignore if events is None else events.append)
    return caught.value


@contextmanager
def refusing_port() -> Generator[int]:
    """Yield a port of the loopback where nobody listens, nor can begin to, in the block."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])


@asynccontextmanager
async def open_scripted_endpoint(
    script: list[Answer],
    *,
    api_key: str = "sk-test-0123456789",
    model_name: str = "test-model",
    **settings: Any,
) -> AsyncGenerator[tuple[ChatModel, ModelServer]]:
    """Yield a client and the server that it asks; ``settings`` are those of ``LlmSettings``."""
    async with open_model_server(script) as server:
        endpoint = Endpoint(
            base_url=server.base_url, model=model_name, api_key=api_key, settings=LlmSettings(**settings)
        )
        async with open_client(endpoint) as model:
            yield model, server
