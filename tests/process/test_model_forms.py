"""Endpoints that refuse a part of the shape of a request, against a real server on the loopback."""

import pytest

from odek.errors import ModelRejectedError
from odek.llm.model import ModelEvent, ModelRequest
from odek.messages import AssistantMessage, FunctionCall, ToolCall, ToolMessage, UserMessage
from tests.support.endpoints import QUESTION, open_scripted_endpoint
from tests.support.model_server import Answer, error_answer, event, event_stream, status, text_answer


def ignore(_: ModelEvent) -> None:
    """Take an event and do nothing."""


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
