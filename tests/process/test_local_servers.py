"""Finding model servers on this machine."""

import pytest

from odek.llm.local_servers import LocalServer, find_local_servers
from tests.support.endpoints import refusing_port
from tests.support.model_server import Answer, json_answer, open_model_server, raw_bytes, stall, status
from tests.support.waiting import HANG_SECONDS, open_stopwatch

MODELS = {"object": "list", "data": [{"id": "llama3.2", "object": "model"}, {"id": "qwen3:8b\x1b[2J"}]}


async def test_servers_and_their_models_are_found() -> None:
    """What answers is named with its address and models, safe for a terminal; a closed port is not."""
    async with (
        open_model_server([json_answer(MODELS)]) as one,
        open_model_server([json_answer(MODELS)]) as two,
    ):
        with refusing_port() as nobody:
            found = await find_local_servers(
                {two.port: "Two", nobody: "None", one.port: "One"}, timeout_seconds=HANG_SECONDS
            )
    models = ("llama3.2", r"qwen3:8b\x1b[2J")
    assert found == [LocalServer("Two", two.base_url, models), LocalServer("One", one.base_url, models)]
    assert one.requests[0].path == "/v1/models"


async def test_a_silent_server_costs_the_time_limit_and_no_more() -> None:
    """One that accepts and never answers does not hold up the others."""
    async with (
        open_model_server([stall(head=False)]) as silent,
        open_model_server([json_answer(MODELS)]) as well,
    ):
        async with open_stopwatch() as watch:
            found = await find_local_servers({silent.port: "Silent", well.port: "Well"}, timeout_seconds=0.5)
            assert watch.seconds < 2
        await silent.wait_open_connections(0)
    assert [server.name for server in found] == ["Well"]


@pytest.mark.parametrize(
    "answer",
    [
        status(404, {}, "not here"),
        status(200, {}, "<html>"),
        json_answer({"data": "x"}),
        json_answer([]),
        raw_bytes(b""),
        raw_bytes(b"SSH-2.0-OpenSSH\r\n"),
        raw_bytes(b"\xff" * 100_000),
        status(200, {}, b"[" * 100_000),
    ],
)
async def test_what_is_no_model_server_is_left_out(answer: Answer) -> None:
    """Other programs on the well-known ports are passed over without a word."""
    async with open_model_server([answer]) as server:
        assert await find_local_servers({server.port: "Other"}, timeout_seconds=HANG_SECONDS) == []
