"""What subagents used is counted once, wherever the process that counts it is killed."""

import json
import random
import signal
import sys
from pathlib import Path

import msgspec
import pytest
import trio

from tests.support.cli import Odek
from tests.support.delegations import delegate, is_child, said
from tests.support.http_request import RecordedRequest
from tests.support.model_server import (
    Answer,
    by_request,
    open_model_server,
    text_answer,
    tool_call_answer,
)
from tests.support.usage_owner import CHILDREN, OWN
from tests.support.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[2]

ONE = 7 + 3
"""Tokens of each request."""

NO_MEMORY = {"ODEK_MEMORY_ENABLED": "false"}  # what it asks the model is another matter


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
async def test_killed_in_taking_over_nothing_is_lost_or_counted_twice(step: int, tmp_path: Path) -> None:
    """Before operations on files: in taking over, and in doing so again after a crash."""
    program = [sys.executable, "-m", "tests.support.usage_owner", str(tmp_path), str(step)]
    with trio.fail_after(HANG_SECONDS):
        done = await trio.run_process(program, capture_stdout=True, cwd=ROOT)
    runs = [json.loads(line) for line in done.stdout.splitlines()]

    assert [run for run in runs if run["tokens"] != [OWN + CHILDREN] * 2] == []
    assert [run for run in runs if run["left"]] == []
    assert len({run["killed"].partition(" ")[0] for run in runs}) >= 4, "the moments should differ"
    assert len([run for run in runs if not run["killed"]]) == 2


async def one_life(folder: Path, dice: random.Random) -> None:
    """Kill a run that delegates at some moment, go on with its session, and check the sum."""
    folder.mkdir()  # noqa: ASYNC240 - a test may block
    work = [tool_call_answer([("plan", {"steps": []})]), text_answer("done")]

    def choose(request: RecordedRequest) -> Answer:
        rounds: int = sum(message["role"] == "assistant" for message in request.json["messages"])
        if is_child(request):
            return work[rounds]
        return [delegate({"goal": "one"}, {"goal": "two"}), *[text_answer("all done")] * 3][rounds]

    async with open_model_server(default=by_request(choose)) as server:
        odek = Odek(folder, base_url=server.base_url)
        odek.environment |= NO_MEMORY
        async with odek.start("run", "go") as running:
            with trio.move_on_after(20):
                await server.wait_requests(1 + dice.randrange(5))
            await trio.sleep(dice.uniform(0, 0.15))
            running.signal(signal.SIGKILL)
            await running.wait()
        if not odek.sessions():
            return
        await odek.run("continue", "go on")
        asked = list(server.requests)
    usage = msgspec.json.decode(odek.sessions()[0].read_bytes())["usage"]
    counted = usage["prompt_tokens"] + usage["completion_tokens"]
    # Of each agent that was killed, the request under way may be missing; no other, and none is twice.
    answered = {said(request, "user"): 0 for request in asked}
    assert ONE * (len(asked) - len(answered)) <= counted <= ONE * len(asked)
    assert not list((odek.home / "usage").rglob("*.json"))


async def test_killed_at_random_moments_the_sum_is_right(tmp_path: Path) -> None:
    """The parent and its subagents at once, by the real command."""
    async with trio.open_nursery() as nursery:
        for seed in range(2):
            nursery.start_soon(one_life, tmp_path / str(seed), random.Random(seed))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 12))
async def test_killed_at_60_random_moments_the_sum_is_right(first: int, tmp_path: Path) -> None:
    """The long form of the same."""
    for seed in range(first, first + 12):
        await one_life(tmp_path / str(seed), random.Random(seed))
