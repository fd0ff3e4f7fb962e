"""The ``plan`` tool, and the plan itself: what the agent means to do, step by step."""

from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
import trio
from msgspec import Meta

from odek.errors import ToolError
from odek.messages import AssistantMessage, Message
from odek.text import clip_line, without_surrogates
from odek.tools.arguments import decode_arguments
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput, argument_schema
from odek.trust.effects import Effects

__all__ = ["Plan", "PlanArguments", "PlanStep", "PlanTool", "StepState"]

StepState = Literal["open", "doing", "done", "dropped"]

_MARKS: dict[StepState, str] = {"open": " ", "doing": ">", "done": "x", "dropped": "-"}


class PlanStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a plan."""

    title: Annotated[str, Meta(min_length=1, max_length=200, description="What is to be done, in one line.")]
    state: Annotated[StepState, Meta(description="How far it is.")] = "open"


class Plan:
    """The plan of one session. ``on_change`` gets (state, title) of each step when they are replaced."""

    def __init__(
        self, on_change: Callable[[tuple[tuple[str, str], ...]], None] = lambda _steps: None
    ) -> None:
        self.steps: tuple[PlanStep, ...] = ()
        self._on_change = on_change

    def replace(self, steps: Sequence[PlanStep]) -> None:
        """Put ``steps`` in the place of all that were there."""
        self.steps = tuple(steps)
        self._on_change(tuple((step.state, step.title) for step in self.steps))

    def restore(self, messages: Sequence[Message]) -> None:
        """Take up the plan that a conversation last wrote down; tells nobody, for nothing changed."""
        schema = argument_schema(PlanArguments)
        for message in reversed(messages):
            for call in reversed(message.tool_calls) if isinstance(message, AssistantMessage) else ():
                if call.name == PlanTool.name:
                    try:
                        written = decode_arguments(call.arguments, PlanArguments, schema)
                    except msgspec.DecodeError:
                        continue  # a call that was refused
                    self.steps = tuple(written.steps)
                    return

    def open_titles(self) -> tuple[str, ...]:
        """Return the titles of the steps that are still to be done."""
        return tuple(step.title for step in self.steps if step.state in {"open", "doing"})

    def render(self) -> str:
        """Return the plan as lines such as ``[x] 1. Read the code``, "" when there is none."""
        lines = [
            f"[{_MARKS[step.state]}] {number}. {step.title}" for number, step in enumerate(self.steps, 1)
        ]
        return "\n".join(lines) or "the plan is empty"


class PlanArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole plan."""

    steps: Annotated[
        list[PlanStep], Meta(max_length=30, description="All steps in order, those already done included.")
    ]


class PlanTool(Tool[PlanArguments]):
    """Replaces ``plan``."""

    name: ClassVar[str] = "plan"
    description: ClassVar[str] = (
        "Write down the plan for a task of several steps, and again whenever a step's state changes; each "
        "call replaces the whole plan. [ ] is open, [>] doing, [x] done, [-] dropped."
    )
    arguments_type = PlanArguments

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    async def prepare(self, arguments: PlanArguments) -> PreparedCall:
        """Put each title on one line; see the base class."""
        await trio.lowlevel.checkpoint()
        steps = [
            msgspec.structs.replace(step, title=clip_line(without_surrogates(step.title), 200))
            for step in arguments.steps
        ]
        if blank := next((number for number, step in enumerate(steps, 1) if not step.title), None):
            raise ToolError(f"plan: step {blank} has a blank title")

        async def run(_scope: CallScope) -> ToolOutput:
            await trio.lowlevel.checkpoint()
            self._plan.replace(steps)
            return ToolOutput(self._plan.render() or "the plan is empty")

        done = sum(step.state == "done" for step in steps)
        return PreparedCall(f"{len(steps)} steps, {done} done", Effects(), run)
