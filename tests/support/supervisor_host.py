"""A program that supervises every kind of faulty child at once, to be killed from outside.

Arguments: the kind of spawner, the directory of the children. It prints a line for each
event: its name and the child's pid or task.
"""

import os
import resource
import sys
from pathlib import Path

import trio

from subagent.limits import Limits
from subagent.reports import ChildTask, SupervisorEvent
from subagent.spawner import Launch
from subagent.supervisor import Supervisor
from tests.support.faults import FAULTS, open_spawner

__all__: list[str] = []


def show(event: SupervisorEvent) -> None:
    """Print one event."""
    sys.stdout.write(f"{type(event).__name__} {event.id}\n")
    sys.stdout.flush()


async def main(kind: str, directory: Path) -> None:
    """Run all faults at once."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # it has several open for each child
    async with open_spawner(kind) as spawner:
        supervisor = Supervisor(spawner, max_concurrency=40)
        tasks = [
            ChildTask(
                id=name,
                launch=Launch(cwd=directory, env=dict(os.environ), title=f"child {name}"),
                payload=fault.code,
                limits=Limits(processes=fault.limits.processes, memory_bytes=fault.limits.memory_bytes),
            )
            for name, fault in FAULTS.items()
        ]
        await supervisor.run(tasks, show)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], Path(sys.argv[2]))
