"""What is handed to a subagent, what it may do, and what comes back. Pure."""

from collections.abc import Collection
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from odek.budget import Limits
from odek.config.keys import secret_paths, with_values
from odek.config.settings import BudgetSettings, Config, DangerousSettings
from odek.events import Usage
from odek.trust.policy import DEFAULT_ACTIONS, Action, action_for
from odek.trust.risk import Risk

__all__ = [
    "MAX_TASKS",
    "TASK_SECONDS",
    "Credentials",
    "DelegatedTask",
    "RiskName",
    "TaskReport",
    "TaskResult",
    "TrustLevel",
    "WorkOrder",
    "clamped",
    "config_for",
    "seen_changes",
]

MAX_TASKS = 8
TASK_SECONDS = 120.0
"""A task's wall clock when it names none."""

ITERATIONS = 15
"""Requests of one task: it is a part of something, and whoever wants more of it can ask again."""

RiskName = Literal[
    "safe",
    "local_write",
    "install",
    "network_egress",
    "code_execution",
    "system_write",
    "unknown",
    "destructive",
    "blocked",
]
TrustLevel = Literal["trusted", "untrusted"]

_UNTRUSTED_DENIED = frozenset(
    {
        Risk.INSTALL,
        Risk.NETWORK_EGRESS,
        Risk.CODE_EXECUTION,
        Risk.SYSTEM_WRITE,
        Risk.UNKNOWN,
        Risk.DESTRUCTIVE,
        Risk.BLOCKED,
    }
)


class DelegatedTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One task as its author writes it."""

    goal: Annotated[str, Meta(min_length=1, description="What is to be done, complete in itself.")]
    context: Annotated[str, Meta(description="What it must know; it sees nothing of this conversation.")] = ""
    guidance: Annotated[str, Meta(description="How to go about it, and what to answer.")] = ""
    trust_level: Annotated[
        TrustLevel,
        Meta(
            description="untrusted (the default): its request is data, and it may neither run programs nor "
            "use the network nor write outside the workspace. trusted: it may what you may."
        ),
    ] = "untrusted"
    max_risk: Annotated[
        RiskName | None, Meta(description="The highest class of harm it may do; every higher one is denied.")
    ] = None
    timeout_seconds: Annotated[float, Meta(gt=0, le=3600, description="Its wall clock.")] = TASK_SECONDS
    model: Annotated[str, Meta(description="Another model for it, at the same endpoint.")] = ""
    output_schema: Annotated[
        dict[str, Any] | None, Meta(description="A JSON schema; its answer is then one JSON value that fits.")
    ] = None
    worktree: Annotated[
        bool,
        Meta(
            description="Work in a git worktree of its own at the last commit: uncommitted changes and files "
            "that git ignores are not in it. Nothing changes in the workspace; the diff comes back."
        ),
    ] = False


class WorkOrder(msgspec.Struct, frozen=True, kw_only=True):
    """All that a subagent is given beside its credentials.

    ``config`` is what it runs with, rights and budget included. ``depth`` counts the
    delegations above it. ``taint`` are the sources of the session that it works for.
    """

    name: str
    task: DelegatedTask
    config: Config
    home: str
    workspace: str
    depth: int = 1
    iterations: int = ITERATIONS
    parent_session: str = ""
    parent_pid: int = 0
    taint: tuple[str, ...] = ()
    ingested: bool = False
    usage_file: str = ""


class Credentials(msgspec.Struct, frozen=True):
    """What travels apart from everything else: ``keys`` by the paths of their settings.

    ``key_name`` says where the ``api_key`` came from.
    """

    keys: dict[str, str] = {}
    key_name: str = ""
    secrets: tuple[str, ...] = ()


class TaskReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a subagent is; each report holds everything so far.

    ``text`` is what it said last. ``writes`` are the paths that its tools wrote to, as far
    as they were allowed; ``ran_commands`` that it may have changed others.
    """

    action: str = ""
    text: str = ""
    usage: Usage = Usage()
    iterations: int = 0
    writes: tuple[str, ...] = ()
    ran_commands: bool = False
    taint: tuple[str, ...] = ()
    ingested: bool = False


class TaskResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a task. ``summary`` is the answer, or what there was of it."""

    status: Literal["success", "error"]
    summary: str
    report: TaskReport = TaskReport()
    error: str = ""


def clamped(
    task: DelegatedTask, settings: DangerousSettings, trusted: Collection[Risk], *, asks_nobody: bool
) -> DangerousSettings:
    """Return the rights of a subagent: never more than those of ``settings``, and nobody is asked.

    Args:
        task: Says how far it is trusted.
        settings: The policy of the session that delegates.
        trusted: The classes that the person trusts for the rest of that session.
        asks_nobody: Whether that session itself has nobody to ask; then
            ``non_interactive`` holds for the subagent as it does for the session.
    """
    implied = settings.non_interactive if asks_nobody else "deny"
    ceiling = Risk[task.max_risk.upper()] if task.max_risk is not None else Risk.BLOCKED
    untrusted = task.trust_level == "untrusted"
    classes: dict[str, Action] = {}
    for risk in DEFAULT_ACTIONS:
        action = action_for(risk, settings)
        if action == "prompt":
            action = "allow" if risk in trusted or implied == "allow" else "deny"
        if risk > ceiling or (untrusted and risk in _UNTRUSTED_DENIED):
            action = "deny"
        classes[risk.label] = action
    is_bounded = untrusted or task.max_risk is not None
    return DangerousSettings(
        classes=classes,
        # An exact command would be allowed whatever its class.
        allowlist=() if is_bounded else settings.allowlist,
        denylist=settings.denylist,
        non_interactive="deny",
    )


def config_for(task: DelegatedTask, config: Config, dangerous: DangerousSettings, rest: Limits) -> Config:
    """Return the configuration of a subagent, without any key; ``rest`` is its share of the budget."""
    return msgspec.structs.replace(
        with_values(config, dict.fromkeys(secret_paths(), "")),
        model=task.model or config.model,
        no_agents=config.no_agents or task.trust_level == "untrusted",
        dangerous=dangerous,
        budget=BudgetSettings(tokens=rest.tokens, cost_usd=rest.cost_usd, seconds=rest.seconds),
    )


def seen_changes(
    changed: Collection[str], reports: list[TaskReport]
) -> tuple[list[list[str]], dict[str, list[int]], dict[str, list[int]]]:
    """Say who changed which of the files that were seen to change.

    A file that tools were told to write belongs to the subagents that were told so; any
    other to whoever ran commands.

    Returns:
        For each report its files; the files that more than one wrote, with the indexes of
        those; and the files that more than one may have changed by a command.
    """
    own: list[list[str]] = [[] for _ in reports]
    conflicts: dict[str, list[int]] = {}
    unsure: dict[str, list[int]] = {}
    for path in sorted(changed):
        writers = [index for index, report in enumerate(reports) if path in report.writes]
        runners = [index for index, report in enumerate(reports) if report.ran_commands]
        for index in writers or (runners if len(runners) == 1 else []):
            own[index].append(path)
        if len(writers) > 1:
            conflicts[path] = writers
        elif not writers and len(runners) > 1:
            unsure[path] = runners
    return own, conflicts, unsure
