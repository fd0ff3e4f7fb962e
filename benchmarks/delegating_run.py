"""One run that delegates: the measured process of ``bench_fanout``.

    python delegating_run.py BASE_URL HOME WAY COUNT [hold]

Opens an agent as ``odek run`` does, waits until its template is ready ("fresh": kills it
before it is, so that subagents start afresh), and runs one turn. With "hold" it waits for a
line on standard input before it does. Prints one JSON object: the seconds of the monotonic
clock at the start and the end of the call of ``delegate_tasks``.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import trio

from odek.app import Setup, open_agent
from odek.cli import warmup
from odek.config.files import load
from odek.events import Event, Notice, ToolFinished, ToolStarted
from odek.loop import run_turn
from odek.trust.approval import ApprovalState
from subagent.warden import descendants

SETTLE_SECONDS = 0.3
"""For the other processes of the start to be done; it is no part of what is measured."""


LOOK_SECONDS = 0.01
"""Between two looks for the template, which takes some 300 ms to be ready."""


class Watch:
    """Notes when what happens does."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self.notices: list[str] = []
        self._noticed = trio.Event()

    def take_in(self, event: Event) -> None:
        """Note ``event``."""
        match event:
            case ToolStarted(name="delegate_tasks"):
                self.at["started"] = time.monotonic()
            case ToolFinished(name="delegate_tasks", outcome=outcome, preview=preview):
                self.at["collected"] = time.monotonic()
                if outcome != "ok":
                    raise SystemExit(f"delegate_tasks: {preview}")
            case Notice(text=text):
                self.notices.append(text)
                self._noticed.set()
                self._noticed = trio.Event()
            case _:
                pass

    async def notice(self, words: str) -> str:
        """Return the first notice with ``words``, once there is one."""
        while not (found := [text for text in self.notices if words in text]):
            await self._noticed.wait()
        return found[0]


async def kill_template() -> None:
    """Kill the template before it can serve, as soon as there is one."""
    while not (found := [pid for pid, *_ in descendants(os.getpid()) if is_template(pid)]):  # noqa: ASYNC110 - nobody tells
        await trio.sleep(LOOK_SECONDS)
    os.kill(found[0], signal.SIGKILL)


def is_template(pid: int) -> bool:
    """Tell whether a process is the template, still importing."""
    try:
        return b"subagent.template" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def main(base_url: str, home: Path, way: str, count: int, *, hold: bool) -> None:
    """Run the turn."""
    watch = Watch()
    task = f"delegate{', and hold' if hold else ''}: {count}"
    flags = {
        "base_url": base_url,
        "model": "m",
        "interaction_mode": "verbose",
        "subagent.max_concurrency": count,
    }
    began = time.monotonic()
    setup = Setup(
        resolved=load(home, Path.cwd(), os.environ, flags),
        home=home,
        workspace=Path.cwd(),
        emit=watch.take_in,
        approval=ApprovalState(),
        task=task,
    )
    async with open_agent(setup) as opened:
        warmup.end()
        if way == "fresh":
            await kill_template()
            await watch.notice("start afresh")
        else:
            await watch.notice("are forked from process")
        watch.at["template_seconds"] = time.monotonic() - began
        await trio.sleep(SETTLE_SECONDS)
        if hold:
            print("ready", flush=True)
            await trio.lowlevel.FdStream(os.dup(0)).receive_some(1)
        result = await run_turn(opened.agent, task)
        if result.outcome != "answered":
            raise SystemExit(str(result.error))
    print(json.dumps(watch.at))


if __name__ == "__main__":
    warmup.begin()
    trio.run(
        lambda: main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), hold=len(sys.argv) > 5)
    )
