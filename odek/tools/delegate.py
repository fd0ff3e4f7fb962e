"""The `delegate_tasks` tool: tasks that subagents do side by side, each in a process of its own."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import trio
from msgspec import Meta

from odek.budget import Budget
from odek.config.settings import Config
from odek.delegation import (
    MAX_TASKS,
    Credentials,
    DelegatedTask,
    TaskReport,
    TaskResult,
    WorkOrder,
    clamped,
    config_for,
    seen_changes,
)
from odek.errors import LimitReachedError, ToolError
from odek.events import ChildrenChanged, ChildState, Event, Usage
from odek.output_schema import unsupported
from odek.storage.files import read_file, remove_file
from odek.text import clip_bytes, clip_line
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.tools.workspace_changes import changed_between, snapshot
from odek.trust.effects import Effects
from odek.trust.risk import Risk
from subagent.limits import Limits as ChildLimits
from subagent.reports import (
    ChildEnded,
    ChildProgress,
    ChildSampled,
    ChildStarted,
    ChildTask,
    Outcome,
    SupervisorEvent,
    TaskSucceeded,
)
from subagent.spawner import Launch
from subagent.supervisor import Supervisor

__all__ = ["DelegateTool", "Delegator", "Standing", "take_over_usage"]

RESULT_BYTES = 100 * 1024
"""Of one result that the model reads."""

MEMORY_BYTES = 4 * 1024**3
"""Of one subagent with all that it runs: a runaway ends before the machine does. Not measured."""

USAGE_FILE_BYTES = 4096


class DelegateArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tasks."""

    tasks: Annotated[
        list[DelegatedTask],
        Meta(min_length=1, max_length=MAX_TASKS, description="Independent tasks; they run side by side."),
    ]
    description: Annotated[str, Meta(description="What all of it is for, in a few words.")] = ""


class Standing(msgspec.Struct, frozen=True):
    """How the delegating session stands at this moment."""

    session_id: str
    trusted: frozenset[Risk]
    asks_nobody: bool
    taint: tuple[str, ...]
    ingested: bool


class Delegator(msgspec.Struct, frozen=True, kw_only=True):
    """What delegation works with. ``depth`` is that of the subagents.

    ``budget`` returns that of the turn under way. ``taint`` is told what subagents took in.
    """

    supervisor: Supervisor
    config: Config
    credentials: Credentials
    environment: Mapping[str, str]
    home: Path
    workspace: Path
    depth: int
    standing: Callable[[], Standing]
    budget: Callable[[], Budget]
    taint: Callable[[tuple[str, ...], bool], None]
    emit: Callable[[Event], None]
    prepare: Callable[[], None]


class DelegateTool(Tool[DelegateArguments]):
    """Hands tasks to subagents and collects their results."""

    name = "delegate_tasks"
    description = (
        f"Hand 1 to {MAX_TASKS} independent tasks to subagents. They work side by side, each in its own "
        "process, with the same tools and memory. A subagent sees nothing of what is said here: tell it all "
        "that it needs. Results come back in the order of the tasks, as data from outside. Worth it for work "
        "that takes several steps each; do single steps yourself."
    )
    arguments_type = DelegateArguments
    timeout_seconds = None  # each task has its own
    exclusive = True  # what changes meanwhile in the workspace is told to be theirs

    def __init__(self, delegator: Delegator) -> None:
        self._delegator = delegator

    async def prepare(self, arguments: DelegateArguments) -> PreparedCall:
        """Check every task; nothing starts before all of them are right."""
        for number, task in enumerate(arguments.tasks, 1):
            if not task.goal.strip():
                raise ToolError(f"delegate_tasks: the goal of task {number} is empty; say what is to be done")
            if task.output_schema is not None and (problem := unsupported(task.output_schema)):
                raise ToolError(f"delegate_tasks: the output_schema of task {number}: {problem}")
        self._delegator.prepare()
        count = len(arguments.tasks)
        goals = "; ".join(clip_line(task.goal, 60) for task in arguments.tasks)
        return PreparedCall(
            f"{count} task{'s' if count > 1 else ''}: {arguments.description or goals}",
            Effects(spawns_agents=True, outside=True),
            partial(self._run, arguments.tasks, self._delegator.standing()),
            preview="\n".join(
                f"{n}. ({task.trust_level}) {task.goal}" for n, task in enumerate(arguments.tasks, 1)
            ),
        )

    async def _run(self, tasks: Sequence[DelegatedTask], asked: Standing, scope: CallScope) -> ToolOutput:
        # Running this very call taints the session, but its tasks were written before that.
        standing = msgspec.structs.replace(
            self._delegator.standing(), taint=asked.taint, ingested=asked.ingested
        )
        return await _FanOut(self._delegator, tasks, standing, scope).run()


class _FanOut:
    """One call: its children, what they report, and what they used."""

    def __init__(
        self, delegator: Delegator, tasks: Sequence[DelegatedTask], standing: Standing, scope: CallScope
    ) -> None:
        self._delegator = delegator
        self._tasks = tasks
        self._scope = scope
        self._standing = standing
        self._batch = os.urandom(6).hex()
        self._names = [f"task {number}" for number in range(1, len(tasks) + 1)]
        self._reports = dict.fromkeys(self._names, TaskReport())
        self._states = {name: ChildState(name, "waiting") for name in self._names}
        self._started: dict[str, float] = {}

    async def run(self) -> ToolOutput:
        """Run the tasks and return their results; what they used is counted however this ends."""
        try:
            share = self._delegator.budget().share(len(self._tasks))
        except LimitReachedError as error:
            raise ToolError(f"delegate_tasks: nothing was started: {error}") from None
        orders = [
            self._order(name, task, config_for(task, self._delegator.config, self._rights(task), share))
            for name, task in zip(self._names, self._tasks, strict=True)
        ]
        before = await trio.to_thread.run_sync(snapshot, self._delegator.workspace)
        self._show()
        try:
            outcomes = await self._delegator.supervisor.run(
                [self._child(order, share.seconds) for order in orders], self._take_in
            )
        finally:
            for name in self._names:
                self._account(name, orders[self._names.index(name)])
        after = await trio.to_thread.run_sync(snapshot, self._delegator.workspace)
        self._show(finished=True)
        return self._output(outcomes, changed_between(before, after))

    def _rights(self, task: DelegatedTask) -> Any:
        return clamped(
            task,
            self._delegator.config.dangerous,
            self._standing.trusted,
            asks_nobody=self._standing.asks_nobody,
        )

    def _order(self, name: str, task: DelegatedTask, config: Config) -> WorkOrder:
        file = f"{self._batch}-{name.replace(' ', '-')}.json"
        return WorkOrder(
            name=name,
            task=task,
            config=config,
            home=str(self._delegator.home),
            workspace=str(self._delegator.workspace),
            depth=self._delegator.depth,
            parent_session=self._standing.session_id,
            parent_pid=os.getpid(),
            taint=self._standing.taint,
            ingested=self._standing.ingested,
            usage_file=str(_usage_directory(self._delegator.home, self._standing.session_id) / file),
        )

    def _child(self, order: WorkOrder, rest_seconds: float) -> ChildTask:
        wall_seconds = min(order.task.timeout_seconds, rest_seconds or order.task.timeout_seconds)
        return ChildTask(
            id=order.name,
            launch=Launch(
                cwd=self._delegator.workspace,
                env=self._delegator.environment,
                title=f"odek subagent: {clip_line(order.name, 20)}",
                secret=msgspec.json.encode(self._delegator.credentials),
            ),
            payload=order,
            limits=ChildLimits(wall_seconds=wall_seconds, memory_bytes=MEMORY_BYTES),
        )

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
                self._change(name, tokens=_tokens(report.usage), action=report.action)
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
        result = _result_of(outcome, self._reports[name])
        self._reports[name] = result.report
        self._started.pop(name, None)
        self._change(
            name,
            state="done" if result.status == "success" else "failed",
            seconds=outcome.usage.seconds,
            tokens=_tokens(result.report.usage),
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

    def _account(self, name: str, order: WorkOrder) -> None:
        """Count what a child used, be it killed or not, and what it took in."""
        report = self._reports[name]
        recorded = _take_usage(Path(order.usage_file))
        self._scope.spend(recorded if recorded is not None else report.usage)
        self._delegator.taint(report.taint, report.ingested)

    def _output(self, outcomes: Sequence[Outcome], changed: Sequence[str]) -> ToolOutput:
        results = [
            _result_of(outcome, self._reports[name])
            for name, outcome in zip(self._names, outcomes, strict=True)
        ]
        own, conflicts, unsure = seen_changes(changed, [result.report for result in results])
        parts = [
            f"CONFLICT: {path} was changed by tasks {_numbers(indexes)}; look at it before going on"
            for path, indexes in conflicts.items()
        ]
        parts += [
            f"{path} was changed by a command of one of the tasks {_numbers(indexes)}, or of several"
            for path, indexes in unsure.items()
        ]
        parts += [
            _result_text(number, result, outcome.usage.seconds, files)
            for number, (result, outcome, files) in enumerate(zip(results, outcomes, own, strict=True), 1)
        ]
        failed = all(result.status == "error" for result in results)
        return ToolOutput("\n\n".join(parts), is_error=failed, changed=tuple(sorted(changed)))


def take_over_usage(home: Path, session_id: str) -> Usage:
    """Return what subagents of a session used that nobody has counted, and count it from now on. Blocking."""
    total = Usage()
    for path in sorted(_usage_directory(home, session_id).glob("*.json")):
        total += _take_usage(path) or Usage()
    return total


def _usage_directory(home: Path, session_id: str) -> Path:
    name = session_id if session_id != "unsaved" else f"unsaved-{os.getpid()}"
    return home / "usage" / name


def _take_usage(path: Path) -> Usage | None:
    try:
        usage = msgspec.json.decode(read_file(path, limit_bytes=USAGE_FILE_BYTES), type=Usage)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None
    remove_file(path)
    return usage


def _result_of(outcome: Outcome, report: TaskReport) -> TaskResult:
    """Return what a child said came of its task, or what there is of it if it did not."""
    if isinstance(outcome, TaskSucceeded):
        try:
            return msgspec.convert(outcome.result, TaskResult)
        except msgspec.ValidationError as error:
            return TaskResult("error", report.text, report, f"its result is none: {error}")
    return TaskResult("error", report.text, report, str(outcome.error))


def _result_text(number: int, result: TaskResult, seconds: float, files: Sequence[str]) -> str:
    lines = [f"[task {number}: {result.status} · {seconds:.1f} s · {_tokens(result.report.usage):,} tokens]"]
    if result.error:
        lines.append(f"error: {result.error}")
        lines += ["what it had said until then (partial):"] if result.summary else []
    text = clip_bytes(result.summary, RESULT_BYTES)
    lines += [text] if text else []
    lines += ["[the rest is cut]"] if text != result.summary else []
    lines += [f"files changed: {', '.join(files)}"] if files else []
    return "\n".join([*lines, f"[end of task {number}]"])


def _numbers(indexes: Sequence[int]) -> str:
    return " and ".join(str(index + 1) for index in indexes)


def _tokens(usage: Usage) -> int:
    return (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
