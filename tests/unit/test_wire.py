"""A request as the endpoint gets it."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from odek.llm.model import ModelRequest, ToolSpec
from odek.llm.profiles import ModelProfile, profile_of
from odek.llm.wire import encode_request
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

SHELL = ToolSpec("shell", "Run a command.", {"type": "object", "properties": {}})


def sent(
    *messages: Message, profile: ModelProfile | None = None, model: str = "m", **options: Any
) -> dict[str, Any]:
    """Return the decoded body of a request."""
    request = ModelRequest(messages or (UserMessage("hi"),), **options)
    body: dict[str, Any] = msgspec.json.decode(
        encode_request(request, model=model, profile=profile or profile_of(model))
    )
    return body


def test_a_plain_request_holds_nothing_more_than_it_needs() -> None:
    """No tools, no limits, no thinking: none of their fields."""
    assert sent(SystemMessage("be brief"), UserMessage("hi")) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
    }


def test_a_conversation_with_tools() -> None:
    """Calls, results and tools in the documented shape; no text beside calls is null."""
    body = sent(
        UserMessage("list"),
        AssistantMessage("", (ToolCall("a", FunctionCall("shell", '{"command":"ls"}')),)),
        ToolMessage("x.py", "a"),
        tools=(SHELL,),
    )
    call = {"id": "a", "type": "function", "function": {"name": "shell", "arguments": '{"command":"ls"}'}}
    assert body["messages"][1:] == [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "x.py"},
    ]
    function = {"name": "shell", "description": "Run a command.", "parameters": SHELL.parameters}
    assert body["tools"] == [{"type": "function", "function": function}]


@pytest.mark.parametrize("arguments", ["", "  ", "null"])
def test_empty_arguments_are_echoed_as_an_object(arguments: str) -> None:
    """A history from elsewhere cannot make a provider refuse the request."""
    body = sent(AssistantMessage("", (ToolCall("a", FunctionCall("tree", arguments)),)))
    assert body["messages"][0]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_reasoning_is_echoed_only_where_it_is_wanted() -> None:
    """Families that want it get it with every answer, an empty one where there is none."""
    messages = (
        UserMessage("hi"),
        AssistantMessage("a", reasoning_content="hm"),
        UserMessage("and"),
        AssistantMessage("b"),
    )
    assert all("reasoning_content" not in message for message in sent(*messages)["messages"])
    echoed = sent(*messages, model="deepseek-flash")["messages"]
    assert [message.get("reasoning_content") for message in echoed] == [None, "hm", None, ""]


def test_context_behind_the_history_suits_every_template() -> None:
    """A late system message is a part of the user's where a family takes none there; its name stays here."""
    messages = (SystemMessage("first"), SystemMessage("late", CONTEXT_NAME), UserMessage("hi"))
    assert sent(*messages)["messages"] == [
        {"role": "system", "content": "first"},
        {"role": "user", "content": "late\n\nhi"},
    ]
    body = sent(*messages, model="gpt-4o")
    assert [message["role"] for message in body["messages"]] == ["system", "system", "user"]
    assert all("name" not in message for message in body["messages"])


@pytest.mark.parametrize(
    ("model", "thinking", "fields"),
    [
        ("m", "", {}),
        ("m", "high", {"reasoning_effort": "high"}),
        ("m", "enabled", {"reasoning_effort": "medium"}),
        ("gpt-5-mini", "disabled", {"reasoning_effort": "minimal"}),
        ("gpt-5.4", "disabled", {"reasoning_effort": "none"}),
        ("deepseek-flash", "disabled", {"thinking": {"type": "disabled"}}),
        ("deepseek-flash", "enabled", {"thinking": {"type": "enabled"}}),
        ("deepseek-flash", "low", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
        (
            "claude-sonnet-4-5",
            "low",
            {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 10240},
        ),
        ("claude-sonnet-4-5", "disabled", {}),
        (
            "anthropic/claude-opus-4.7",
            "low",
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}, "max_tokens": 10240},
        ),
        ("claude-sonnet-5", "enabled", {"thinking": {"type": "adaptive"}, "max_tokens": 16384}),
        ("claude-opus-4-8", "disabled", {}),
        ("qwen3:8b", "disabled", {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_thinking_in_the_way_of_the_family(model: str, thinking: str, fields: dict[str, Any]) -> None:
    """One word for all families becomes what each understands."""
    body = sent(model=model, thinking=thinking)
    for field in ("model", "stream", "stream_options", "messages"):
        del body[field]
    assert body == fields


def test_limits_in_the_fields_of_the_family() -> None:
    """The bound of the answer has two names, and some families refuse a temperature."""
    body = sent(model="gpt-5-mini", max_tokens=100, temperature=0.2)
    assert body["max_completion_tokens"] == 100
    assert "max_tokens" not in body
    assert "temperature" not in body
    body = sent(model="m", max_tokens=100, temperature=0.0)
    assert (body["max_tokens"], body["temperature"]) == (100, 0.0)


@pytest.mark.parametrize("thinking", ["low", "medium", "enabled", "high"])
@pytest.mark.parametrize(("max_tokens", "for_answer"), [(100, 100), (50_000, 50_000), (None, 8_192)])
def test_the_tokens_to_think_with_do_not_eat_the_answer(
    thinking: str, max_tokens: int | None, for_answer: int
) -> None:
    """They are a part of the bound, which is always sent beside them; a temperature is not."""
    body = sent(model="claude-sonnet-4-5", max_tokens=max_tokens, temperature=0.2, thinking=thinking)
    assert body["max_tokens"] - body["thinking"]["budget_tokens"] == for_answer
    assert "temperature" not in body


def test_roles_take_turns_for_strict_templates() -> None:
    """However much the memory adds, the user speaks once before each answer; results stand by themselves."""
    call = ToolCall("c1", FunctionCall("shell", "{}"))
    turn = (SystemMessage("m1", CONTEXT_NAME), SystemMessage("m2", CONTEXT_NAME), UserMessage("q"))
    answer = (AssistantMessage("", (call,)), ToolMessage("r", "c1"), AssistantMessage("a"))
    messages = sent(SystemMessage("s"), *turn, *answer, *turn, model="mistral-small")["messages"]

    roles = [message["role"] for message in messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert messages[-1]["content"] == "m1\n\nm2\n\nq"


def test_requests_of_one_conversation_begin_with_the_same_bytes() -> None:
    """What a provider's cache compares does not change as the conversation grows."""
    history: tuple[Message, ...] = (SystemMessage("s"), UserMessage("a"))
    bodies = []
    for message in (AssistantMessage("b"), UserMessage("c"), AssistantMessage("d")):
        bodies.append(encode_request(ModelRequest(history, (SHELL,)), model="m", profile=ModelProfile()))
        history = (*history, message)
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter.removesuffix(b"]}"))


def test_lone_surrogates_do_not_stop_a_request() -> None:
    """Text that no encoder takes is sent with the replacement character."""
    assert sent(UserMessage("a\ud83db"), UserMessage("\ud83d\ude00"))["messages"] == [
        {"role": "user", "content": "a�b\n\n😀"},
    ]
