"""Redirects, proxies, nobody there, and cancels at random: how the client gets to its endpoint."""

import random
from pathlib import Path

import pytest
import trio

from odek.config.settings import LlmSettings
from odek.errors import (
    ConfigError,
    ModelRejectedError,
    ModelUnavailableError,
)
from odek.llm.client import ChatModel, open_client
from odek.llm.endpoint import Endpoint
from odek.llm.post import post
from tests.support.endpoints import (
    QUESTION,
    failure_of,
    ignore,
    open_scripted_endpoint,
    refusing_port,
    text_of,
)
from tests.support.model_server import (
    Answer,
    by_request,
    chunk,
    drip,
    json_answer,
    open_model_server,
    stall,
    status,
    text_answer,
)
from tests.support.waiting import HANG_SECONDS


@pytest.mark.parametrize("code", [301, 302, 307, 308])
async def test_a_redirect_within_the_origin_is_followed(code: int) -> None:
    """The request goes there as it is: method, body and key."""
    async with open_scripted_endpoint([status(code, {"Location": "/v2/chat"}), text_answer("x")]) as (
        model,
        server,
    ):
        assert await text_of(model) == "x"
    first, second = server.requests
    assert (second.method, second.path, second.body) == ("POST", "/v2/chat", first.body)
    assert second.headers["authorization"] == first.headers["authorization"]


async def test_a_redirect_elsewhere_is_refused() -> None:
    """The key and the conversation do not go to another host or port."""
    async with open_model_server([text_answer("x")]) as other:
        away = status(307, {"Location": f"{other.base_url}/chat/completions"})
        async with open_scripted_endpoint([away]) as (model, _):
            error = await failure_of(model)
        assert other.requests == []
    assert isinstance(error, ModelRejectedError)
    assert f"redirects to {other.base_url}/chat/completions" in str(error)


@pytest.mark.parametrize(
    "location", ["http://[", "//evil.invalid/", "https://127.0.0.1/", "javascript:x\x1b"]
)
async def test_a_strange_redirect_is_refused(location: str) -> None:
    """Neither nonsense nor another scheme or host is followed, and the message is clean."""
    async with open_scripted_endpoint([status(307, {"Location": location})]) as (model, _):
        error = await failure_of(model)
    assert isinstance(error, ModelRejectedError)
    assert "redirects to " in str(error)
    assert str(error).isprintable()


async def test_redirects_in_a_circle_end() -> None:
    """A loop is told, not followed."""
    async with open_scripted_endpoint([status(307, {"Location": "/v1/chat/completions"})] * 9) as (model, _):
        assert "in a circle" in str(await failure_of(model))


async def test_nobody_there() -> None:
    """A refused connection and an unknown host say so in words."""
    settings = LlmSettings(max_retries=0)
    with refusing_port() as port:
        nobody = Endpoint(base_url=f"http://127.0.0.1:{port}/v1", model="m", settings=settings)
        async with open_client(nobody) as model:
            assert "Connection refused" in str(await failure_of(model))
    endpoint = Endpoint(base_url="http://no-such-host.invalid/v1", model="m", settings=settings)
    async with open_client(endpoint) as model:
        error = await failure_of(model)
    assert isinstance(error, ModelUnavailableError)
    assert str(error).startswith("cannot reach no-such-host.invalid: ")


async def test_a_proxy_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY is used, NO_PROXY is respected."""
    async with open_model_server([text_answer("by proxy")]) as proxy:
        monkeypatch.setenv("http_proxy", proxy.origin)
        monkeypatch.setenv("no_proxy", "direct.invalid")
        settings = LlmSettings(max_retries=0)
        endpoint = Endpoint(base_url="http://model.invalid/v1", model="m", settings=settings)
        async with open_client(endpoint) as model:
            assert await text_of(model) == "by proxy"
        assert proxy.requests[0].path == "http://model.invalid/v1/chat/completions"
        endpoint = Endpoint(base_url="http://direct.invalid/v1", model="m", settings=settings)
        async with open_client(endpoint) as model:
            assert str(await failure_of(model)).startswith("cannot reach direct.invalid")


async def test_a_server_on_this_machine_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy reaches it, and few think of the exception in NO_PROXY; for chat and for the rest."""
    for variable in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    async with open_scripted_endpoint([text_answer("direct"), json_answer({})]) as (model, server):
        assert await text_of(model) == "direct"
        with trio.fail_after(HANG_SECONDS):
            assert (await post(f"{server.base_url}/embeddings", b"{}", limit_bytes=100)).is_success


async def test_a_unix_socket_is_asked_without_a_proxy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is sent to a socket of this machine goes nowhere else, whatever the name in the address."""
    listening = trio.socket.socket(trio.socket.AF_UNIX)
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    await listening.bind("sock")
    listening.listen()

    async def answer() -> None:
        connection, _ = await listening.accept()
        async with trio.SocketStream(connection) as stream:
            await stream.receive_some()
            await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async with open_model_server([json_answer({"by": "proxy"})]) as proxy, trio.open_nursery() as nursery:
        monkeypatch.setenv("http_proxy", proxy.origin)
        nursery.start_soon(answer)
        with trio.fail_after(HANG_SECONDS):
            reply = await post("http://guard.invalid/detect", b"{}", limit_bytes=100, socket="sock")
        nursery.cancel_scope.cancel()
    listening.close()
    assert reply.body == b"{}"


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "gopher://127.0.0.1:1", "http://x:port"])
async def test_a_proxy_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    """A wrong proxy variable is a fault of the set-up, told in one line."""
    monkeypatch.setenv("http_proxy", proxy)
    async with open_client(Endpoint(base_url="http://model.invalid/v1", model="m")) as model:
        with pytest.raises(ConfigError, match="proxy named in the environment"):
            await text_of(model)


async def test_random_cancels_leave_nothing_behind() -> None:
    """Twenty tasks are cancelled at random moments, again and again; then the client still answers."""
    chance = random.Random(20)
    is_well = False

    def any_answer(_: object) -> Answer:
        if is_well:
            return text_answer("still here")
        slow = drip(chunk({"content": "x"}) * 20, 0.001)
        return chance.choice([text_answer("a b c d"), slow, stall(), stall(chunk({"content": "x"}))])

    cancelled = 0

    async def ask_and_cancel(model: ChatModel) -> None:
        nonlocal cancelled
        for _ in range(30):
            with trio.move_on_after(chance.expovariate(1 / 0.02)) as turn:
                await model.complete(QUESTION, ignore)
            cancelled += turn.cancelled_caught

    async with open_model_server(default=by_request(any_answer)) as server:
        async with open_client(Endpoint(base_url=server.base_url, model="m")) as model:
            async with trio.open_nursery() as nursery:
                for _ in range(20):
                    nursery.start_soon(ask_and_cancel, model)
            is_well = True
            with trio.fail_after(HANG_SECONDS):
                async with trio.open_nursery() as nursery:
                    for _ in range(30):
                        nursery.start_soon(text_of, model)
        with trio.fail_after(HANG_SECONDS):
            await server.wait_open_connections(0)
    assert cancelled > 40
