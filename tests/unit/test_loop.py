"""The loop: from a question to an answer, by way of tools."""

import pytest
import trio
import trio.testing

from odek.batch import DIFF_CHARACTERS
from odek.budget import Limits
from odek.events import (
    AnswerDelta,
    BudgetWarning,
    Notice,
    ReplyLedgerMismatch,
    ToolFinished,
    ToolRecovery,
    TurnFinished,
    Usage,
)
from odek.llm.scripted import ScriptedModel, calls, says
from odek.loop import run_turn
from odek.messages import AssistantMessage, UserMessage
from odek.tools.tool import CallScope, PreparedCall, ToolOutput
from odek.trust.effects import Effects
from tests.support.agents import (
    ECHO,
    FunctionTool,
    MemoryTranscript,
    Note,
    OpenGate,
    Recorder,
    echo,
    make_agent,
    never,
    tool_results,
)
from tests.support.waiting import HANG_SECONDS


async def test_a_plain_answer_ends_the_turn_and_is_saved_before_it_is_reported() -> None:
    """Question and answer are on disk when the turn says that it is over."""
    transcript, record = MemoryTranscript(), Recorder()

    result = await run_turn(
        make_agent(ScriptedModel([says("four")]), transcript=transcript, emit=record), "2+2?"
    )

    assert (result.outcome, result.answer) == ("answered", "four")
    assert transcript.saved[-1][1:] == [UserMessage("2+2?"), AssistantMessage("four")]
    assert isinstance(record.events[-1], TurnFinished)
    assert "".join(event.text for event in record.of(AnswerDelta)) == "four"


async def test_results_come_in_call_order_whatever_finishes_first() -> None:
    """Side by side does not mean in any order."""
    gate = trio.Event()

    async def waits_for_second(note: Note, scope: CallScope) -> str:
        if note.text == "first":
            await gate.wait()
        else:
            gate.set()
        return note.text

    model = ScriptedModel([calls(("t", {"text": "first"}), ("t", {"text": "second"})), says("done")])
    transcript = MemoryTranscript()

    with trio.fail_after(HANG_SECONDS):
        await run_turn(make_agent(model, FunctionTool("t", waits_for_second), transcript=transcript), "go")

    assert tool_results(transcript) == ["first", "second"]


async def test_calls_that_write_run_one_after_another_in_call_order() -> None:
    """Two changes asked for together never overlap."""
    log: list[str] = []

    async def write(note: Note, scope: CallScope) -> ToolOutput:
        log.append(f"+{note.text}")
        await trio.testing.wait_all_tasks_blocked()
        log.append(f"-{note.text}")
        return ToolOutput("ok", changed=(note.text,))

    tool = FunctionTool("w", write, effects=Effects(writes_memory=True))
    model = ScriptedModel([calls(*(("w", {"text": name}) for name in "abc")), says("wrote a, b and c")])

    await run_turn(make_agent(model, tool), "go")

    assert log == ["+a", "-a", "+b", "-b", "+c", "-c"]


async def test_a_tool_learns_that_it_will_be_called_before_the_call_is_whole() -> None:
    """It may get ready while the model still writes."""
    log: list[str] = []

    class Expecting(FunctionTool):
        def expect(self) -> None:
            log.append("expected")

        async def prepare(self, arguments: Note) -> PreparedCall:
            log.append("asked")
            return await super().prepare(arguments)

    model = ScriptedModel([calls(("echo", {"text": "a"}), text="I will call it"), says("done")])

    await run_turn(make_agent(model, Expecting("echo", echo)), "go")

    assert log == ["expected", "asked"]


async def test_no_more_calls_run_at_once_than_allowed() -> None:
    """The limiter holds across one batch."""
    running, most = 0, 0

    async def count(note: Note, scope: CallScope) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await trio.testing.wait_all_tasks_blocked()
        running -= 1
        return "ok"

    model = ScriptedModel([calls(*(("c", {}) for _ in range(8))), says("done")])

    await run_turn(make_agent(model, FunctionTool("c", count), max_parallel=3), "go")

    assert most == 3


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("echo", '{"times": "two"}', "echo: expected `int`, got `str`, in `times`"),
        ("echo", '{"txt": "x"}', "echo: object contains unknown field `txt`"),
        ("echo", '{"text": ', "not valid JSON"),
        ("ehco", "{}", "there is no tool named 'ehco'; the tools are: echo"),
    ],
)
async def test_a_bad_call_comes_back_as_one_sentence(name: str, arguments: str, text: str) -> None:
    """The model is told what is wrong and goes on."""
    transcript = MemoryTranscript()
    model = ScriptedModel([calls((name, arguments)), says("sorry")])

    result = await run_turn(make_agent(model, ECHO, transcript=transcript), "go")

    assert result.answer == "sorry"
    assert text in tool_results(transcript)[0]


async def test_a_tool_that_raises_is_a_result_and_its_siblings_go_on() -> None:
    """A faulty tool takes neither the batch nor the turn down."""

    async def broken(note: Note, scope: CallScope) -> str:
        raise KeyError("oops")

    transcript, record = MemoryTranscript(), Recorder()
    model = ScriptedModel([calls(("broken", {}), ("echo", {"text": "hi"})), says("done")])

    await run_turn(
        make_agent(model, FunctionTool("broken", broken), ECHO, transcript=transcript, emit=record), "go"
    )

    assert tool_results(transcript) == ["broken failed unexpectedly: KeyError: 'oops'", "echo hi"]
    assert {event.name: event.outcome for event in record.of(ToolFinished)} == {
        "broken": "error",
        "echo": "ok",
    }


async def test_a_tool_beyond_its_time_limit_is_ended(autojump_clock: trio.testing.MockClock) -> None:
    """The limit belongs to the call; the turn goes on."""
    transcript = MemoryTranscript()
    model = ScriptedModel([calls(("slow", {})), says("gave up")])

    await run_turn(
        make_agent(model, FunctionTool("slow", never, timeout_seconds=7), transcript=transcript), "go"
    )

    assert tool_results(transcript) == ["slow was ended after its limit of 7 s"]


async def test_a_denied_call_is_told_to_the_model_and_the_rest_runs() -> None:
    """A refusal is a result like any other."""
    transcript = MemoryTranscript()
    gate = OpenGate(denied=["echo"])
    model = ScriptedModel([calls(("echo", {"text": "x"}), ("other", {"text": "y"})), says("ok")])

    await run_turn(
        make_agent(model, ECHO, FunctionTool("other", echo), gate=gate, transcript=transcript), "go"
    )

    assert gate.batches == [["echo", "other"]]
    assert tool_results(transcript) == ["echo was denied by the person", "echo y"]


async def test_outside_content_is_fenced_and_secrets_are_masked_first() -> None:
    """What the model reads has been through the mask and the fence."""
    transcript = MemoryTranscript()
    model = ScriptedModel([calls(("web", {"text": "hunter2"})), says("ok")])
    agent = make_agent(
        model, FunctionTool("web", echo), gate=OpenGate(outside=["web"]), transcript=transcript
    )

    await run_turn(agent, "go")

    assert tool_results(transcript) == ["<web>echo [REDACTED]</web>"]


@pytest.mark.parametrize("at", [10, DIFF_CHARACTERS - 3])
async def test_of_a_long_change_the_beginning_is_reported_without_its_secrets(at: int) -> None:
    """A secret is hidden also where the report is cut in the middle of it."""
    diff = "+" * at + "hunter2" + "+" * (2 * DIFF_CHARACTERS)

    async def edit(note: Note, scope: CallScope) -> ToolOutput:
        return ToolOutput("done", changed=("a.txt",), diff=diff)

    record = Recorder()
    model = ScriptedModel([calls(("edit", {})), says("done")])
    await run_turn(make_agent(model, FunctionTool("edit", edit), emit=record), "go")

    reported = record.of(ToolFinished)[0].diff
    assert reported.startswith("+" * at + "[RE")
    assert len(reported) < DIFF_CHARACTERS + 100
    assert reported.endswith(f"[… {len(diff) - DIFF_CHARACTERS:,} more characters …]\n")


async def test_three_equal_failures_bring_a_hint() -> None:
    """The model is told to stop repeating itself, once, at the third time."""

    async def fails(note: Note, scope: CallScope) -> ToolOutput:
        return ToolOutput("no such file", is_error=True)

    transcript, record = MemoryTranscript(), Recorder()
    model = ScriptedModel([*(calls(("f", {"text": str(n)})) for n in range(4)), says("ok")])

    await run_turn(make_agent(model, FunctionTool("f", fails), transcript=transcript, emit=record), "go")

    hinted = ["failed 3 times" in content for content in tool_results(transcript)]
    assert hinted == [False, False, True, False]
    assert record.of(ToolRecovery) == [ToolRecovery("f", 3)]


async def test_an_empty_answer_is_asked_for_again_and_never_a_success() -> None:
    """Nothing is not an answer, and another request is announced only where there is one."""
    record = Recorder()
    model = ScriptedModel([says(""), says(" "), says("\n")])

    result = await run_turn(make_agent(model, emit=record), "go")

    assert result.outcome == "failed"
    assert "only empty answers" in str(result.error)
    assert len(model.requests) == 3
    assert [notice.text for notice in record.of(Notice)] == 2 * [
        "the model gave an empty answer; asking again"
    ]


async def test_iterations_are_bounded_and_the_budget_warns_before() -> None:
    """A model that never stops asking for tools is stopped."""
    record = Recorder()
    model = ScriptedModel([calls(("echo", {})) for _ in range(20)])

    result = await run_turn(make_agent(model, ECHO, emit=record, limits=Limits(iterations=4)), "go")

    assert result.outcome == "limit"
    assert len(model.requests) == 4
    assert [event.percent for event in record.of(BudgetWarning)] == [50, 75, 90]


async def test_the_time_budget_ends_a_running_tool(autojump_clock: trio.testing.MockClock) -> None:
    """Wall-clock time is a budget too; unanswered calls say why they ended."""
    transcript = MemoryTranscript()
    model = ScriptedModel([calls(("never", {}))])
    agent = make_agent(
        model,
        FunctionTool("never", never, timeout_seconds=None),
        transcript=transcript,
        limits=Limits(seconds=30),
    )

    result = await run_turn(agent, "go")

    assert result.outcome == "limit"
    assert "time budget of 30 s" in tool_results(transcript)[0]


async def test_a_full_disk_is_said_once_and_everything_is_saved_later() -> None:
    """The turn goes on in memory; the next save that works holds all of it."""
    transcript, record = MemoryTranscript(), Recorder()
    transcript.full = True

    async def free(note: Note, scope: CallScope) -> str:
        transcript.full = False
        return "freed"

    model = ScriptedModel([calls(("free", {})), says("done")])

    await run_turn(make_agent(model, FunctionTool("free", free), transcript=transcript, emit=record), "go")

    assert [event.level for event in record.of(Notice)] == ["warning", "info"]
    assert transcript.saved[-1] == transcript.messages


async def test_an_answer_that_denies_a_change_is_reported() -> None:
    """What completed is known, whatever the answer says."""

    async def write(note: Note, scope: CallScope) -> ToolOutput:
        return ToolOutput("wrote a.txt", changed=("a.txt",))

    record = Recorder()
    model = ScriptedModel([calls(("w", {})), says("I have not changed any files.")])

    await run_turn(make_agent(model, FunctionTool("w", write), emit=record), "go")

    assert record.of(ReplyLedgerMismatch) == [ReplyLedgerMismatch(("a.txt",))]


async def test_usage_adds_up_over_the_requests_of_a_turn() -> None:
    """The result's usage is the sum of what the provider reported."""
    usage = Usage(prompt_tokens=10, completion_tokens=2, cached_tokens=5)
    model = ScriptedModel([calls(("echo", {}), usage=usage), says("done", usage=usage)])
    transcript = MemoryTranscript()

    result = await run_turn(make_agent(model, ECHO, transcript=transcript), "go")

    assert result.usage == Usage(prompt_tokens=20, completion_tokens=4, cached_tokens=10)
    assert transcript.usage == result.usage
