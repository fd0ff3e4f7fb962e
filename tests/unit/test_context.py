"""Fitting a conversation into a window."""

import pytest

from odek.context import Fitted, Fitting, estimate_tokens, fit
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


def results(*sizes: int) -> list[Message]:
    """Return a question and a batch with a result of each of ``sizes`` characters, not read yet."""
    made = tuple(ToolCall(f"c{at}", FunctionCall("read_file", "{}")) for at in range(len(sizes)))
    texts = [f"begin {at} " + "x" * size + f" end {at}" for at, size in enumerate(sizes)]
    answers = [ToolMessage(text, call.id) for text, call in zip(texts, made, strict=True)]
    return [SystemMessage("be good"), UserMessage("read"), AssistantMessage("", made), *answers]


def contents(fitted: Fitted) -> list[str]:
    """Return the tool results of a request."""
    return [message.content for message in fitted.messages if isinstance(message, ToolMessage)]


def test_new_results_that_are_too_long_lose_their_middle() -> None:
    """The longest are cut to one length, begin and end stay, and the shorter ones stay whole."""
    messages = results(100, 100_000, 60_000)

    fitted = fit(messages, window=10_000)

    short, *cut = contents(fitted)
    assert fitted.estimated_tokens <= 0.6 * 10_000
    assert fitted.estimated_tokens == pytest.approx(estimate_tokens(fitted.messages), abs=20)
    assert (fitted.newly_left_out, fitted.newly_shortened) == (0, 2)
    assert short == messages[3].content
    for number, text in enumerate(cut, 1):
        assert text.startswith(f"begin {number} ")
        assert "bytes left out …]" in text
        assert text.endswith(f" end {number}")
    assert len(cut[0]) == pytest.approx(len(cut[1]), abs=20)
    assert len(cut[0]) > 10_000


def test_old_steps_go_before_new_results_are_shortened() -> None:
    """What was read already is given up first, and no more than is needed of the rest."""
    old = conversation(6, result_chars=8_000)
    messages = [*old, *results(20_000)[1:]]

    fitted = fit(messages, window=10_000)

    assert fitted.newly_left_out > 0
    assert fitted.newly_shortened == 0
    assert contents(fitted)[-1] == messages[-1].content


def test_what_was_shortened_once_stays_as_it_was() -> None:
    """The request after it begins with the very messages of the one before; more may be needed later."""
    messages = results(100_000)
    first = fit(messages, window=10_000)
    messages += [AssistantMessage("I see"), UserMessage("and now?")]

    second = fit(messages, window=10_000, left_out=first.left_out, shortened=first.shortened)

    assert second.messages[: len(first.messages)] == first.messages
    assert second.newly_shortened == 0


def test_a_resumed_conversation_is_shortened_as_it_was() -> None:
    """Another process, which sees the messages alone, sends the same beginning."""
    messages = results(100_000)
    first = Fitting().fit(messages, window=10_000, reserved_tokens=10)
    messages += [AssistantMessage("I see"), UserMessage("and now?")]

    second = Fitting().fit(messages, window=10_000, reserved_tokens=10)

    assert second.messages[: len(first.messages)] == first.messages


def test_a_refused_size_shortens_new_results_where_nothing_else_can_go() -> None:
    """A window that nobody knows is no reason to give up."""
    messages = results(100_000)

    fitted = fit(messages, window=None, harder=True)

    assert fitted.newly_shortened == 1
    assert fitted.estimated_tokens <= estimate_tokens(messages) * 0.5


def test_a_refused_size_shortens_new_results_as_far_as_makes_sense() -> None:
    """Where half of the request is out of reach, less is still worth a try."""
    messages = [SystemMessage("s" * 12_000), *results(14_000)[1:]]

    fitted = fit(messages, window=None, harder=True)

    assert fitted.newly_shortened == 1
    assert len(contents(fitted)[0]) == pytest.approx(768 * 4, abs=100)
    with pytest.raises(ContextOverflowError, match="nothing more can be left out"):
        fit(messages, window=None, shortened=fitted.shortened, harder=True)


def test_a_window_that_leaves_no_room_for_results_is_an_error() -> None:
    """A few words of each result would say nothing."""
    with pytest.raises(ContextOverflowError):
        fit(results(*[20_000] * 8), window=8_000)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("word " * 1000, 1250, 1254),
        ("汉字" * 500, 800, 1100),
        ("слово " * 1000, 2500, 3500),
        ("😀" * 500, 500, 900),
    ],
)
def test_other_scripts_count_for_more_than_their_characters(text: str, least: int, most: int) -> None:
    """A character of Chinese is about a token, and a quarter of it would let a request outgrow the window."""
    assert least <= estimate_tokens([UserMessage(text)]) <= most


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
