"""``odek memory jobs``: which sessions are still to be remembered, and what became of the others."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from odek.cli.memory_stores import memory_directory, say, shown_time

if TYPE_CHECKING:
    from odek.storage.jobs import Job, JobQueue

__all__ = ["add_arguments", "run"]


def add_arguments(action: str, parser: argparse.ArgumentParser) -> None:  # noqa: ARG001 - there is one
    """Declare the arguments."""
    parser.add_argument("--all", action="store_true", help="those that are done as well")
    parser.add_argument("--retry", action="store_true", help="let the next run try again what was given up")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Carry out the action."""
    from odek.memory.places import JOBS
    from odek.storage.jobs import JobQueue

    queue = JobQueue(memory_directory() / JOBS)
    for path in queue.damaged():
        say(f"{path} cannot be read as a job and is left out; remove it")
    if arguments.retry:
        for job in queue.list():
            if job.state == "parked":
                queue.retry(job)
    _show(queue, arguments)
    return 0


def _show(queue: "JobQueue", arguments: argparse.Namespace) -> None:
    jobs = [job for job in queue.list() if arguments.all or job.state != "done"]
    if arguments.json:
        print(json.dumps([_as_json(job) for job in jobs], indent=2, ensure_ascii=False))
    elif jobs:
        print("\n".join(line for job in jobs for line in _lines(job)))
    else:
        print("nothing is owed")


def _lines(job: "Job") -> list[str]:
    from odek.text import visible

    state = job.state if job.running is None else f"running, pid {job.running or 'unknown'}"
    lines = [visible(f"{shown_time(job.created_at)}  {state}  {job.key}", keep_newlines=False)]
    return [*lines, *(f"    failed: {visible(reason, keep_newlines=False)}" for reason in job.failures)]


def _as_json(job: "Job") -> dict[str, Any]:
    return {
        "kind": job.kind,
        "session": job.key,
        "state": job.state,
        "running": job.running,
        "created_at": job.created_at,
        "failures": list(job.failures),
    }
