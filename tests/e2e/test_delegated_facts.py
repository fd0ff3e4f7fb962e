"""Subagents, their parent, another agent and a person at a command line, who all store facts at once."""

from pathlib import Path

import pytest
import trio

from odek.delegation import MAX_TASKS
from tests.support.cli import Odek
from tests.support.delegations import delegate, is_child, said
from tests.support.http_request import RecordedRequest
from tests.support.model_server import Answer, by_request, open_model_server, text_answer, tool_call_answer
from tests.support.waiting import HANG_SECONDS

BATCH = 10
"""Facts that one answer of the model stores."""


def fact(writer: str, number: int) -> str:
    """Return a fact that is nobody else's; facts with other numbers are never merged."""
    return f"{writer}: number {number} is at {(number + 1) * 7919}"


def facts_of(writer: str, count: int) -> set[str]:
    """Return what a writer is to store."""
    return {fact(writer, number) for number in range(count)}


def stores(writer: str, numbers: range) -> Answer:
    """Answer with a call for each fact."""
    calls = [
        ("memory", {"action": "add", "target": "env", "content": fact(writer, number)}) for number in numbers
    ]
    return tool_call_answer(calls)


def storing(request: RecordedRequest, writer: str, count: int) -> Answer | None:
    """Answer with the next facts that a writer has not stored yet, None when it has stored all."""
    done = sum(message["role"] == "tool" for message in request.json["messages"])
    return stores(writer, range(done, min(done + BATCH, count))) if done < count else None


@pytest.mark.parametrize("each", [5, pytest.param(50, marks=pytest.mark.slow)])
async def test_whoever_stores_facts_at_the_same_time_all_are_there(each: int, tmp_path: Path) -> None:
    """None is lost, torn or stored twice."""
    children = [f"child{n}" for n in range(MAX_TASKS)]
    begun = trio.Event()

    def choose(request: RecordedRequest) -> Answer:
        if is_child(request):
            begun.set()
            writer = said(request, "user").partition("store as ")[2].split()[0]
            return storing(request, writer, each) or text_answer("stored")
        if "other agent" in said(request, "user"):
            return storing(request, "other", each) or text_answer("stored")
        own = storing(request, "parent", each)
        if own is not None:
            return own
        asked = any("delegate_tasks" in str(m.get("tool_calls")) for m in request.json["messages"])
        return (
            text_answer("done") if asked else delegate(*({"goal": f"store as {name}"} for name in children))
        )

    async with open_model_server(default=by_request(choose)) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        odek.environment |= {"ODEK_MEMORY_FACTS_LIMIT_ENV": "100000", "ODEK_MAX_ITERATIONS": "50"}

        async def type_facts() -> None:
            with trio.fail_after(HANG_SECONDS):
                await begun.wait()
            for number in range(each):
                added = await odek.run("memory", "facts", "add", "env", fact("person", number))
                assert added.status == 0, added.stderr

        async def run(task: str) -> None:
            done = await odek.run("run", task)
            assert done.status == 0, done.stderr

        async with trio.open_nursery() as nursery:
            nursery.start_soon(type_facts)
            nursery.start_soon(run, "store yours and have the rest stored")
            nursery.start_soon(run, "other agent, store yours")
    text = (odek.home / "memory" / "env.md").read_text()
    stored = text.split("\n§\n")

    assert sorted(stored) == sorted(
        set().union(*(facts_of(name, each) for name in [*children, "parent", "other", "person"]))
    )
