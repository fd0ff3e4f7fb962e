"""What every model promises to the loop, for the real client and for the scripted one."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
import trio

from odek.errors import ModelRejectedError, ModelUnavailableError
from odek.llm.model import (
    Model,
    ModelEvent,
    ModelRequest,
    ModelResponse,
    ReasoningText,
    TextPiece,
    ToolCallBegun,
    ToolSpec,
)
from odek.llm.scripted import ScriptedModel, ScriptItem, calls, says
from tests.support.endpoints import QUESTION, open_scripted_endpoint
from tests.support.model_server import Answer, cut, error_answer, stall, text_answer, tool_call_answer
from tests.support.waiting import open_stopwatch


class Play:
    """One behaviour, as a script of either kind."""

    def __init__(self, scripted: ScriptItem, served: Answer) -> None:
        self.scripted = scripted
        self.served = served


async def _wait_for_ever(_: object) -> ModelResponse:
    await trio.sleep_forever()
    raise AssertionError


TEXT = Play(says("Hello there", reasoning="hm hm"), text_answer("Hello there", reasoning="hm hm"))
CALLS = Play(
    calls(("shell", {"command": "ls"}), ("tree", "{}")),
    tool_call_answer([("shell", {"command": "ls"}), ("tree", "")]),
)
REFUSED = Play(ModelRejectedError("no"), error_answer(400, "no"))
DOWN = Play(ModelUnavailableError("down"), cut())
SILENT = Play(_wait_for_ever, stall())

OpenModel = Callable[[list[Play]], AbstractAsyncContextManager[Model]]


@asynccontextmanager
async def open_scripted(plays: list[Play]) -> AsyncGenerator[Model]:
    """Open the scripted model."""
    yield ScriptedModel([play.scripted for play in plays])


@asynccontextmanager
async def open_served(plays: list[Play]) -> AsyncGenerator[Model]:
    """Open the client of a loopback server."""
    async with open_scripted_endpoint([play.served for play in plays], max_retries=0) as (model, _):
        yield model


@pytest.fixture(params=[open_scripted, open_served], ids=["scripted", "served"])
def open_model(request: pytest.FixtureRequest) -> OpenModel:
    """Return the opener of one implementation."""
    opener: OpenModel = request.param
    return opener


async def test_the_events_add_up_to_the_answer(open_model: OpenModel) -> None:
    """Text and reasoning are reported in order, all before the answer is returned."""
    events: list[ModelEvent] = []
    async with open_model([TEXT]) as model:
        response = await model.complete(QUESTION, events.append)
    assert response.message.content == "Hello there"
    assert response.message.reasoning_content == "hm hm"
    assert response.finish_reason == "stop"
    assert "".join(event.text for event in events if isinstance(event, TextPiece)) == "Hello there"
    assert "".join(event.text for event in events if isinstance(event, ReasoningText)) == "hm hm"


async def test_a_call_of_a_tool_on_offer_is_announced(open_model: OpenModel) -> None:
    """Once, before the answer is returned; what is not on offer is not."""
    events: list[ModelEvent] = []
    request = ModelRequest(QUESTION.messages, (ToolSpec("shell", "", {"type": "object"}),))
    async with open_model([CALLS]) as model:
        await model.complete(request, events.append)
    assert events == [ToolCallBegun("shell")]


async def test_tool_calls_come_whole_and_apart(open_model: OpenModel) -> None:
    """Each call has an id of its own and arguments that are a JSON object."""
    async with open_model([CALLS, CALLS]) as model:
        response = await model.complete(QUESTION, lambda _: None)
    made = response.message.tool_calls
    assert [(call.name, call.arguments) for call in made] == [("shell", '{"command":"ls"}'), ("tree", "{}")]
    assert len({call.id for call in made}) == 2
    assert response.finish_reason == "tool_calls"


async def test_errors_are_those_of_the_protocol(open_model: OpenModel) -> None:
    """A refusal and a failure are told apart, and the model can be asked again after either."""
    async with open_model([REFUSED, DOWN, TEXT]) as model:
        with pytest.raises(ModelRejectedError):
            await model.complete(QUESTION, lambda _: None)
        with pytest.raises(ModelUnavailableError):
            await model.complete(QUESTION, lambda _: None)
        assert (await model.complete(QUESTION, lambda _: None)).message.content == "Hello there"


async def test_a_request_can_be_cancelled(open_model: OpenModel) -> None:
    """A cancel ends the request at once, and the next one is answered."""
    async with open_model([SILENT, TEXT]) as model, open_stopwatch() as watch:
        with trio.move_on_after(0.05) as turn:
            await model.complete(QUESTION, lambda _: None)
        assert turn.cancelled_caught
        assert (await model.complete(QUESTION, lambda _: None)).message.content == "Hello there"
        assert watch.seconds < 2


async def test_a_model_says_who_it_is(open_model: OpenModel) -> None:
    """Name and window are there before any request."""
    async with open_model([]) as model:
        assert model.name
        assert model.context_window is None
