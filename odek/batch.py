"""One batch of tool calls: prepared, admitted, run side by side, answered in call order."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, Protocol

import msgspec
import trio

from odek.errors import TargetChangedError, ToolError
from odek.events import (
    Event,
    Notice,
    ToolFinished,
    ToolOutputLine,
    ToolRecovery,
    ToolRunning,
    ToolStarted,
    Usage,
)
from odek.ledger import Ledger
from odek.llm.arguments import readable_arguments
from odek.messages import ToolCall, ToolMessage
from odek.text import clip_line, clip_middle, first_line, without_surrogates
from odek.tools.tool import ApprovedBy, CallScope, PreparedCall, Tool, ToolOutput

__all__ = ["Admission", "Batch", "Gate", "GateRequest"]

FAILURES_BEFORE_HINT = 3

SUMMARY_CHARACTERS = 120
"""Of what a call does, as a person is told; a line on a terminal. No measurement behind it."""

DIFF_CHARACTERS = 256 * 1024
"""Of a change as it is reported. Nobody reads more there, and an approval shows all of it."""

DIFF_MARGIN_CHARACTERS = 16 * 1024
"""Masked beyond that, so that a credential on the cut is known for one: the longest is about 12 KB."""

RUNNING_TICK_SECONDS = 5.0
"""How often a call that is still running reports itself."""

LEFT_BYTES = 8192
"""Of the output of a cancelled call: enough to see where it was. No measurement behind it."""

Outcome = Literal["ok", "error", "denied", "cancelled"]


class GateRequest(msgspec.Struct, frozen=True):
    """A prepared call that wants to run."""

    call_id: str
    tool: str
    prepared: PreparedCall


class Admission(msgspec.Struct, frozen=True):
    """May the call run, and how is its result to be treated?

    ``reason`` tells the model why not. ``fence_source`` names the origin of outside
    content; the result is then fenced. None leaves it as it is. ``by`` says who decided,
    ``why`` in a few words for the person. ``changed`` names a file that the decision rests on
    and that has changed since; it touches the disk.
    """

    allowed: bool
    reason: str = ""
    fence_source: str | None = None
    by: ApprovedBy = "policy"
    why: str = ""
    changed: Callable[[], str | None] | None = None


class Gate(Protocol):
    """Decides which calls may run; asks a person where the policy says so."""

    async def admit(self, requests: Sequence[GateRequest]) -> Sequence[Admission]:
        """Return one admission for each request, in order."""
        ...

    def fence(self, content: str, source: str) -> str:
        """Mark ``content`` as data from ``source``."""
        ...


class _Call:
    """A call on its way through the batch; ``summary`` is one line for a person, secrets masked."""

    def __init__(self, call: ToolCall, summary: str) -> None:
        self.summary = summary
        self.id = call.id
        self.name = call.name
        self.arguments = call.arguments
        self.tool: Tool[msgspec.Struct] | None = None
        self.prepared: PreparedCall | None = None
        self.admission: Admission | None = None
        self.output: ToolOutput | None = None
        self.outcome: Outcome = "error"
        self.message: ToolMessage | None = None
        self.left = ""  # of the content, by a call that was cancelled
        self.started = trio.current_time()

    def leave(self, content: str) -> None:
        """Keep what there is of the content of a call that is being cancelled."""
        self.left = content

    def fail(self, content: str, outcome: Outcome = "error") -> None:
        """End the call with ``content`` as what the model reads."""
        self.output = ToolOutput(content, is_error=True)
        self.outcome = outcome


class Batch:
    """Runs the tool calls of one turn, batch by batch."""

    def __init__(
        self,
        tools: Mapping[str, Tool[msgspec.Struct]],
        gate: Gate,
        emit: Callable[[Event], None],
        mask: Callable[[str], str],
        max_parallel: int,
        ledger: Ledger,
        spend: Callable[[Usage], None],
        unavailable: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._tools = tools
        self._unavailable = unavailable
        self._gate = gate
        self._emit = emit
        self._mask = mask
        self._limiter = trio.CapacityLimiter(max_parallel)
        self._ledger = ledger
        self._spend = spend
        self._failures: Counter[tuple[str, str]] = Counter()
        self._current: list[_Call] = []
        self.actions: list[tuple[str, str]] = []
        """Name and summary of each call that succeeded, secrets masked."""

    async def run(self, calls: Sequence[ToolCall]) -> list[ToolMessage]:
        """Run ``calls`` and return their results in call order.

        Calls that write go one after another, in call order; the rest side by side.
        Cancelled, it raises once every running call has ended; see ``abandon``.
        """
        batch = [_Call(call, self._line(readable_arguments(call.arguments))) for call in calls]
        self._current = batch
        for call in batch:
            await self._prepare(call)
        await self._admit(batch)
        ready = [call for call in batch if call.output is None]
        for call in batch:
            if call not in ready:
                self._complete(call)
        writers = [call for call in ready if self._is_writer(call)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_in_order, writers)
            for call in ready:
                if call not in writers:
                    nursery.start_soon(self._run, call)
        return self.abandon("the call did not end")

    def abandon(self, reason: str) -> list[ToolMessage]:
        """Return the results of the batch so far, in call order, ``reason`` where there is none."""
        batch, self._current = self._current, []
        return [call.message or ToolMessage(self._left(call) + reason, call.id) for call in batch]

    def _left(self, call: _Call) -> str:
        """Return what a cancelled call has to show, masked while it is whole, on lines of its own; or ""."""
        content = clip_middle(self._mask(without_surrogates(call.left)), LEFT_BYTES).strip()
        source = call.admission.fence_source if call.admission else None
        if content and source is not None:
            content = self._gate.fence(content, self._mask(source))
        return f"{content}\n" if content else ""

    async def _prepare(self, call: _Call) -> None:
        call.tool = self._tools.get(call.name)
        if call.tool is None:
            names = ", ".join(self._tools)
            reason = self._unavailable.get(call.name) or f"there is no tool named {call.name!r}"
            return call.fail(f"{reason}; the tools are: {names}")
        try:
            prepared = await call.tool.prepare_json(call.arguments)
            call.summary = self._line(prepared.summary)
            call.prepared = msgspec.structs.replace(prepared, summary=call.summary)
        except ToolError as error:
            call.fail(str(error))
        except Exception as error:  # noqa: BLE001 - a faulty tool must not take the turn down
            call.fail(self._unexpected(call, error))

    async def _admit(self, batch: Sequence[_Call]) -> None:
        asking = [call for call in batch if call.prepared is not None and call.output is None]
        requests = [GateRequest(call.id, call.name, call.prepared) for call in asking if call.prepared]
        if not requests:
            return
        for call, admission in zip(asking, await self._gate.admit(requests), strict=True):
            call.admission = admission
            if not admission.allowed:
                call.fail(admission.reason, "denied")

    def _is_writer(self, call: _Call) -> bool:
        if call.tool is None or call.prepared is None:
            return False
        effects = call.prepared.effects
        return call.tool.exclusive or bool(effects.writes) or effects.writes_memory

    async def _run_in_order(self, calls: Sequence[_Call]) -> None:
        for call in calls:
            await self._run(call)

    async def _run(self, call: _Call) -> None:
        async with self._limiter:
            call.started = trio.current_time()
            self._emit(ToolStarted(call.id, call.name, call.summary))
            try:
                await self._run_watched(call)
                if call.output is None:  # the target changed: look again, ask again, once
                    await self._prepare(call)
                    await self._admit([call])
                    if call.output is None:
                        await self._run_watched(call, last_try=True)
            except BaseException:
                if call.output is None:
                    self._report(call, "cancelled", "", "")
                else:  # the cancellation came when it was done: it must not be said that it was not
                    self._complete(call)
                raise
        self._complete(call)

    async def _run_watched(self, call: _Call, *, last_try: bool = False) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tick, call)
            await self._execute(call, last_try=last_try)
            nursery.cancel_scope.cancel()

    async def _tick(self, call: _Call) -> None:
        while True:
            await trio.sleep(RUNNING_TICK_SECONDS)
            self._emit(ToolRunning(call.id, call.name, trio.current_time() - call.started))

    async def _execute(self, call: _Call, *, last_try: bool) -> None:
        if call.tool is None or call.prepared is None:
            return
        scope = CallScope(
            call.id,
            lambda line: self._emit(ToolOutputLine(call.id, self._mask(line))),
            self._spend,
            call.admission.by if call.admission else "policy",
            call.leave,
        )
        limit_seconds = call.tool.timeout_seconds
        try:
            with trio.move_on_after(limit_seconds if limit_seconds is not None else float("inf")) as limit:
                await _check_unchanged(call.admission)
                call.output = await call.prepared.run(scope)
                call.outcome = "error" if call.output.is_error else "ok"
            if limit.cancelled_caught:
                call.fail(f"{call.name} was ended after its limit of {limit_seconds:g} s")
        except TargetChangedError as error:
            if last_try:
                call.fail(str(error))
        except ToolError as error:
            call.fail(str(error))
        except Exception as error:  # noqa: BLE001 - a faulty tool must not take the batch down
            call.fail(self._unexpected(call, error))

    def _line(self, text: str) -> str:
        """Return ``text`` as one line; masked while it is whole: half a credential is not known for one."""
        return clip_line(self._mask(text), SUMMARY_CHARACTERS)

    def _unexpected(self, call: _Call, error: Exception) -> str:
        text = f"{call.name} failed unexpectedly: {type(error).__name__}: {error}"
        self._emit(Notice(self._mask(text), "warning"))
        return text

    def _complete(self, call: _Call) -> None:
        """Turn what the call left behind into what the model reads, and report it."""
        output = call.output or ToolOutput(f"{call.name} returned nothing", is_error=True)
        content = self._mask(without_surrogates(output.content))
        if not output.is_error:
            self._ledger.record(output.changed)
            self.actions.append((call.name, call.summary))
        hint = self._hint(call, content) if call.outcome == "error" else ""
        if call.outcome == "ok":
            self._failures = Counter({key: n for key, n in self._failures.items() if key[0] != call.name})
        denied = call.admission is not None and call.outcome == "denied"
        preview = self._mask(call.admission.why) if denied and call.admission else first_line(content)
        self._report(call, call.outcome, preview, self._reported_diff(output.diff))
        source = call.admission.fence_source if call.admission else None
        if source is not None and call.outcome != "denied":
            content = self._gate.fence(content, self._mask(source))
        call.message = ToolMessage(content + hint, call.id)

    def _reported_diff(self, diff: str) -> str:
        """Return the beginning of ``diff``, masked: to mask all of a large file's would hold up the loop."""
        more = len(diff) - DIFF_CHARACTERS
        if more <= 0:
            return self._mask(diff)
        begin = self._mask(diff[: DIFF_CHARACTERS + DIFF_MARGIN_CHARACTERS])[:DIFF_CHARACTERS]
        return f"{begin}\n[… {more:,} more characters …]\n"

    def _hint(self, call: _Call, content: str) -> str:
        """Count equal failures; return the corrective hint when they are too many."""
        key = (call.name, clip_line(content, 200))
        self._failures[key] += 1
        if self._failures[key] < FAILURES_BEFORE_HINT:
            return ""
        failures = self._failures.pop(key)
        self._emit(ToolRecovery(call.name, failures))
        return (
            f"\n\n[{call.name} has now failed {failures} times in this same way. Do not repeat the call: "
            "check its arguments against the schema, look at the current state first, or take another way.]"
        )

    def _report(self, call: _Call, outcome: Outcome, preview: str, diff: str) -> None:
        seconds = trio.current_time() - call.started
        self._emit(ToolFinished(call.id, call.name, call.summary, outcome, seconds, preview, diff))


async def _check_unchanged(admission: Admission | None) -> None:
    """See that what was decided about is what will be done.

    Raises:
        TargetChangedError: a file that the decision rests on has changed.
    """
    if admission is None or admission.changed is None:
        return
    changed = await trio.to_thread.run_sync(admission.changed)
    if changed is not None:
        raise TargetChangedError(f"{changed} changed while the call waited; look at it and call again")
