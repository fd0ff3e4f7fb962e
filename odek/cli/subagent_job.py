"""A task that a person or a script gives to a subagent: in its time, in a worktree if it says so."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import trio

from odek.cli.interrupts import Interrupts
from odek.cli.jsonl import json_line
from odek.cli.notes import one_line
from odek.delegation import Credentials, TaskReport, TaskResult, WorkOrder
from odek.errors import ToolError
from odek.events import Event, ToolFinished
from odek.tools.git import without_repository
from odek.tools.repository import find_repository
from odek.tools.workspace_changes import changed_between, snapshot
from odek.tools.worktree import open_worktree, plan_worktree, sweep_worktrees
from odek.tools.worktree_changes import WorktreeChanges, read_changes
from odek.worker import run_task

__all__ = ["HandJob"]

DIFF_BYTES = 1024 * 1024
"""Of the diff in the result: a program reads it."""


class HandJob(msgspec.Struct, frozen=True, kw_only=True):
    """The task and how it is reported. ``environment`` is what tools inherit."""

    order: WorkOrder
    credentials: Credentials
    environment: Mapping[str, str]
    stream: bool
    quiet: bool

    @property
    def home(self) -> Path:
        """The odek home."""
        return Path(self.order.home)

    async def run(self) -> tuple[dict[str, Any], int]:
        """Do the task; return the fields of the result, and the exit status. A signal ends it cleanly.

        Raises:
            ToolError: there can be no worktree.
        """
        interrupts = Interrupts()
        async with trio.open_nursery() as nursery:
            await nursery.start(interrupts.watch)
            work = _Work(self)
            place = self._in_worktree if self.order.task.worktree else self._in_workspace
            finished = await interrupts.run_turn(partial(place, work))
            nursery.cancel_scope.cancel()
        if finished is None and interrupts.received is not None:
            work.end(f"it was ended by {interrupts.received.name}", interrupts.exit_status)
        return work.document, work.status

    async def _in_workspace(self, work: "_Work") -> bool:
        workspace = Path(self.order.workspace)
        before = await trio.to_thread.run_sync(snapshot, workspace)
        try:
            await work.run(self.order, self.environment)
        finally:
            with trio.CancelScope(shield=True):  # one look at the files
                after = await trio.to_thread.run_sync(snapshot, workspace)
            work.document["files_changed"] = changed_between(before, after)
        return True

    async def _in_worktree(self, work: "_Work") -> bool:
        await trio.to_thread.run_sync(sweep_worktrees, self.home)
        try:
            repository = await find_repository(Path(self.order.workspace), self.environment)
        except ToolError as error:
            raise ToolError(f"worktree: {error}") from error
        planned = await trio.to_thread.run_sync(plan_worktree, self.home, repository)
        order = msgspec.structs.replace(self.order, workspace=str(planned.workspace))
        async with open_worktree(planned, self.environment, self._complain):
            await work.run(order, without_repository(self.environment))
            try:
                changes = await read_changes(planned, self.environment)
            except ToolError as error:
                changes = WorktreeChanges(repository.commit, problem=str(error))
        diff, left_out = changes.fitting(DIFF_BYTES)
        work.document |= {"files_changed": changes.files, "base": changes.commit, "diff": diff}
        if left_out:
            work.document["diff_lacks"] = [change.paths[-1] for change in left_out]
        if changes.problem:
            work.document["diff_problem"] = changes.problem
        return True

    def _complain(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class _Work:
    """The task under way: what there is of its result at any moment."""

    def __init__(self, job: HandJob) -> None:
        self.document: dict[str, Any] = {}
        self.status = 1
        self._job = job
        self._last = TaskReport()

    async def run(self, order: WorkOrder, environment: Mapping[str, str]) -> None:
        """Do the task within its time."""
        with trio.move_on_after(order.task.timeout_seconds):
            result = await run_task(order, self._job.credentials, self._report, self._watch, environment)
            self._note(result, 0 if result.status == "success" else 1)
            return
        self.end(f"the time limit of {order.task.timeout_seconds:g} s is over", 2)

    def end(self, reason: str, status: int) -> None:
        """It was ended: its result is what it had said until then."""
        self._note(TaskResult("error", self._last.text, self._last, reason), status)

    def _note(self, result: TaskResult, status: int) -> None:
        usage = result.report.usage
        self.status = status
        self.document |= {
            "status": result.status,
            "summary": result.summary,
            "tokens_used": (usage.prompt_tokens or 0) + (usage.completion_tokens or 0),
            "iterations": result.report.iterations,
        }
        if result.error:
            self.document["error"] = result.error

    def _report(self, state: TaskReport) -> None:
        self._last = state

    def _watch(self, event: Event) -> None:
        if self._job.stream:
            print(json_line(event), flush=True)
        if not self._job.quiet and isinstance(event, ToolFinished):
            print(f"{event.name}  {one_line(event.summary)}  {event.outcome}", file=sys.stderr, flush=True)
