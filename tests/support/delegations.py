"""Runs of the real command that delegate: what the model says to whom, and the way subagents start."""

import os
import re
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import trio

from subagent.warden import descendants
from tests.support.cli import Odek, Running
from tests.support.http_request import RecordedRequest
from tests.support.model_server import Answer, by_request, tool_call_answer
from tests.support.processes import Marked
from tests.support.waiting import wait_until

__all__ = [
    "WAYS",
    "answers",
    "delegate",
    "is_child",
    "kill_template",
    "marked_odek",
    "said",
    "start_delegating",
]

WAYS = ("warm", "fresh")


def delegate(*tasks: dict[str, Any]) -> Answer:
    """Answer with a call that hands out ``tasks``."""
    return tool_call_answer([("delegate_tasks", {"tasks": list(tasks)})])


def said(request: RecordedRequest, role: str) -> str:
    """Return what the last message of ``role`` in a request says, "" if there is none."""
    texts = [m["content"] for m in request.json["messages"] if m["role"] == role]
    return str(texts[-1]) if texts else ""


def is_child(request: RecordedRequest) -> bool:
    """Tell whether a subagent asks."""
    return "You are a subagent" in request.json["messages"][0]["content"]


def answers(parent: list[Answer], child: Mapping[str, Answer]) -> Answer:
    """Answer the parent in order, and each subagent by a word of its request."""

    def choose(request: RecordedRequest) -> Answer:
        if not is_child(request):
            return parent.pop(0)
        return next(answer for word, answer in child.items() if word in said(request, "user"))

    return by_request(choose)


def marked_odek(folder: Path, base_url: str, marked: Marked) -> Odek:
    """Return the command with every process of it marked."""
    odek = Odek(folder, base_url=base_url)
    odek.environment |= {n: v for n, v in marked.environment.items() if n.startswith("ODEK_TEST")}
    return odek


@asynccontextmanager
async def start_delegating(odek: Odek, way: str, ready: trio.Event) -> AsyncGenerator[Running]:
    """Start a run whose subagents are forked ("warm") or, for their template never served, not ("fresh").

    Sets ``ready`` once that is so; the model's first answer has to wait for it.
    """
    verbose = {"ODEK_INTERACTION_MODE": "verbose"}
    async with odek.start("run", "--json", "delegate this", environment=verbose) as running:
        if way == "fresh":
            await wait_until(lambda: bool(_unready_templates(running.pid)))
            os.kill(_unready_templates(running.pid)[0], signal.SIGKILL)
            await running.wait_for("start afresh")
        else:
            await running.wait_for("are forked from process")
        ready.set()
        yield running


def _unready_templates(parent: int) -> list[int]:
    """Return the templates below a process that have not got their title yet, nor anything to fork from."""
    found = []
    for pid, *_ in descendants(parent):
        with suppress(OSError):  # it has ended meanwhile
            if b"subagent.template" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


async def kill_template(running: Running) -> None:
    """Kill the template of a run, and return once the run has noticed."""
    template = re.search(rb"are forked from process (\d+)", running.stdout + running.stderr)
    assert template is not None
    os.kill(int(template[1]), signal.SIGKILL)
    await running.wait_for("start afresh")
