"""``odek subagent``: one task, done by a process that another agent or a person starts."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from odek.cli.options import FileName, whole_number

if TYPE_CHECKING:
    from odek.cli.subagent_job import HandJob
    from subagent.child import Report
    from subagent.wire import Task

__all__ = ["add_arguments", "run", "serve_forked", "serve_parent"]

TASK_FILE_BYTES = 1024 * 1024

EPILOG = """\
examples:
  odek subagent --goal "list the modules without tests"
  odek subagent --task task.json --stream

A task file is one JSON object: {"goal": …, "context"?, "guidance"?, "trust_level"?, "max_risk"?,
"timeout_seconds"?, "model"?, "output_schema"?, "worktree"?}. It is only read. A person's own --goal
is trusted; the task of a file is not, unless its trust_level says so. With "worktree": true the work is
done in a git worktree that is removed afterwards, and the result has its "diff".

stdout: one JSON object, after event lines if --stream is given. stderr: progress.

exit status:
  0 success   1 the task failed   2 time limit   3 setup or crash   130 Ctrl-C"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the task and its limits."""
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--goal", metavar="TEXT", help="what is to be done")
    task.add_argument(
        "--task", metavar="FILE", type=FileName, help="a JSON file that says what is to be done"
    )
    task.add_argument("--supervised", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--context", metavar="TEXT", default="", help="what it must know for that")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, default=None, help="wall clock (120, at most 3600)"
    )
    parser.add_argument(
        "--max-iter",
        metavar="N",
        type=whole_number(1, 100),
        default=15,
        help="requests at most (15, at most 100)",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("--stream", action="store_true", help="print events as JSON lines before the result")
    parser.add_argument("--parent-session", metavar="ID", default="", help="named in the result")
    parser.epilog = EPILOG


def run(arguments: argparse.Namespace) -> int:
    """Do the task."""
    return serve_parent() if arguments.supervised else _by_hand(arguments)


def serve_forked() -> int:
    """Do the same in a fork of the template.

    A page of memory that both have is copied when it is written to, and using a Python object
    writes to it. That takes longer than the use, and is done here before there is a task.
    """
    from odek.rehearsal import rehearse

    rehearse()
    return serve_parent()


def serve_parent() -> int:
    """Do the one task that the parent sends on standard input; returns the exit status."""
    from pathlib import Path

    import msgspec
    import trio

    from odek.cli.error_groups import unwrapped_errors
    from odek.delegation import Credentials, WorkOrder
    from odek.processes import registered
    from odek.trust.secrets import Masker
    from odek.worker import run_task
    from subagent.child import serve
    from subagent.secret import read_secret
    from subagent.title import set_title

    credentials = msgspec.json.decode(read_secret() or b"{}", type=Credentials)

    async def work(task: "Task", report: "Report") -> Any:
        order = msgspec.convert(task.payload, WorkOrder)
        set_title(f"odek subagent: {order.name}")
        listed = registered(
            Path(order.home),
            command=order.name,
            parent=order.parent_pid,
            session=order.parent_session,
            task=Masker(credentials.secrets).mask(order.task.goal),
        )
        with listed, unwrapped_errors():
            return await run_task(order, credentials, report, lambda _event: None, os.environ)

    return trio.run(serve, work)


def _by_hand(arguments: argparse.Namespace) -> int:
    import json

    import trio

    from odek.cli.error_groups import unwrapped_errors
    from odek.errors import OdekError, ToolError
    from odek.processes import registered
    from odek.trust.secrets import Masker

    if arguments.parent_session and not arguments.parent_session.isprintable():
        arguments.parent_session = ""
    document: dict[str, Any] = {"status": "error", "summary": "", "files_changed": [], "tokens_used": 0}
    document["iterations"] = 0
    try:
        job = _job(arguments)
        task = Masker(job.credentials.secrets).mask(job.order.task.goal)
        listed = registered(job.home, command="subagent", session=arguments.parent_session, task=task)
        with listed, unwrapped_errors():
            found, status = trio.run(job.run)
    except Exception as error:  # noqa: BLE001 - whoever started us reads JSON, whatever has happened
        words = str(error) if isinstance(error, OdekError | ToolError) else f"{type(error).__name__}: {error}"
        document["error"] = " ".join(words.split())
        status = 3
    else:
        document |= found
    if arguments.parent_session:
        document["parent_session"] = arguments.parent_session
    print(json.dumps(document, ensure_ascii=False))
    return status


def _job(arguments: argparse.Namespace) -> "HandJob":
    """Return what there is to do, with the configuration of this home and directory.

    Raises:
        ConfigError: the task or the configuration is wrong.
    """
    from odek.budget import Limits
    from odek.cli.subagent_job import HandJob
    from odek.config.files import load
    from odek.delegation import WorkOrder, clamped, config_for
    from odek.home import home_directory, working_directory
    from odek.subagents import credentials_of

    task = _task(arguments)
    home, workspace = home_directory(os.environ), working_directory()
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
    return HandJob(
        order=order,
        credentials=credentials_of(resolved),
        environment=resolved.environment,
        stream=arguments.stream,
        quiet=arguments.quiet,
    )


def _task(arguments: argparse.Namespace) -> Any:
    import msgspec

    from odek.delegation import DelegatedTask
    from odek.errors import ConfigError
    from odek.storage.files import describe

    if arguments.task is None:
        task = DelegatedTask(arguments.goal, context=arguments.context, trust_level="trusted")
    else:
        try:
            with open(arguments.task, "rb") as file:
                data = file.read(TASK_FILE_BYTES + 1)
            task = msgspec.json.decode(data, type=DelegatedTask)
        except OSError as error:
            raise ConfigError(f"--task: cannot read {arguments.task}: {describe(error)}") from None
        except msgspec.MsgspecError as error:
            raise ConfigError(f"--task: {arguments.task}: {error}") from None
    if not task.goal.strip():
        raise ConfigError("the goal is empty; say what is to be done")
    if arguments.timeout is not None:
        task = msgspec.structs.replace(task, timeout_seconds=arguments.timeout)
    return task


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"expected seconds above 0 and at most 3600, got {text!r}")
    return value
