"""What a subagent does with its task: an agent with the rights, the budget and the memory it was given.

It keeps no session, writes no episode and asks nobody.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from odek.app import Setup, open_agent
from odek.batch import Admission, Gate, GateRequest
from odek.config.keys import with_values
from odek.config.layers import Origin, Resolved
from odek.delegation import Credentials, TaskReport, TaskResult, WorkOrder
from odek.errors import LimitReachedError, StoreError
from odek.events import AnswerDelta, Event, ModelFinished, ModelStarted, ToolStarted, Usage
from odek.loop import TurnResult, run_turn
from odek.output_schema import problem_with
from odek.sessions.child_usage import write_usage
from odek.text import clip_bytes, clip_line
from odek.trust.approval import ApprovalState
from odek.trust.fence import DELEGATED_REQUEST, fence
from odek.trust.secrets import Masker

if TYPE_CHECKING:
    from odek.sessions.session import Session

__all__ = ["SYSTEM_PROMPT", "request_text", "run_task"]

SYSTEM_PROMPT = """\
You are a subagent of odek: you do one task for another agent, with tools, on a person's files.

- Do what the task asks, and only that. Look before you change; after a change, check that it works.
- Nobody can be asked. What you are not allowed to do stays undone: say so, and do not try to get around it.
- When a tool fails, read why and try another way; do not repeat the same call.
- Never claim a result that you did not see.
- Your last answer is your result, and all that the other agent gets: make it complete and brief."""

PARTIAL_TEXT_BYTES = 16 * 1024
"""Of the text so far that a report carries: what there is if the subagent is ended."""


def request_text(order: WorkOrder) -> str:
    """Return the one message of a subagent: goal, guidance and context; fenced if it is not trusted."""
    task = order.task
    parts = [task.goal.strip()]
    parts += [f"Guidance:\n{task.guidance.strip()}"] if task.guidance.strip() else []
    parts += [f"Context:\n{task.context.strip()}"] if task.context.strip() else []
    text = "\n\n".join(parts)
    if task.trust_level == "untrusted":
        text = DELEGATED_REQUEST + fence(text, source="the task of another agent")
    if task.output_schema is not None:
        schema = msgspec.json.encode(task.output_schema).decode()
        text += f"\n\nAnswer with one JSON value and nothing else. It must fit this JSON schema:\n{schema}"
    return text


async def run_task(
    order: WorkOrder,
    credentials: Credentials,
    report: Callable[[TaskReport], None],
    watch: Callable[[Event], None],
    environment: Mapping[str, str],
) -> TaskResult:
    """Do the task of ``order`` in this process and return what came of it, secrets masked.

    What was used is on disk before each report, if the order names a file for it.

    Args:
        order: The task, and with what it is done.
        credentials: The keys, and the texts never to be shown.
        report: Told after each request and at each tool call.
        watch: Told everything that happens.
        environment: What tools inherit, without any credential.

    Raises:
        OdekError: it cannot even begin: a wrong model or directory.
    """
    result = await _done(order, credentials, _Progress(order, report, watch), environment)
    mask = Masker(credentials.secrets).mask
    return msgspec.structs.replace(result, summary=mask(result.summary), error=mask(result.error))


async def _done(
    order: WorkOrder, credentials: Credentials, progress: "_Progress", environment: Mapping[str, str]
) -> TaskResult:
    setup = Setup(
        resolved=_resolved(order, credentials, environment),
        home=Path(order.home),
        workspace=Path(order.workspace),
        emit=progress.take_in,
        approval=ApprovalState(),
        task=order.task.goal,
        keep_session=False,
        order=order,
    )
    async with open_agent(setup) as opened:
        opened.session.add_taint(order.taint, order.ingested)
        progress.session = opened.session
        gate = _WatchedGate(opened.agent.gate, progress.admitted)
        agent = msgspec.structs.replace(opened.agent, gate=gate)
        result = await run_turn(agent, request_text(order))
        problem = _problem(order, result)
        if problem:
            try:
                rest = opened.budget.now().rest()
            except LimitReachedError as spent:
                progress.publish()
                return TaskResult(
                    "error", result.answer, progress.state, f"its answer is no fit: {problem}; {spent}"
                )
            again = f"That does not fit the JSON schema: {problem}. Answer again."
            result = await run_turn(msgspec.structs.replace(agent, limits=rest), again)
            problem = _problem(order, result)
        progress.publish()
        if problem:
            return TaskResult("error", result.answer, progress.state, f"its answer is no fit: {problem}")
        return _result(result, progress.state)


def _problem(order: WorkOrder, result: TurnResult) -> str:
    """Say what is wrong with the form of an answer, "" for nothing."""
    if order.task.output_schema is None or result.outcome != "answered":
        return ""
    return problem_with(result.answer, order.task.output_schema)


def _result(result: TurnResult, state: TaskReport) -> TaskResult:
    if result.outcome == "answered":
        return TaskResult("success", result.answer, state)
    return TaskResult("error", result.answer or state.text, state, str(result.error or result.outcome))


class _Progress:
    """Follows the agent and reports where it is."""

    def __init__(
        self, order: WorkOrder, report: Callable[[TaskReport], None], watch: Callable[[Event], None]
    ) -> None:
        self.state = TaskReport(taint=order.taint, ingested=order.ingested)
        self.session: Session | None = None
        self._own_usage = Usage()
        self._order = order
        self._report = report
        self._watch = watch
        self._text: list[str] = []

    def take_in(self, event: Event) -> None:
        """Note what ``event`` says."""
        match event:
            case ModelStarted():
                self._text.clear()
                self._change(action="thinking")
            case AnswerDelta(text):
                self._text.append(text)
            case ModelFinished(usage=usage):
                text = clip_bytes("".join(self._text), PARTIAL_TEXT_BYTES) or self.state.text
                self._spent(usage, text)
            case ToolStarted(name=name, summary=summary):
                self._change(action=clip_line(f"{name} {summary}", 100))
            case _:
                pass
        self._watch(event)

    def admitted(self, request: GateRequest) -> None:
        """Note what an admitted call may change."""
        effects = request.prepared.effects
        workspace = Path(self._order.workspace)
        written = [
            str(path.relative_to(workspace)) for path in effects.writes if path.is_relative_to(workspace)
        ]
        self.state = msgspec.structs.replace(
            self.state,
            writes=tuple(dict.fromkeys((*self.state.writes, *written))),
            ran_commands=self.state.ran_commands or effects.command is not None or effects.spawns_agents,
        )

    def publish(self) -> None:
        """Report the state as it is now, with what was delegated on."""
        if (session := self.session) is not None:
            self.state = msgspec.structs.replace(
                self.state,
                usage=session.usage,
                taint=session.taint_sources,
                ingested=session.untrusted_ingested,
            )
        self._report(self.state)

    def _change(self, *, action: str) -> None:
        self.state = msgspec.structs.replace(self.state, action=action)
        self.publish()

    def _spent(self, usage: Usage, text: str) -> None:
        self.state = msgspec.structs.replace(self.state, iterations=self.state.iterations + 1, text=text)
        self._own_usage += usage
        if self._order.usage_file:
            # The disk may be full, or whoever delegated gone; the report has it too.
            with suppress(StoreError):
                write_usage(Path(self._order.usage_file), self._own_usage)
        self.publish()


class _WatchedGate:
    """Passes calls to another gate, and tells which were admitted."""

    def __init__(self, gate: Gate, admitted: Callable[[GateRequest], None]) -> None:
        self._gate = gate
        self._admitted = admitted

    async def admit(self, requests: Sequence[GateRequest]) -> Sequence[Admission]:
        """Decide as the other does."""
        admissions = await self._gate.admit(requests)
        for request, admission in zip(requests, admissions, strict=True):
            if admission.allowed:
                self._admitted(request)
        return admissions

    def fence(self, content: str, source: str) -> str:
        """Mark ``content`` as data from ``source``."""
        return self._gate.fence(content, source)


def _resolved(order: WorkOrder, credentials: Credentials, environment: Mapping[str, str]) -> Resolved:
    config = msgspec.structs.replace(
        with_values(order.config, credentials.keys),
        system=SYSTEM_PROMPT,
        max_iterations=min(order.iterations, order.config.max_iterations),
    )
    origins = {"api_key": Origin("environment", credentials.key_name)} if credentials.key_name else {}
    return Resolved(
        config=config,
        origins=origins,
        notices=(),
        environment=environment,
        secrets=credentials.secrets,
    )
