"""Which faults of an endpoint are tried again, how often, and what is told when nothing helps."""

from typing import Any

import pytest

from odek.errors import (
    ContextOverflowError,
    ModelRejectedError,
    ModelUnavailableError,
)
from odek.llm.model import ModelEvent, Retrying, TextPiece
from odek.messages import AssistantMessage
from tests.support.endpoints import QUESTION, SOON, failure_of, open_scripted_endpoint
from tests.support.model_server import (
    Answer,
    call_delta,
    chunk,
    cut,
    error_answer,
    event,
    event_stream,
    json_answer,
    raw_bytes,
    status,
    text_answer,
)


@pytest.mark.parametrize(
    "fault",
    [
        error_answer(429, "slow down", headers=SOON),
        error_answer(503, "overloaded", headers=SOON),
        error_answer(529, "overloaded", headers=SOON),
        cut(),
        cut(b": keep-alive\n\n", chunk({"role": "assistant", "content": ""})),
        raw_bytes(b""),
        raw_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\ndata: "),
        raw_bytes(b"nonsense\r\n\r\n"),
        status(200, {}, b""),
        event_stream(),
        event_stream(event({"error": {"message": "overloaded", "code": 503}})),
        json_answer({"error": {"message": "overloaded", "type": "server_error"}}),
    ],
    ids=[
        "429",
        "503",
        "529",
        "reset",
        "reset before content",
        "closed",
        "short body",
        "no HTTP",
        "empty 200",
        "only DONE",
        "error in the stream",
        "error as JSON",
    ],
)
async def test_a_fault_before_any_content_is_tried_again(fault: Answer) -> None:
    """The second try answers, and the person hears of the first."""
    events: list[ModelEvent] = []
    async with open_scripted_endpoint([fault, text_answer("well")]) as (model, server):
        response = await model.complete(QUESTION, events.append)
    assert response.message.content == "well"
    assert len(server.requests) == 2
    assert isinstance(events[0], Retrying)
    assert events[0].attempt == 1
    assert events[0].reason
    assert events[1:] == [TextPiece("well")]


def broken_off(end: str, content: dict[str, Any]) -> Answer:
    """Return an answer that begins with ``content`` and ends in one of three ways."""
    answers = {
        "reset": cut(chunk(content)),
        "close": event_stream(chunk(content), done=False),
        "error": event_stream(chunk(content), event({"error": {"message": "overloaded", "code": 503}})),
    }
    return answers[end]


@pytest.mark.parametrize("end", ["reset", "close", "error"])
async def test_after_the_first_text_nothing_is_tried_again(end: str) -> None:
    """An answer that broke off is an error with what had arrived; a person has read it already."""
    script = [broken_off(end, {"content": "Hello"}), text_answer("never")]
    async with open_scripted_endpoint(script) as (model, server):
        error = await failure_of(model)
        assert isinstance(error, ModelUnavailableError)
        assert error.partial == "Hello"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        (raw_bytes(b""), "without"),
        (raw_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n"), "without"),
        (raw_bytes(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndata"), "without"),
        (
            raw_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + chunk({"content": "Hello"})),
            "inside",
        ),
    ],
    ids=["nothing", "no body", "half a chunk", "half an answer"],
)
async def test_a_server_that_closes_too_early_is_told_in_plain_words(answer: Answer, place: str) -> None:
    """Nobody has to know HTTP to read that a server died."""
    async with open_scripted_endpoint([answer], max_retries=0) as (model, server):
        assert str(await failure_of(model)) == (
            f"127.0.0.1:{server.port} ended the connection {place} an answer"
        )


@pytest.mark.parametrize(
    "content",
    [
        {"reasoning_content": "hm"},
        {"content": "<think>hm"},
        {"tool_calls": [call_delta(0, "shell", '{"comm', "a")]},
        {"tool_calls": [call_delta(0, "shell", '{"command":"ls"}', "a")]},
    ],
    ids=["reasoning", "tagged reasoning", "half a call", "a call"],
)
@pytest.mark.parametrize("end", ["reset", "close", "error"])
async def test_what_broke_off_before_its_text_is_tried_again(content: dict[str, Any], end: str) -> None:
    """Long reasoning is where connections break; nothing of it, or of a call, goes into the second answer."""
    events: list[ModelEvent] = []
    async with open_scripted_endpoint([broken_off(end, content), text_answer("well")]) as (model, server):
        response = await model.complete(QUESTION, events.append)
    assert response.message == AssistantMessage("well")
    assert len(server.requests) == 2
    assert sum(isinstance(seen, Retrying) for seen in events) == 1


async def test_retries_end() -> None:
    """After the last try the error says what happened and how often."""
    async with open_scripted_endpoint([error_answer(500, "boom", headers=SOON)] * 3, max_retries=2) as (
        model,
        server,
    ):
        error = await failure_of(model)
    assert isinstance(error, ModelUnavailableError)
    assert str(error) == f"127.0.0.1:{server.port} answered 500: boom (tried 3 times)"
    assert len(server.requests) == 3


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
async def test_a_refusal_is_asked_once(code: int) -> None:
    """The message carries the provider's words, without the key."""
    refusal = error_answer(code, "no use with sk-test-0123456789")
    async with open_scripted_endpoint([refusal]) as (model, server):
        error = await failure_of(model)
    assert isinstance(error, ModelRejectedError)
    assert "no use with ***" in str(error)
    assert len(server.requests) == 1


async def test_an_overflow_has_its_own_error() -> None:
    """The loop can tell that a shorter request may do."""
    async with open_scripted_endpoint(
        [error_answer(400, "too long", error_code="context_length_exceeded")]
    ) as (model, _):
        assert isinstance(await failure_of(model), ContextOverflowError)


async def test_a_long_retry_after_is_not_waited_for() -> None:
    """The error says when to come back."""
    async with open_scripted_endpoint([status(429, {"Retry-After": "3600"}, "slow down")]) as (model, _):
        error = await failure_of(model)
    assert isinstance(error, ModelUnavailableError)
    assert "slow down; it asks to wait, try again after " in str(error)


async def test_a_wait_beyond_the_limit_of_the_request_is_not_begun() -> None:
    """Nobody waits for a try that could not be made any more."""
    slow = status(429, {"Retry-After": "30"}, "slow down")
    async with open_scripted_endpoint([slow], request_timeout_seconds=20) as (model, _):
        assert "slow down" in str(await failure_of(model))
