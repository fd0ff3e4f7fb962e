"""What a person is told of an answer that is not simply one."""

import pytest

from odek.events import Notice, Usage
from odek.llm.endings import notice_of
from odek.llm.model import FinishReason, ModelResponse
from odek.llm.scripted import ScriptedModel, says
from odek.loop import run_turn
from odek.messages import AssistantMessage
from tests.support.agents import ECHO, Recorder, make_agent

TOOLS = ("shell", "read_file")


def notice(text: str, finish_reason: FinishReason = "stop") -> str:
    """Return what is said of an answer."""
    return notice_of(ModelResponse(AssistantMessage(text), Usage(), finish_reason), TOOLS, 5_000)


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "shell", "arguments": {"command": "ls"}}\n</tool_call>',
        'I will look.\n\n<tool_call>{"name": "read_file"}</tool_call>',
        "<tool_call>shell<arg_key>command</arg_key>",
        "<function=shell>\n<parameter=command>ls</parameter></function>",
        '<function_calls><invoke name="read_file">',
        '[TOOL_CALLS][{"name": "shell", "arguments": {}}]',
        "<|tool_call>call:shell{command:ls}",
        "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>shell",
        '{"name": "shell", "parameters": {"command": "ls"}}',
        '```json\n{"name": "shell", "arguments": {"command": "ls"}}\n```',
    ],
)
def test_a_call_that_is_written_as_text_is_pointed_out(text: str) -> None:
    """The person learns why nothing was done, and what the server needs."""
    assert "tool call as text, which was not run" in notice(text)


@pytest.mark.parametrize(
    "text",
    [
        "Run `shell` with ls.",
        'The tag <tool_call> begins a call, as in <tool_call>{"name": "shell"}',
        '{"name": "odek", "version": 1}',
        '<tool_call>{"name": "another_tool"}',
        "",
    ],
)
def test_what_only_speaks_of_calls_is_left_alone(text: str) -> None:
    """A tag within a line, JSON about other things, and tools that are not there."""
    assert notice(text) == ""


def test_a_cut_answer_is_told_first() -> None:
    """A limit explains the text better than its form."""
    assert notice("half", "length") == "the answer was cut at the model's length limit"
    assert notice("half", "content_filter") == "the provider's content filter cut the answer"


@pytest.mark.parametrize(
    ("sent_tokens", "read_tokens", "told"),
    [
        (8_000, 2_050, True),
        (8_000, 3_999, True),
        (8_000, 5_000, False),
        (1_500, 100, False),
        (8_000, None, False),
    ],
)
def test_a_window_that_is_silently_too_small_is_told(
    sent_tokens: int, read_tokens: int | None, told: bool
) -> None:
    """Some servers cut the beginning of a request and answer all the same; only their count shows it."""
    response = ModelResponse(AssistantMessage("fine"), Usage(prompt_tokens=read_tokens), "stop")

    said = notice_of(response, TOOLS, sent_tokens)

    assert ("llm.context_window" in said) is told
    assert not told or f"read {read_tokens:,} tokens of about 8,000" in said


def test_empty_lines_without_end_are_read_once() -> None:
    """A small model may answer nothing else; a call behind them is seen."""
    lines = "\n" * 100_000

    assert notice(f"{lines}done") == ""
    assert "tool call as text" in notice(f'{lines} <tool_call>{{"name": "shell"}}')


async def test_a_turn_warns_of_a_written_call() -> None:
    """The text stays the answer; the warning comes beside it."""
    record = Recorder()
    model = ScriptedModel([says('<tool_call>{"name": "echo"}</tool_call>')])

    result = await run_turn(make_agent(model, ECHO, emit=record), "go")

    assert result.answer.startswith("<tool_call>")
    assert [event.level for event in record.of(Notice)] == ["warning"]
