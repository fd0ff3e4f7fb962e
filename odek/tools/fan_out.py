"""One call of `delegate_tasks`: its subagents, what they report, and what they used."""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import trio

from odek.budget import Budget
from odek.config.settings import Config, DangerousSettings
from odek.delegation import (
    DelegatedTask,
    TaskReport,
    TaskResult,
    TrustLevel,
    WorkOrder,
    clamped,
    config_for,
)
from odek.errors import LimitReachedError, ToolError
from odek.events import ChildrenChanged, ChildState, Event, Notice
from odek.sessions.child_usage import ChildUsage, recorded_usage, usage_file
from odek.tools.git import without_repository
from odek.tools.repository import Repository, find_repository
from odek.tools.task_results import Ended, result_of, results_text, tokens
from odek.tools.tool import CallScope, ToolOutput
from odek.tools.workspace_changes import changed_between, snapshot
from odek.tools.worktree import Worktree, open_worktree, plan_worktree
from odek.tools.worktree_changes import WorktreeChanges, read_changes
from odek.trust.risk import Risk
from subagent.errors import ChildStartError
from subagent.limits import Limits as ChildLimits
from subagent.reports import (
    ChildEnded,
    ChildProgress,
    ChildSampled,
    ChildStarted,
    ChildTask,
    Outcome,
    SupervisorEvent,
)
from subagent.spawner import Launch
from subagent.supervisor import Supervisor

__all__ = ["Delegator", "FanOut", "Standing"]

MEMORY_BYTES = 4 * 1024**3
"""Of one subagent with all that it runs: a runaway ends before the machine does. Not measured."""


class Standing(msgspec.Struct, frozen=True):
    """How the delegating session stands at this moment.

    ``session_id`` is that of the session for which all of this is done.
    """

    session_id: str
    trusted: frozenset[Risk]
    asks_nobody: bool
    taint: tuple[str, ...]
    ingested: bool


class Delegator(msgspec.Struct, frozen=True, kw_only=True):
    """What delegation works with. ``depth`` is that of the subagents, ``trust_level`` that of who delegates.

    ``launch`` is that of a subagent in the workspace. ``budget`` returns that of the turn under
    way. ``taint`` is told what subagents took in.
    """

    supervisor: Supervisor
    config: Config
    launch: Launch
    home: Path
    workspace: Path
    depth: int
    trust_level: TrustLevel
    usage: ChildUsage
    standing: Callable[[], Standing]
    budget: Callable[[], Budget]
    taint: Callable[[tuple[str, ...], bool], None]
    emit: Callable[[Event], None]
    prepare: Callable[[], None]

    def narrowed(self, task: DelegatedTask) -> DelegatedTask:
        """Return ``task`` trusted no more than who hands it on."""
        if self.trust_level == "untrusted":
            return msgspec.structs.replace(task, trust_level="untrusted")
        return task

    async def repository(self) -> Repository:
        """Return the repository of the workspace at its last commit.

        Raises:
            ToolError: there is none to make a worktree of.
        """
        try:
            return await find_repository(self.workspace, self.launch.env)
        except ToolError as error:
            raise ToolError(f"delegate_tasks: worktree: {error}") from error


class FanOut:
    """Runs the tasks of one call."""

    def __init__(
        self, delegator: Delegator, tasks: Sequence[DelegatedTask], standing: Standing, scope: CallScope
    ) -> None:
        self._delegator = delegator
        self._tasks = tasks
        self._scope = scope
        self._standing = standing
        self._names = [f"task {number}" for number in range(1, len(tasks) + 1)]
        self._reports = dict.fromkeys(self._names, TaskReport())
        self._states = {name: ChildState(name, "waiting") for name in self._names}
        self._started: dict[str, float] = {}
        self._worktrees: dict[str, Worktree] = {}
        self._changes: dict[str, WorktreeChanges] = {}
        self._ended: dict[str, Ended] = {}

    async def run(self) -> ToolOutput:
        """Run the tasks and return their results; what they used is counted however this ends."""
        delegator = self._delegator
        try:
            share = delegator.budget().share(len(self._tasks))
        except LimitReachedError as error:
            raise ToolError(f"delegate_tasks: nothing was started: {error}") from None
        self._worktrees = await self._plan_worktrees()
        usage = await delegator.usage.begin_delegation()
        orders = [
            self._order(name, task, config_for(task, delegator.config, self._rights(task), share), usage)
            for name, task in zip(self._names, self._tasks, strict=True)
        ]
        before = await trio.to_thread.run_sync(snapshot, delegator.workspace)
        self._show()
        try:
            outcomes = await delegator.supervisor.run(
                [self._child(order, share.seconds) for order in orders], self._take_in
            )
        except BaseException:
            self._leave()
            raise
        finally:
            await self._account(orders, usage)
        after = await trio.to_thread.run_sync(snapshot, delegator.workspace)
        self._show(finished=True)
        return self._output(outcomes, changed_between(before, after))

    async def _plan_worktrees(self) -> dict[str, Worktree]:
        """Choose the worktrees that tasks ask for, all of the same commit; none is made yet."""
        named = [name for name, task in zip(self._names, self._tasks, strict=True) if task.worktree]
        if not named:
            return {}
        repository = await self._delegator.repository()
        return {
            name: await trio.to_thread.run_sync(plan_worktree, self._delegator.home, repository)
            for name in named
        }

    def _rights(self, task: DelegatedTask) -> DangerousSettings:
        return clamped(
            task,
            self._delegator.config.dangerous,
            self._standing.trusted,
            asks_nobody=self._standing.asks_nobody,
        )

    def _order(self, name: str, task: DelegatedTask, config: Config, usage: Path) -> WorkOrder:
        worktree = self._worktrees.get(name)
        return WorkOrder(
            name=name,
            task=task,
            config=config,
            home=str(self._delegator.home),
            workspace=str(worktree.workspace if worktree else self._delegator.workspace),
            depth=self._delegator.depth,
            parent_session=self._standing.session_id,
            parent_pid=os.getpid(),
            taint=self._standing.taint,
            ingested=self._standing.ingested,
            usage_file=str(usage_file(usage, name)),
        )

    def _child(self, order: WorkOrder, rest_seconds: float) -> ChildTask:
        launch = self._delegator.launch
        worktree = self._worktrees.get(order.name)
        if worktree:
            launch = msgspec.structs.replace(
                launch, cwd=Path(order.workspace), env=without_repository(launch.env)
            )
        wall_seconds = min(order.task.timeout_seconds, rest_seconds or order.task.timeout_seconds)
        return ChildTask(
            id=order.name,
            launch=launch,
            payload=order,
            limits=ChildLimits(wall_seconds=wall_seconds, memory_bytes=MEMORY_BYTES),
            around=partial(self._in_worktree, order.name, worktree) if worktree else nullcontext,
        )

    @asynccontextmanager
    async def _in_worktree(self, name: str, worktree: Worktree) -> AsyncGenerator[None]:
        """Have the worktree of a task for a block, and see what has changed in it unless all is cancelled.

        Raises:
            ChildStartError: it cannot be made.
        """
        environment = self._delegator.launch.env

        def complain(text: str) -> None:
            self._delegator.emit(Notice(text, "warning"))

        self._change(name, action="checking out its worktree")
        try:
            async with open_worktree(worktree, environment, complain):
                yield
                try:
                    self._changes[name] = await read_changes(worktree, environment)
                except ToolError as error:
                    self._changes[name] = WorktreeChanges(worktree.repository.commit, problem=str(error))
        except ToolError as error:
            raise ChildStartError(str(error)) from error

    def _take_in(self, event: SupervisorEvent) -> None:
        name = event.id
        match event:
            case ChildStarted():
                self._started[name] = trio.current_time()
                self._change(name, state="working", action="starting")
            case ChildProgress(payload=payload):
                try:
                    self._reports[name] = report = msgspec.convert(payload, TaskReport)
                except msgspec.ValidationError:  # it is not ours to trust; the result says what is wrong
                    return
                self._change(name, tokens=tokens(report.usage), action=report.action)
            case ChildSampled(sample=sample):
                state = self._states[name]
                self._change(
                    name,
                    cpu_seconds=max(state.cpu_seconds, sample.cpu_seconds),
                    peak_memory_bytes=max(state.peak_memory_bytes, sample.memory_bytes),
                )
            case ChildEnded(outcome=outcome):
                self._end(name, outcome)
            case _:
                return

    def _end(self, name: str, outcome: Outcome) -> None:
        result = result_of(outcome, self._reports[name])
        self._reports[name] = result.report
        self._ended[name] = Ended(
            result, outcome.usage.seconds, name in self._worktrees, self._changes.get(name)
        )
        self._started.pop(name, None)
        self._change(
            name,
            state="done" if result.status == "success" else "failed",
            seconds=outcome.usage.seconds,
            tokens=tokens(result.report.usage),
            action="" if result.status == "success" else result.error,
            cpu_seconds=outcome.usage.cpu_seconds,
            peak_memory_bytes=outcome.usage.peak_memory_bytes,
        )

    def _change(self, name: str, **changes: Any) -> None:
        if name in self._started:
            changes.setdefault("seconds", trio.current_time() - self._started[name])
        self._states[name] = msgspec.structs.replace(self._states[name], **changes)
        self._show()

    def _show(self, *, finished: bool = False) -> None:
        self._delegator.emit(ChildrenChanged(self._scope.call_id, tuple(self._states.values()), finished))

    async def _account(self, orders: Sequence[WorkOrder], usage: Path) -> None:
        """Count what the subagents used, killed or not, and what they took in; cannot be cancelled."""
        with trio.CancelScope(shield=True):  # some small files are read
            recorded = {
                order.name: await trio.to_thread.run_sync(recorded_usage, Path(order.usage_file))
                for order in orders
            }
        for name, report in self._reports.items():
            # What it wrote before it reported is more, unless the disk did not take it.
            self._scope.spend(max(recorded[name], report.usage, key=tokens))
            self._delegator.taint(report.taint, report.ingested)
        await self._delegator.usage.counted(usage)

    def _leave(self) -> None:
        """Leave what the tasks came to that had ended when the call was cancelled, if any had."""
        if self._ended:
            ended = [self._ended.get(name) or self._unfinished(name) for name in self._names]
            self._scope.leave(results_text(ended, ()))

    def _unfinished(self, name: str) -> Ended:
        report = self._reports[name]
        result = TaskResult("error", report.text, report, "cancelled before its end")
        return Ended(result, self._states[name].seconds, name in self._worktrees)

    def _output(self, outcomes: Sequence[Outcome], changed: Sequence[str]) -> ToolOutput:
        results = [
            result_of(outcome, self._reports[name])
            for name, outcome in zip(self._names, outcomes, strict=True)
        ]
        ended = [
            Ended(result, outcome.usage.seconds, task.worktree, self._changes.get(name))
            for name, task, result, outcome in zip(self._names, self._tasks, results, outcomes, strict=True)
        ]
        failed = all(result.status == "error" for result in results)
        return ToolOutput(results_text(ended, changed), is_error=failed, changed=tuple(sorted(changed)))
