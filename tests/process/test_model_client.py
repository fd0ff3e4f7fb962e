"""The client of a chat-completions endpoint, against a real server on the loopback."""

import zlib
from typing import Any

import pytest
import trio

from odek.config.settings import PriceSettings
from odek.errors import (
    ContextOverflowError,
    ModelError,
    ModelRejectedError,
    ModelUnavailableError,
)
from odek.llm.client import ChatModel, open_client
from odek.llm.endpoint import Endpoint
from odek.llm.model import ModelEvent, Retrying, TextPiece
from odek.messages import AssistantMessage
from tests.support.endpoints import QUESTION, SOON, open_scripted_endpoint
from tests.support.model_server import (
    DONE,
    Answer,
    Exchange,
    call_delta,
    chunk,
    cut,
    drip,
    error_answer,
    event,
    event_stream,
    gated,
    json_answer,
    open_model_server,
    raw_bytes,
    stall,
    status,
    text_answer,
    tool_call_answer,
)
from tests.support.waiting import HANG_SECONDS, open_stopwatch


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


async def test_one_connection_serves_a_conversation() -> None:
    """Requests of a session use the same connection, and carry the key."""
    async with open_scripted_endpoint([tool_call_answer([("tree", "")]), text_answer("done")]) as (
        model,
        server,
    ):
        first = await model.complete(QUESTION, ignore)
        assert first.message.tool_calls[0].arguments == "{}"
        assert await text_of(model) == "done"
        assert server.connections == 1
    headers = server.requests[0].headers
    assert headers["authorization"] == "Bearer sk-test-0123456789"
    assert headers["user-agent"].startswith("odek/")
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.open_connections == 0


async def test_no_key_sends_none() -> None:
    """A local server is asked without authorization."""
    async with open_scripted_endpoint([text_answer("x")], api_key="") as (model, server):
        await text_of(model)
    assert "authorization" not in server.requests[0].headers


async def test_requests_run_side_by_side() -> None:
    """One client asks any number at once: all have arrived before the first is answered."""
    gate, texts = trio.Event(), list[str]()

    async def ask(model: ChatModel) -> None:
        texts.append(await text_of(model))

    async with (
        open_scripted_endpoint([gated(gate, text_answer("x"))] * 8) as (model, server),
        trio.open_nursery() as nursery,
    ):
        for _ in range(8):
            nursery.start_soon(ask, model)
        with trio.fail_after(HANG_SECONDS):
            await server.wait_requests(8)
        gate.set()

    assert texts == ["x"] * 8


async def test_the_cost_comes_from_the_prices() -> None:
    """An answer that reports no cost is priced."""
    async with open_model_server([text_answer("x", usage=(1_000_000, 500_000))]) as server:
        price = PriceSettings(input=1.0, output=4.0)
        endpoint = Endpoint(base_url=server.base_url, model="m", price=price)
        async with open_client(endpoint) as model:
            assert (await model.complete(QUESTION, ignore)).usage.cost_usd == pytest.approx(3.0)


async def test_limits_of_the_answer_come_from_the_settings() -> None:
    """A request that sets none takes the settings'."""
    async with open_scripted_endpoint([text_answer("x")], max_tokens=50, temperature=0.5) as (model, server):
        await text_of(model)
    body = server.requests[0].json
    assert (body["max_tokens"], body["temperature"]) == (50, 0.5)


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


async def test_silence_has_a_limit() -> None:
    """No headers: tried again. Silence inside an answer: over, with what came."""
    async with open_scripted_endpoint([stall(head=False), text_answer("well")], idle_timeout_seconds=1) as (
        model,
        _,
    ):
        assert await text_of(model) == "well"
    async with open_scripted_endpoint([stall(chunk({"content": "Hel"}))], idle_timeout_seconds=1) as (
        model,
        _,
    ):
        error = await failure_of(model)
    assert error.partial == "Hel"
    assert "silent for 1 s" in str(error)


@pytest.mark.parametrize(
    "data", [b": keep-alive\n\n" * 1000, chunk({"content": "x"}) * 1000], ids=["comments", "text"]
)
async def test_a_drip_is_ended_by_the_whole_limit(data: bytes) -> None:
    """Bytes that keep coming do not keep a request alive for ever."""
    async with open_scripted_endpoint([drip(data, 0.01)], request_timeout_seconds=0.5) as (model, server):
        async with open_stopwatch() as watch:
            assert isinstance(await failure_of(model), ModelUnavailableError)
            assert watch.seconds < 1.5
        with trio.fail_after(HANG_SECONDS):
            await server.wait_open_connections(0)


async def test_an_answer_is_over_when_it_says_so() -> None:
    """After [DONE], or a finish reason and some grace, an open connection is not waited for."""
    whole = (chunk({"content": "x"}), chunk(finish_reason="stop"))
    async with open_scripted_endpoint([stall(*whole, DONE)]) as (model, _), open_stopwatch() as watch:
        assert await text_of(model) == "x"
        assert watch.seconds < 2


async def test_a_cut_after_the_finish_is_no_fault() -> None:
    """A whole answer stays whole however the connection ends."""
    async with open_scripted_endpoint([cut(chunk({"content": "x"}), chunk(finish_reason="stop"))]) as (
        model,
        _,
    ):
        assert await text_of(model) == "x"


async def test_a_cancelled_request_closes_its_connection() -> None:
    """The server sees at once that nobody listens any more; the client goes on."""
    async with open_scripted_endpoint([stall(chunk({"content": "Hel"})), text_answer("next")]) as (
        model,
        server,
    ):
        with trio.fail_after(HANG_SECONDS), trio.CancelScope() as turn:
            await model.complete(QUESTION, lambda _: turn.cancel())
        assert turn.cancelled_caught
        with trio.fail_after(HANG_SECONDS):
            await server.wait_open_connections(0)
        assert await text_of(model) == "next"


async def test_a_body_that_never_ends_is_given_up() -> None:
    """Neither one endless line nor endless events are taken beyond the bound."""

    def flood(part: bytes) -> Answer:
        async def answer(exchange: Exchange) -> None:
            exchange.keep_alive = False
            await exchange.start_stream()
            while True:
                await exchange.send_part(part)

        return answer

    block = b"x" * 1024 * 1024
    for part in (block, b": " + block + b"\n\n"):
        async with open_scripted_endpoint([flood(part)]) as (model, _):
            error = await failure_of(model)
            assert isinstance(error, ModelRejectedError)
            assert "bytes" in str(error)


async def test_an_error_is_told_whatever_becomes_of_its_body() -> None:
    """A body without an end and one that is cut leave the status and what came."""

    def refuse(*parts: bytes) -> Answer:
        async def answer(exchange: Exchange) -> None:
            exchange.keep_alive = False
            await exchange.send_head(401, {"Transfer-Encoding": "chunked"})
            for part in parts:
                await exchange.send_part(part)

        return answer

    for parts in ((b"no such key\n", *[b"x" * 65_536] * 20), (b"no such key\n",)):
        async with open_scripted_endpoint([refuse(*parts)]) as (model, _):
            error = await failure_of(model)
        assert isinstance(error, ModelRejectedError)
        assert "answered 401: no such key" in str(error)


async def test_a_compressed_bomb_is_given_up() -> None:
    """What unpacks beyond the bound is refused, and other compressions are not unpacked at all."""
    packer = zlib.compressobj(wbits=31)
    bomb = packer.compress(bytes(100 * 1024 * 1024)) + packer.flush()
    async with open_scripted_endpoint([status(200, {"Content-Encoding": "gzip"}, bomb)]) as (model, _):
        assert "bytes" in str(await failure_of(model))
    async with open_scripted_endpoint([status(200, {"Content-Encoding": "gzip, gzip"}, bomb)]) as (model, _):
        assert "compressed by 'gzip, gzip'" in str(await failure_of(model))


async def test_a_compressed_answer_is_read() -> None:
    """A proxy that compresses unasked does no harm."""
    packer = zlib.compressobj(wbits=31)
    body = packer.compress(chunk({"content": "x"}) + DONE) + packer.flush()
    async with open_scripted_endpoint([status(200, {"Content-Encoding": "gzip"}, body)]) as (model, _):
        assert await text_of(model) == "x"


async def test_a_page_in_place_of_an_answer() -> None:
    """A login page with status 200 says what is wrong with the address."""
    page = status(200, {"Content-Type": "text/html"}, "<html><title>Sign in</title></html>")
    async with open_scripted_endpoint([page]) as (model, server):
        error = await failure_of(model)
    assert isinstance(error, ModelRejectedError)
    assert '"Sign in"' in str(error)
    assert f"{server.base_url}/chat/completions" in str(error)


async def test_chunks_that_arrive_together_are_told_together() -> None:
    """Thousands of small chunks that one read brings are few events, with the whole text in them."""
    words = [f"word{number} " for number in range(5_000)]
    stream = b"".join(
        b"%x\r\n%s\r\n" % (len(part), part)
        for part in [*(chunk({"content": word}) for word in words), chunk(finish_reason="stop"), DONE, b""]
    )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    events: list[ModelEvent] = []
    async with open_scripted_endpoint([raw_bytes(head + stream + b"\r\n")]) as (model, _):
        response = await model.complete(QUESTION, events.append)
    assert response.message.content == "".join(words)
    assert "".join(event.text for event in events if isinstance(event, TextPiece)) == "".join(words)
    assert len(events) < len(words) / 10
