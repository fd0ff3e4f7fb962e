"""The `delegate_tasks` tool: tasks that subagents do side by side, each in a process of its own."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Protocol

import msgspec
from msgspec import Meta

from odek.delegation import MAX_TASKS, DelegatedTask
from odek.errors import ToolError
from odek.text import clip_line
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.trust.effects import Effects
from odek.trust.secrets import mask

if TYPE_CHECKING:
    from odek.tools.fan_out import Delegator, Standing

__all__ = ["DelegateTool", "Delegation"]


class Delegation(Protocol):
    """What the tool works with: loaded, and got ready, once a call is on its way."""

    def expect(self) -> None:
        """Get ready for a call, without waiting."""

    async def delegator(self) -> "Delegator":
        """Return what a call works with."""
        ...


class DelegateArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tasks."""

    tasks: Annotated[
        list[DelegatedTask],
        Meta(min_length=1, max_length=MAX_TASKS, description="Independent tasks; they run side by side."),
    ]
    description: Annotated[str, Meta(description="What all of it is for, in a few words.")] = ""


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

    def __init__(self, delegation: Delegation) -> None:
        self._delegation = delegation

    def expect(self) -> None:
        """Have subagents made ready while the model writes their tasks."""
        self._delegation.expect()

    async def prepare(self, arguments: DelegateArguments) -> PreparedCall:
        """Check every task; nothing starts before all of them are right."""
        self._delegation.expect()
        delegator = await self._delegation.delegator()
        tasks = [delegator.narrowed(task) for task in arguments.tasks]
        for number, task in enumerate(tasks, 1):
            if not task.goal.strip():
                raise ToolError(f"delegate_tasks: the goal of task {number} is empty; say what is to be done")
            if task.output_schema is not None:
                from odek.output_schema import unsupported  # rarely asked for

                if problem := unsupported(task.output_schema):
                    raise ToolError(f"delegate_tasks: the output_schema of task {number}: {problem}")
        if any(task.worktree for task in tasks):
            await delegator.repository()
        count = len(tasks)
        goals = "; ".join(clip_line(mask(task.goal), 60) for task in tasks)
        return PreparedCall(
            f"{count} task{'s' if count > 1 else ''}: {arguments.description or goals}",
            Effects(spawns_agents=True, outside=True),
            partial(_run, delegator, tasks, delegator.standing()),
            preview="\n".join(f"{n}. ({_manner(task)}) {task.goal}" for n, task in enumerate(tasks, 1)),
        )


async def _run(
    delegator: "Delegator", tasks: Sequence[DelegatedTask], asked: "Standing", scope: CallScope
) -> ToolOutput:
    from odek.tools.fan_out import FanOut

    # Running this very call taints the session, but its tasks were written before that.
    standing = msgspec.structs.replace(delegator.standing(), taint=asked.taint, ingested=asked.ingested)
    return await FanOut(delegator, tasks, standing, scope).run()


def _manner(task: DelegatedTask) -> str:
    return task.trust_level + (", in a worktree" if task.worktree else "")
