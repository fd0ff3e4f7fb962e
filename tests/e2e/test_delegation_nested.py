"""Subagents that delegate themselves: sums, rights, taint and ends over the whole tree."""

import os
import signal
from pathlib import Path

import msgspec
import pytest
import trio

from tests.support.cli import Odek
from tests.support.delegations import delegate, is_child, marked_odek, said, start_delegating
from tests.support.http_request import RecordedRequest
from tests.support.model_server import (
    Answer,
    by_request,
    chunk,
    event_stream,
    gated,
    open_model_server,
    stall,
    text_answer,
    tool_call_answer,
    usage_chunk,
)
from tests.support.processes import Marked
from tests.support.waiting import HANG_SECONDS, wait_until

NESTED = {"ODEK_SUBAGENT_MAX_DEPTH": "2", "ODEK_MEMORY_ENABLED": "false"}


def priced(text: str) -> Answer:
    """Answer with text for 11 tokens and half a cent."""
    parts = [chunk({"content": text}), chunk(finish_reason="stop"), usage_chunk(10, 1, cost=0.005)]
    return event_stream(*parts)


def results(request: RecordedRequest) -> list[str]:
    """Return the results of tools in a request."""
    return [message["content"] for message in request.json["messages"] if message["role"] == "tool"]


def tree(parent: list[Answer], agents: dict[str, list[Answer]]) -> Answer:
    """Answer each agent in order: the parent, and every subagent by a word of its task."""

    def choose(request: RecordedRequest) -> Answer:
        messages = request.json["messages"]
        rounds: int = sum(message["role"] == "assistant" for message in messages)
        if not is_child(request):
            return parent[rounds]
        task = next(message["content"] for message in messages if message["role"] == "user")
        return next(answers[rounds] for word, answers in agents.items() if word in task)

    return by_request(choose)


async def test_tokens_and_money_of_the_whole_tree_add_up_at_the_top(tmp_path: Path) -> None:
    """Requests of every level count once, in the turn and in the session; the middle's line shows its sum."""
    script = tree(
        [delegate({"goal": "middle", "trust_level": "trusted"}), priced("all done")],
        {
            "middle": [delegate({"goal": "leaf one"}, {"goal": "leaf two"}), priced("collected")],
            "leaf": [priced("leaf!")],
        },
    )
    async with open_model_server(default=script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        done = await odek.run("run", "--json", "go", environment=NESTED)
    usage = msgspec.json.decode(odek.sessions()[0].read_bytes())["usage"]
    finished = next(event for event in done.events if event["type"] == "turn_finished")
    children = [event for event in done.events if event["type"] == "children_changed"][-1]

    assert done.status == 0, done.stderr
    assert len(server.requests) == 6
    assert usage == {"prompt_tokens": 2 * 7 + 4 * 10, "completion_tokens": 2 * 3 + 4, "cost_usd": 0.02}
    assert finished["usage"] == usage
    assert children["children"][0]["tokens"] == 10 + 3 * 11  # type: ignore[index]
    assert not (odek.home / "usage").exists() or not list((odek.home / "usage").iterdir())


async def test_a_tree_whose_middle_is_killed_is_counted_to_its_leaves(tmp_path: Path) -> None:
    """What the leaves had used is in the sum although nobody between them and the top could tell."""
    stuck = trio.Event()

    def leaf(request: RecordedRequest) -> Answer:
        if results(request):
            stuck.set()
            return stall()
        return tool_call_answer([("plan", {"steps": []})])

    script = tree(
        [delegate({"goal": "middle", "trust_level": "trusted"}), text_answer("noted")],
        {"middle": [delegate({"goal": "leaf"})], "leaf": [by_request(leaf)] * 2},
    )
    async with open_model_server(default=script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        async with odek.start("run", "go", environment=NESTED) as running:
            with trio.fail_after(HANG_SECONDS):
                await stuck.wait()
            listed = msgspec.json.decode((await odek.run("ps", "--json")).stdout)
            middle = next(process for process in listed if process["task"] == "middle")
            below = next(process for process in listed if process["task"] == "leaf")
            os.kill(middle["pid"], signal.SIGKILL)
            done = await running.wait()
    usage = msgspec.json.decode(odek.sessions()[0].read_bytes())["usage"]

    assert done.status == 0
    assert below["parent"] == middle["pid"]
    assert below["session"] == middle["session"] == odek.sessions()[0].stem
    assert usage == {"prompt_tokens": 4 * 7, "completion_tokens": 4 * 3}


async def test_rights_narrow_at_each_step(tmp_path: Path) -> None:
    """What the middle may not, no leaf may, whatever it is called; untrusted tasks hand on untrusted ones."""
    run_code = ("shell", {"command": "python3 -c 'print(40 + 2)'"})
    write_outside = ("write_file", {"path": str(tmp_path / "outside.txt"), "content": "x"})
    leaf: list[Answer] = [tool_call_answer([run_code, write_outside]), text_answer("tried")]
    hand_on = {"trust_level": "trusted", "max_risk": "blocked"}
    script = tree(
        [
            delegate(
                {"goal": "free middle", "trust_level": "trusted"},
                {"goal": "bounded middle", "trust_level": "trusted", "max_risk": "local_write"},
                {"goal": "untrusted middle"},
            ),
            text_answer("ok"),
        ],
        {
            "free middle": [delegate({"goal": "leaf of free", **hand_on}), text_answer("1")],
            "bounded middle": [delegate({"goal": "leaf of bounded", **hand_on}), text_answer("2")],
            "untrusted middle": [delegate({"goal": "leaf of untrusted", **hand_on}), text_answer("3")],
            "leaf of": leaf,
        },
    )
    async with open_model_server(default=script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        allow = {"ODEK_DANGEROUS_NON_INTERACTIVE": "allow"}
        done = await odek.run("run", "go", environment=NESTED | allow)
    last = {
        kind: request
        for request in server.requests
        for kind in ("free", "bounded", "untrusted")
        if f"leaf of {kind}" in said(request, "user")
    }

    assert done.status == 0, done.stderr
    assert [text.startswith("not run") for text in results(last["free"])] == [False, False]
    assert [text.startswith("not run") for text in results(last["bounded"])] == [True, True]
    assert [text.startswith("not run") for text in results(last["untrusted"])] == [True, True]
    assert "<untrusted_content" in said(last["untrusted"], "user")
    assert "<untrusted_content" not in said(last["bounded"], "user")


async def test_a_leaf_goes_no_deeper_and_its_taint_comes_up(tmp_path: Path) -> None:
    """It is told its depth and the setting; what it read outside makes the top's memory untrusted."""
    (tmp_path / "outside.txt").write_text("from elsewhere")
    reading = tool_call_answer([("read_file", {"path": str(tmp_path / "outside.txt")})])
    script = tree(
        [delegate({"goal": "middle"}), text_answer("ok")],
        {
            "middle": [delegate({"goal": "leaf"}), text_answer("1")],
            "leaf": [delegate({"goal": "deeper"}), reading, text_answer("did it myself")],
        },
    )
    async with open_model_server(default=script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await odek.run("run", "go", environment=NESTED)
        leaf = [request for request in server.requests if "leaf" in said(request, "user")][-1]
    session = msgspec.json.decode(odek.sessions()[0].read_bytes())

    assert "delegate_tasks" not in {tool["function"]["name"] for tool in leaf.json["tools"]}
    assert results(leaf)[0].startswith(
        "delegate_tasks cannot be used here: this is a subagent at depth 2, and subagent.max_depth is 2"
    )
    assert "read_outside_workspace" in session["taint_sources"]
    assert session["episode_untrusted"]


@pytest.mark.parametrize("way", ["warm", pytest.param("fresh", marks=pytest.mark.slow)])
async def test_a_killed_top_leaves_nothing_of_its_tree(way: str, tmp_path: Path) -> None:
    """Two seconds after kill -9, neither subagents of any level nor their templates and wardens live."""
    marked = Marked()
    marked.watch(tmp_path / "work")
    ready = trio.Event()
    script = tree(
        [gated(ready, delegate({"goal": "middle"}))],
        {"middle": [delegate({"goal": "leaf one"}, {"goal": "leaf two"})], "leaf": [stall()]},
    )
    async with open_model_server(default=script) as server:
        odek = marked_odek(tmp_path, server.base_url, marked)
        odek.environment |= NESTED
        async with start_delegating(odek, way, ready) as running:
            with trio.fail_after(HANG_SECONDS):
                await server.wait_requests(4)
            assert len(marked.living()) >= 7
            running.signal(signal.SIGKILL)
            await running.wait()
        await wait_until(lambda: not marked.living(), seconds=2)
