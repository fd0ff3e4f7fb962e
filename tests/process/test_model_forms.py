"""Endpoints that refuse a part of the shape of a request, against a real server on the loopback."""

import msgspec
import pytest

from odek.errors import ModelRejectedError, ModelUnavailableError
from odek.llm.model import ModelEvent, ModelRequest, ReasoningText, TextWasReasoning
from odek.messages import AssistantMessage, FunctionCall, ToolCall, ToolMessage, UserMessage
from tests.support.endpoints import QUESTION, ignore, open_scripted_endpoint
from tests.support.model_server import (
    Answer,
    chunk,
    cut,
    error_answer,
    event,
    event_stream,
    status,
    text_answer,
)


async def test_a_server_without_stream_options_is_asked_without() -> None:
    """The refusal costs one request of the first answer, and none of the next."""
    refusal = error_answer(400, "Unrecognized request argument supplied: stream_options")
    async with open_scripted_endpoint([refusal, text_answer("a"), text_answer("b")]) as (model, server):
        assert [(await model.complete(QUESTION, ignore)).message.content for _ in range(2)] == ["a", "b"]
    assert ["stream_options" in request.json for request in server.requests] == [True, False, False]


CALLED = ModelRequest(
    (
        UserMessage("what is the time?"),
        AssistantMessage("", (ToolCall("c1", FunctionCall("shell", "{}")),)),
        ToolMessage("noon", "c1"),
    )
)


@pytest.mark.parametrize(
    "refusal",
    [
        error_answer(400, "Invalid value for 'content': expected a string, got null."),
        error_answer(400, "invalid message content type: <nil>"),
        error_answer(500, 'can only concatenate str (not "NoneType") to str'),
        status(422, body=b'{"detail": [{"loc": ["body", "messages", 1, "content"], "msg": "not a string"}]}'),
        event_stream(event({"error": {"message": "Invalid 'content': must be a string"}}), done=False),
    ],
)
async def test_a_server_that_refuses_null_beside_calls_is_sent_an_empty_text(refusal: Answer) -> None:
    """The refusal costs one request of the session, in whatever words it comes."""
    async with open_scripted_endpoint([refusal, text_answer("a"), text_answer("b")]) as (model, server):
        answers = [(await model.complete(CALLED, ignore)).message.content for _ in range(2)]
    assert answers == ["a", "b"]
    assert [request.json["messages"][1]["content"] for request in server.requests] == [None, "", ""]


async def test_a_form_that_is_refused_too_is_not_kept() -> None:
    """The person is told what the server said, and the next request begins with the usual form."""
    refusal = error_answer(400, "the content management policy forbids this")
    async with open_scripted_endpoint([refusal, refusal, text_answer("a")]) as (model, server):
        with pytest.raises(ModelRejectedError, match="policy forbids"):
            await model.complete(CALLED, ignore)
        await model.complete(CALLED, ignore)
    assert [request.json["messages"][1]["content"] for request in server.requests] == [None, "", None]


async def test_reasoning_without_a_beginning_is_expected_of_the_next_answer() -> None:
    """The first answer shows it until its end comes; the next is told as what it is, as long as it does."""
    thinking, plain = "so it is 4\n</think>\nFour.", "Four."
    async with open_scripted_endpoint([text_answer(text) for text in (thinking, thinking, plain, plain)]) as (
        model,
        _,
    ):
        told: list[list[ModelEvent]] = []
        for _answer in range(4):
            told.append([])
            assert (await model.complete(QUESTION, told[-1].append)).message.content == "Four."
    assert [TextWasReasoning() in events for events in told] == [True, False, False, False]
    assert [any(isinstance(event, ReasoningText) for event in events) for events in told[1:]] == [
        True,
        True,
        False,
    ]


async def test_what_was_shown_is_not_asked_for_again() -> None:
    """An answer that breaks off behind its reasoning, once that was shown as text, is an error."""
    broken = cut(chunk({"content": "so it is 4\n</think>\nF"}))
    async with open_scripted_endpoint([broken]) as (model, server):
        with pytest.raises(ModelUnavailableError):
            await model.complete(QUESTION, ignore)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("model_name", "refusal", "types"),
    [
        (
            "claude-sonnet-4-5",
            (
                '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
                '"output_config.effort" to control thinking behavior.'
            ),
            ["enabled", "adaptive", "adaptive"],
        ),
        (
            "claude-opus-4-6",
            "adaptive thinking is not supported on this model",
            ["adaptive", "enabled", "enabled"],
        ),
    ],
)
async def test_a_model_that_refuses_one_form_of_thinking_is_asked_in_the_other(
    model_name: str, refusal: str, types: list[str]
) -> None:
    """A budget and the adaptive form stand in for each other, and what was taken is kept."""
    script = [error_answer(400, refusal), text_answer("a"), text_answer("b")]
    question = msgspec.structs.replace(QUESTION, thinking="high")
    async with open_scripted_endpoint(script, model_name=model_name) as (model, server):
        for _ in range(2):
            await model.complete(question, ignore)
    assert [request.json["thinking"]["type"] for request in server.requests] == types
