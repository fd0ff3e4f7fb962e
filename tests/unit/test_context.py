"""Fitting a conversation into a window."""

import pytest

from odek.context import estimate_tokens, fit
from odek.errors import ContextOverflowError
from odek.messages import (
    CONTEXT_NAME,
    AssistantMessage,
    FunctionCall,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)


def exchange(number: int, *, result_chars: int = 400) -> list[Message]:
    """Return a question, a tool call with its result, and an answer."""
    call = ToolCall(f"c{number}", FunctionCall("read_file", '{"path": "a"}'))
    return [
        UserMessage(f"question {number}"),
        AssistantMessage("", (call,)),
        ToolMessage("x" * result_chars, call.id),
        AssistantMessage(f"answer {number}"),
    ]


def conversation(exchanges: int, *, result_chars: int = 400) -> list[Message]:
    """Return a system message and some exchanges."""
    messages: list[Message] = [SystemMessage("be good")]
    for number in range(exchanges):
        messages += exchange(number, result_chars=result_chars)
    return messages


def test_without_a_window_everything_is_sent() -> None:
    """A model of unknown size gets the whole conversation."""
    messages = conversation(50)

    fitted = fit(messages, window=None)

    assert fitted.messages == tuple(messages)
    assert fitted.newly_left_out == 0


def test_the_oldest_tool_batches_go_first() -> None:
    """Over three quarters of the window, old calls go together with their results."""
    messages = conversation(6)
    window = int(estimate_tokens(messages) / 0.8)

    fitted = fit(messages, window=window)

    assert fitted.newly_left_out > 0
    assert fitted.estimated_tokens <= 0.75 * window
    left = [message for message in fitted.messages if isinstance(message, ToolMessage)]
    asked = [call.id for m in fitted.messages if isinstance(m, AssistantMessage) for call in m.tool_calls]
    assert [message.tool_call_id for message in left] == asked
    assert asked[-1] == "c5"
    assert fitted.messages[0] == messages[0]
    assert UserMessage("question 0") in fitted.messages


def test_what_was_left_out_stays_out_so_that_the_prefix_holds() -> None:
    """The request after a fitting begins with the very messages of the one before."""
    messages = conversation(6)
    window = int(estimate_tokens(messages) / 0.8)
    first = fit(messages, window=window)
    messages += [UserMessage("and now?")]

    second = fit(messages, window=window, left_out=first.left_out)

    assert second.newly_left_out == 0
    assert second.messages[: len(first.messages)] == first.messages


def test_results_that_the_model_has_not_read_are_kept() -> None:
    """The newest tool batch is what the request is about; it stays."""
    messages: list[Message] = [SystemMessage("s"), *exchange(0)[:3]]

    with pytest.raises(ContextOverflowError, match=r"the request needs about .* more than the 37 that fit"):
        fit(messages, window=50)


def test_whole_exchanges_go_when_tool_batches_are_not_enough() -> None:
    """Long prose goes exchange by exchange, the first task and the newest question stay."""
    messages: list[Message] = [SystemMessage("s")]
    for number in range(5):
        messages += [UserMessage(f"question {number} " + "x" * 400), AssistantMessage("y" * 400)]
    messages.append(UserMessage("last"))

    fitted = fit(messages, window=700)

    users = [message.content[:10] for message in fitted.messages if isinstance(message, UserMessage)]
    assert users[0] == "question 0"
    assert users[-1] == "last"
    assert len(users) < 6


def test_a_refused_size_is_halved_once() -> None:
    """After the provider's refusal the next request is at most half as long."""
    messages = conversation(8)
    before = fit(messages, window=None)

    after = fit(messages, window=None, harder=True)

    assert after.estimated_tokens <= before.estimated_tokens * 0.5


def test_when_nothing_can_go_a_refusal_is_final() -> None:
    """A system prompt that alone is too big ends in a clear error, not in a loop."""
    with pytest.raises(ContextOverflowError, match="nothing more can be left out"):
        fit([SystemMessage("s" * 1000), UserMessage("hi")], window=None, harder=True)


def test_what_the_memory_added_stays_with_its_question() -> None:
    """It goes with an old question, and never from before the newest one."""
    messages = conversation(1)
    for number in range(1, 9):
        messages += [SystemMessage(f"memory {number} " + "m" * 200, CONTEXT_NAME), UserMessage(f"q {number}")]
        messages += [AssistantMessage(f"a {number} " + "x" * 400)]
    messages.pop()

    for tokens in range(100, estimate_tokens(messages), 10):
        try:
            fitted = fit(messages, window=int(tokens / 0.75))
        except ContextOverflowError:
            continue
        kept = [m.content.split()[1] for m in fitted.messages if m.content.startswith("memory ")]
        asked = [m.content.split()[1] for m in fitted.messages if m.content.startswith("q ")]
        assert kept == asked
        assert asked[-1] == "8"
