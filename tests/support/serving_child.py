"""A child that serves as agents do, through ``subagent.child``: by what its payload says."""

import os
import sys
import time
from typing import Any

import trio

from subagent.child import Report, serve
from subagent.secret import read_secret
from subagent.wire import Task

__all__ = ["main"]


async def run(task: Task, report: Report) -> Any:
    """Do what the payload's ``do`` says."""
    match task.payload:
        case {"do": "answer", "with": value}:
            print("printed by a tool", flush=True)  # noqa: T201 - must not reach the wire
            await trio.run_process(["echo", "from a shell"])
            report({"step": 1})
            return [task.id, value, read_secret().decode()]
        case {"do": "raise"}:
            raise ExceptionGroup("many", [ValueError("no such\nfile"), KeyError("other")])
        case {"do": "unsendable"}:
            return object()
        case {"do": "flood"}:
            for number in range(100_000):
                report(number)
            return "flooded"
        case {"do": "clean up"}:
            report("at work")
            try:
                await trio.sleep_forever()
            finally:
                os.close(os.open("cleaned", os.O_CREAT))
        case {"do": "refuse to end"}:
            report("at work")
            with trio.CancelScope(shield=True):
                await trio.sleep_forever()
        case {"do": "block"}:
            report("at work")
            for _ in range(100):  # turns of the loop: the report is written, however slow the machine is
                await trio.lowlevel.checkpoint()
            time.sleep(300)  # noqa: ASYNC251 - that is the fault
    return None


def main() -> int:
    """Serve once."""
    return trio.run(serve, run)


if __name__ == "__main__":
    sys.exit(main())
