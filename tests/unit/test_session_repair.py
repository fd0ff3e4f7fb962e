"""Conversations that providers would refuse, made valid."""

import pytest

from odek.messages import (
    CONTEXT_NAME,
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from odek.sessions.repair import NO_ANSWER, NO_RESULT, repair
from tests.support.sessions import ask, call, conversation

Q, A = UserMessage("q"), AssistantMessage("a")
SYSTEM = SystemMessage("s")
BOTH = ask(call("1"), call("2"))


def test_a_valid_conversation_is_left_alone() -> None:
    """The very same messages come back, and nothing is reported."""
    messages = conversation(3)
    repaired = repair(messages)

    assert all(new is old for new, old in zip(repaired.messages, messages, strict=True))
    assert (repaired.notices, repaired.lossy) == ((), False)


@pytest.mark.parametrize(
    ("messages", "expected", "notice", "lossy"),
    [
        pytest.param(
            [Q, BOTH],
            [Q, BOTH, ToolMessage(NO_RESULT, "1"), ToolMessage(NO_RESULT, "2"), AssistantMessage(NO_ANSWER)],
            "2 calls without results got some that say so",
            False,
            id="dangling",
        ),
        pytest.param(
            [Q, BOTH, ToolMessage("r", "2"), Q, A],
            [Q, BOTH, ToolMessage(NO_RESULT, "1"), ToolMessage("r", "2"), Q, A],
            "a call without a result got one that says so",
            False,
            id="partly answered",
        ),
        pytest.param(
            [Q, BOTH, ToolMessage("b", "2"), ToolMessage("a", "1"), A],
            [Q, BOTH, ToolMessage("a", "1"), ToolMessage("b", "2"), A],
            "the results of a batch were put in order",
            False,
            id="out of order",
        ),
        pytest.param(
            [Q, ToolMessage("r", "1"), A], [Q, A], "a result without its call was left out", True, id="orphan"
        ),
        pytest.param(
            [Q, ask(call("1")), ToolMessage("r", "1"), ToolMessage("again", "1"), A],
            [Q, ask(call("1")), ToolMessage("r", "1"), A],
            "a result without its call was left out",
            True,
            id="answered twice",
        ),
        pytest.param(
            [Q, ask(call("1")), Q, ToolMessage("late", "1"), A],
            [Q, ask(call("1")), ToolMessage(NO_RESULT, "1"), Q, A],
            "a result without its call was left out",
            True,
            id="late",
        ),
        pytest.param(
            [Q, AssistantMessage(" \n"), A], [Q, A], "an empty answer was left out", False, id="empty"
        ),
        pytest.param(
            [Q], [Q, AssistantMessage(NO_ANSWER)], "the last question has no answer", False, id="open"
        ),
        pytest.param(
            [Q, SYSTEM, A], [SYSTEM, Q, A], "the system message was moved to the front", False, id="moved"
        ),
        pytest.param(
            [SYSTEM, Q, SystemMessage("t"), A],
            [SYSTEM, Q, SystemMessage("t", CONTEXT_NAME), A],
            "a second system message was kept as context",
            False,
            id="two system messages",
        ),
        pytest.param(
            [Q, ask(call("1")), SystemMessage("c", CONTEXT_NAME), ToolMessage("r", "1"), A],
            [Q, ask(call("1")), ToolMessage("r", "1"), SystemMessage("c", CONTEXT_NAME), A],
            "",
            False,
            id="context between call and result",
        ),
        pytest.param(
            [Q, ask(call(""), call("")), ToolMessage("r", ""), ToolMessage("t", ""), A],
            [
                Q,
                ask(call("call-1"), call("call-2")),
                ToolMessage("r", "call-1"),
                ToolMessage("t", "call-2"),
                A,
            ],
            "2 calls without ids of their own got some",
            False,
            id="no ids",
        ),
        pytest.param(
            [Q, ask(call("x"), call("x")), ToolMessage("r", "x"), ToolMessage("t", "x"), A],
            [Q, ask(call("x"), call("x-2")), ToolMessage("r", "x"), ToolMessage("t", "x-2"), A],
            "a call without an id of its own got one",
            False,
            id="one id twice",
        ),
        pytest.param(
            [Q, ask(call("1", arguments="{broken")), ToolMessage("r", "1"), A],
            [Q, ask(call("1", arguments='{"_raw_arguments":"{broken"}')), ToolMessage("r", "1"), A],
            "a call's arguments were no JSON object; mended",
            False,
            id="arguments",
        ),
    ],
)
def test_what_providers_refuse_is_mended(
    messages: list[Message], expected: list[Message], notice: str, lossy: bool
) -> None:
    """The result is valid, says what was done, and is not mended again."""
    repaired = repair(messages)

    assert repaired.messages == expected
    assert notice in "; ".join(repaired.notices)
    assert repaired.lossy is lossy
    again = repair(repaired.messages)
    assert (again.messages, again.notices) == (expected, ())


def test_the_same_id_in_two_answers_is_two_calls() -> None:
    """Some servers count their calls from 0 in every answer."""
    first: ToolCall = call("call_0")
    messages: list[Message] = [
        Q,
        ask(first),
        ToolMessage("r", "call_0"),
        ask(first),
        ToolMessage("t", "call_0"),
        A,
    ]

    assert repair(messages).messages == messages
