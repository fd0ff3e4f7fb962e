"""The client of a chat-completions endpoint, against a real server on the loopback."""

import zlib

import pytest
import trio

from odek.config.settings import PriceSettings
from odek.errors import (
    ModelRejectedError,
    ModelUnavailableError,
)
from odek.llm.client import ChatModel, open_client
from odek.llm.endpoint import Endpoint
from odek.llm.model import ModelEvent, TextPiece
from tests.support.endpoints import QUESTION, failure_of, ignore, open_scripted_endpoint, text_of
from tests.support.model_server import (
    DONE,
    Answer,
    Exchange,
    chunk,
    cut,
    drip,
    gated,
    open_model_server,
    raw_bytes,
    stall,
    status,
    text_answer,
    tool_call_answer,
)
from tests.support.waiting import HANG_SECONDS, open_stopwatch


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
