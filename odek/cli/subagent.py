"""``odek subagent``: one task, done by a process that another agent or a person starts."""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odek.delegation import Credentials, TaskResult, WorkOrder
    from odek.events import Event
    from subagent.child import Report
    from subagent.wire import Task

__all__ = ["add_arguments", "run", "serve_parent"]

TASK_FILE_BYTES = 1024 * 1024

EPILOG = """\
examples:
  odek subagent --goal "list the modules without tests"
  odek subagent --task task.json --stream

A task file is one JSON object: {"goal": …, "context"?, "guidance"?, "trust_level"?, "max_risk"?,
"timeout_seconds"?, "model"?, "output_schema"?}. It is only read. A person's own --goal is trusted;
the task of a file is not, unless its trust_level says so.

stdout: one JSON object, after event lines if --stream is given. stderr: progress.

exit status:
  0 success   1 the task failed   2 time limit   3 setup or crash"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the task and its limits."""
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--goal", metavar="TEXT", help="what is to be done")
    task.add_argument("--task", metavar="FILE", help="a JSON file that says what is to be done")
    task.add_argument("--supervised", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--context", metavar="TEXT", default="", help="what it must know for that")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, default=None, help="wall clock (120, at most 3600)"
    )
    parser.add_argument(
        "--max-iter", metavar="N", type=_iterations, default=15, help="requests at most (15, at most 100)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("--stream", action="store_true", help="print events as JSON lines before the result")
    parser.add_argument("--parent-session", metavar="ID", default="", help="named in the result")
    parser.epilog = EPILOG


def run(arguments: argparse.Namespace) -> int:
    """Do the task."""
    return serve_parent() if arguments.supervised else _by_hand(arguments)


def serve_parent() -> int:
    """Do the one task that the parent sends on standard input; returns the exit status."""
    from pathlib import Path

    import msgspec
    import trio

    from odek.delegation import Credentials
    from subagent.child import serve
    from subagent.secret import read_secret

    credentials = msgspec.json.decode(read_secret() or b"{}", type=Credentials)

    async def work(task: "Task", report: "Report") -> Any:
        from odek.cli.error_groups import unwrapped_errors
        from odek.delegation import WorkOrder
        from odek.processes import registered
        from odek.worker import run_task

        order = msgspec.convert(task.payload, WorkOrder)
        listed = registered(
            Path(order.home),
            command=order.name,
            parent=order.parent_pid,
            session=order.parent_session,
            task=order.task.goal,
        )
        with listed, unwrapped_errors():
            return await run_task(order, credentials, report, lambda _event: None)

    return trio.run(serve, work)


def _by_hand(arguments: argparse.Namespace) -> int:
    import json
    from pathlib import Path

    import trio

    from odek.cli.error_groups import unwrapped_errors
    from odek.errors import OdekError
    from odek.processes import registered

    if arguments.parent_session and not arguments.parent_session.isprintable():
        arguments.parent_session = ""
    try:
        order, credentials = _order(arguments)
        listed = registered(
            Path(order.home),
            command="subagent",
            session=order.parent_session,
            task=order.task.goal,
        )
        with listed, unwrapped_errors():
            result, status = trio.run(_work, order, credentials, arguments)
    except Exception as error:  # noqa: BLE001 - whoever started us reads JSON, whatever has happened
        words = str(error) if isinstance(error, OdekError) else f"{type(error).__name__}: {error}"
        document: dict[str, Any] = _document(None, arguments, " ".join(words.split()))
        status = 3
    else:
        document = _document(result, arguments, "")
    print(json.dumps(document, ensure_ascii=False))
    return status


def _order(arguments: argparse.Namespace) -> "tuple[WorkOrder, Credentials]":
    """Return what there is to do, with the configuration of this home and directory.

    Raises:
        ConfigError: the task or the configuration is wrong.
    """
    from pathlib import Path

    from odek.budget import Limits
    from odek.config.files import load
    from odek.delegation import WorkOrder, clamped, config_for
    from odek.home import home_directory
    from odek.subagents import credentials_of

    task = _task(arguments)
    home, workspace = home_directory(os.environ), Path.cwd()
    resolved = load(home, workspace, os.environ, {})
    config, budget = resolved.config, resolved.config.budget
    rights = clamped(task, config.dangerous, (), asks_nobody=True)
    limits = Limits(tokens=budget.tokens, cost_usd=budget.cost_usd, seconds=budget.seconds)
    order = WorkOrder(
        name="task 1",
        task=task,
        config=config_for(task, config, rights, limits),
        home=str(home),
        workspace=str(workspace),
        iterations=arguments.max_iter,
        parent_session=arguments.parent_session,
        parent_pid=os.getppid(),
    )
    return order, credentials_of(resolved)


def _task(arguments: argparse.Namespace) -> Any:
    import msgspec

    from odek.delegation import DelegatedTask
    from odek.errors import ConfigError

    if arguments.task is None:
        task = DelegatedTask(arguments.goal, context=arguments.context, trust_level="trusted")
    else:
        try:
            with open(arguments.task, "rb") as file:
                data = file.read(TASK_FILE_BYTES + 1)
            task = msgspec.json.decode(data, type=DelegatedTask)
        except OSError as error:
            raise ConfigError(f"--task: cannot read {arguments.task}: {error.strerror}") from None
        except msgspec.MsgspecError as error:
            raise ConfigError(f"--task: {arguments.task}: {error}") from None
    if not task.goal.strip():
        raise ConfigError("the goal is empty; say what is to be done")
    if arguments.timeout is not None:
        task = msgspec.structs.replace(task, timeout_seconds=arguments.timeout)
    return task


async def _work(
    order: "WorkOrder", credentials: "Credentials", arguments: argparse.Namespace
) -> "tuple[TaskResult, int]":
    """Do the task within its time; events and progress are written as they come."""
    from pathlib import Path

    import msgspec
    import trio

    from odek.cli.notes import one_line
    from odek.delegation import TaskReport, TaskResult
    from odek.events import ToolFinished
    from odek.tools.workspace_changes import changed_between, snapshot
    from odek.worker import run_task

    last = TaskReport()

    def report(state: TaskReport) -> None:
        nonlocal last
        last = state

    def watch(event: "Event") -> None:
        if arguments.stream:
            print(msgspec.json.encode(event).decode(), flush=True)
        if not arguments.quiet and isinstance(event, ToolFinished):
            print(f"{event.name}  {one_line(event.summary)}  {event.outcome}", file=sys.stderr, flush=True)

    workspace = Path(order.workspace)
    before = await trio.to_thread.run_sync(snapshot, workspace)
    with trio.move_on_after(order.task.timeout_seconds):
        result = await run_task(order, credentials, report, watch)
        arguments.files_changed = changed_between(before, await trio.to_thread.run_sync(snapshot, workspace))
        return result, 0 if result.status == "success" else 1
    arguments.files_changed = changed_between(before, await trio.to_thread.run_sync(snapshot, workspace))
    error = f"the time limit of {order.task.timeout_seconds:g} s is over"
    return TaskResult("error", last.text, last, error), 2


def _document(result: "TaskResult | None", arguments: argparse.Namespace, error: str) -> dict[str, Any]:
    usage = result.report.usage if result else None
    document: dict[str, Any] = {
        "status": result.status if result else "error",
        "summary": result.summary if result else "",
        "files_changed": getattr(arguments, "files_changed", []),
        "tokens_used": (usage.prompt_tokens or 0) + (usage.completion_tokens or 0) if usage else 0,
        "iterations": result.report.iterations if result else 0,
    }
    if error or (result and result.error):
        document["error"] = error or (result.error if result else "")
    if arguments.parent_session:
        document["parent_session"] = arguments.parent_session
    return document


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError("must be above 0 and at most 3600")
    return value


def _iterations(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 100:
        raise argparse.ArgumentTypeError("must be from 1 to 100")
    return value
