"""One run that delegates: the measured process of ``bench_fanout``.

    python delegating_run.py BASE_URL HOME WAY COUNT [hold]

Opens an agent as ``odek run`` does, waits until its template is ready ("fresh": and kills
it, so that subagents start afresh), and runs one turn. Prints one JSON object: the
seconds of the monotonic clock at the start and the end of the call of ``delegate_tasks``.
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

SETTLE_SECONDS = 0.3
"""For the other processes of the start to be done; it is no part of what is measured."""


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
        pid = int((await watch.notice("are forked from process")).split()[-1])
        watch.at["template_seconds"] = time.monotonic() - began
        if way == "fresh":
            os.kill(pid, signal.SIGKILL)
            await watch.notice("start afresh")
        await trio.sleep(SETTLE_SECONDS)
        result = await run_turn(opened.agent, task)
        if result.outcome != "answered":
            raise SystemExit(str(result.error))
    print(json.dumps(watch.at))


if __name__ == "__main__":
    warmup.begin()
    trio.run(
        lambda: main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), hold=len(sys.argv) > 5)
    )
