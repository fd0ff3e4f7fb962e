"""The loop over time: turns that are interrupted, and what the requests of a conversation share."""

from collections.abc import Callable
from itertools import pairwise

import trio
import trio.testing

from odek.agent import Agent
from odek.errors import ContextOverflowError, ModelError, ModelUnavailableError
from odek.events import (
    ContextTrimmed,
    ToolFinished,
    TurnFinished,
)
from odek.llm.model import ModelRequest, ModelResponse
from odek.llm.scripted import ScriptedModel, calls, says
from odek.loop import run_turn
from odek.messages import AssistantMessage
from odek.tools.tool import CallScope, ToolOutput
from tests.support.agents import (
    ECHO,
    FunctionTool,
    MemoryTranscript,
    Note,
    Recorder,
    make_agent,
    never,
    tool_results,
)


async def run_cancelled(agent: Agent, *, then: Callable[[], None] = lambda: None) -> None:
    """Run a turn and cancel it as soon as nothing moves any more; call ``then`` right after that."""
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def cancel() -> None:
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
                then()

            nursery.start_soon(cancel)
            await run_turn(agent, "go")


async def test_cancelling_a_batch_keeps_finished_results_and_answers_every_call() -> None:
    """The session stays valid: real results stay, the others say that they were cancelled."""
    transcript, record = MemoryTranscript(), Recorder()
    model = ScriptedModel([calls(("echo", {"text": "a"}), ("never", {}), ("echo", {"text": "b"}))])
    agent = make_agent(model, ECHO, FunctionTool("never", never), transcript=transcript, emit=record)

    await run_cancelled(agent)

    assert tool_results(transcript) == ["echo a", "cancelled by the user", "echo b"]
    assert transcript.messages[-1] == AssistantMessage("[cancelled by the user]")
    assert transcript.saved[-1] == transcript.messages
    assert record.of(TurnFinished)[0].outcome == "cancelled"


async def test_a_call_that_was_done_when_the_cancellation_came_is_not_told_as_cancelled() -> None:
    """A file that is written cannot be unwritten: the session says what was done."""
    transcript, record = MemoryTranscript(), Recorder()
    cancelled = trio.Event()

    async def write(note: Note, scope: CallScope) -> ToolOutput:
        with trio.CancelScope(shield=True):  # as a thread that writes is not abandoned
            await cancelled.wait()
        return ToolOutput("written", changed=("a.txt",))

    model = ScriptedModel([calls(("write", {}), ("never", {}))])
    tools = (FunctionTool("write", write), FunctionTool("never", never))
    agent = make_agent(model, *tools, transcript=transcript, emit=record)

    await run_cancelled(agent, then=cancelled.set)

    assert tool_results(transcript) == ["written", "cancelled by the user"]
    assert {event.name: event.outcome for event in record.of(ToolFinished)} == {
        "write": "ok",
        "never": "cancelled",
    }


async def test_cancelling_an_answer_keeps_what_was_shown() -> None:
    """The text that had arrived is in the session, marked as cut."""
    transcript = MemoryTranscript()

    class Half(ScriptedModel):
        async def complete(self, request: ModelRequest, on_event: object) -> ModelResponse:
            await super().complete(request, on_event)  # type: ignore[arg-type]
            await trio.sleep_forever()

    await run_cancelled(make_agent(Half([says("the beginning")]), transcript=transcript))

    assert transcript.saved[-1][-1] == AssistantMessage("the beginning\n\n[cancelled by the user]")


async def test_a_failing_model_ends_the_turn_with_its_reason_recorded() -> None:
    """The error is a value of the result; the session can go on."""
    transcript = MemoryTranscript()
    model = ScriptedModel([ModelUnavailableError("no answer from example")])

    result = await run_turn(make_agent(model, transcript=transcript), "go")

    assert result.outcome == "failed"
    assert isinstance(result.error, ModelError)
    assert transcript.messages[-1] == AssistantMessage("[no answer: no answer from example]")


async def test_an_overflow_is_fitted_harder_once() -> None:
    """A provider that finds the request too long gets a much shorter one, and no third."""
    model = ScriptedModel(
        [
            calls(("echo", {"text": "x" * 5000})),
            calls(("echo", {"text": "y"})),
            ContextOverflowError("too long"),
            says("fits now"),
        ]
    )
    record = Recorder()

    result = await run_turn(make_agent(model, ECHO, emit=record), "go")

    assert result.answer == "fits now"
    assert len(record.of(ContextTrimmed)) == 1
    assert len(model.requests[-1].messages) < len(model.requests[-2].messages)


async def test_a_refusal_of_the_size_is_told_in_the_words_of_the_provider() -> None:
    """When nothing can be left out, and when half of it is refused too, with what to do."""
    first = await run_turn(make_agent(ScriptedModel([ContextOverflowError("host answered 413: big")])), "go")
    too_big = ContextOverflowError("host answered 413: still too big")
    model = ScriptedModel(
        [calls(("echo", {"text": "x"})), calls(("echo", {"text": "y"})), ContextOverflowError("big"), too_big]
    )
    second = await run_turn(make_agent(model, ECHO), "go")

    advice = "start a new session or attach less"
    assert str(first.error) == f"host answered 413: big; nothing more can be left out; {advice}"
    assert str(second.error) == f"host answered 413: still too big; {advice}"


async def test_a_window_that_is_too_small_is_told_as_it_is() -> None:
    """What the request needs and what fits, not half of it."""
    result = await run_turn(make_agent(ScriptedModel([says("x")], context_window=100)), "word " * 100)

    assert "more than the 75 that fit; nothing more can be left out" in str(result.error)


async def test_earlier_messages_never_change_between_requests() -> None:
    """Each request begins with the whole of the one before: what a provider has cached stays valid."""
    first, second = calls(("echo", {"text": "1"})), calls(("echo", {"text": "2"}))
    model = ScriptedModel([first, second, says("done"), says("more")])
    agent = make_agent(model, ECHO)

    await run_turn(agent, "one")
    await run_turn(agent, "two")
    for earlier, later in zip(model.requests, model.requests[1:], strict=False):
        assert later.messages[: len(earlier.messages)] == earlier.messages
        assert later.tools == earlier.tools


async def test_a_trimmed_conversation_keeps_its_beginning_from_turn_to_turn() -> None:
    """What was left out stays out in the next turns and in another process, until there is no room again."""
    window, size = 4_000, 700
    transcript, record = MemoryTranscript(), Recorder()
    script = [says(f"{number} " + "x" * size) for number in range(40)]
    first, second = ScriptedModel(script[:30], context_window=window), ScriptedModel(script[30:])
    second.context_window = window
    for model in (first, second):
        agent = make_agent(model, ECHO, transcript=transcript, emit=record)
        while model.items_left:
            await run_turn(agent, "question " + "y" * size)

    requests = [*first.requests, *second.requests]
    changed = [
        at
        for at, (earlier, later) in enumerate(pairwise(requests))
        if later.messages[: len(earlier.messages)] != earlier.messages
    ]
    assert len(record.of(ContextTrimmed)) == len(changed)
    assert 2 <= len(changed) <= 40 / 2
    assert len(first.requests) - 1 not in changed


async def test_a_result_that_the_window_has_no_room_for_does_not_end_the_turn() -> None:
    """It is shortened for the model, which is told so, and whole in the session."""

    async def long(note: Note, scope: CallScope) -> str:
        await trio.lowlevel.checkpoint()
        return "x" * 50_000

    record, transcript = Recorder(), MemoryTranscript()
    model = ScriptedModel([calls(("long", {})), says("done")], context_window=8_000)

    result = await run_turn(
        make_agent(model, FunctionTool("long", long), transcript=transcript, emit=record), "go"
    )

    assert result.answer == "done"
    sent = model.requests[-1].messages[-1]
    assert "bytes left out …]" in sent.content
    assert len(sent.content) < 8_000 * 4
    assert [event.shortened for event in record.of(ContextTrimmed)] == [1]
    assert tool_results(transcript) == ["x" * 50_000]


async def test_a_provider_that_found_a_conversation_too_long_is_not_sent_it_again() -> None:
    """Where the window is not known, the next turn begins with what fitted in the one before."""
    model = ScriptedModel(
        [
            calls(("echo", {"text": "x" * 5000})),
            calls(("echo", {"text": "y"})),
            ContextOverflowError("too long"),
            says("fits now"),
            says("and still does"),
        ]
    )
    agent = make_agent(model, ECHO)

    await run_turn(agent, "go")
    await run_turn(agent, "on")

    fitted, later = model.requests[-2:]
    assert later.messages[: len(fitted.messages)] == fitted.messages
