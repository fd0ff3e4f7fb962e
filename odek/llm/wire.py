"""A request as the bytes of a chat-completions endpoint.

The order of the keys is fixed and the messages come last, so that the requests of a
session begin with the same bytes as far as they say the same.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, assert_never

import msgspec

from odek.llm.arguments import normalise_arguments
from odek.llm.lenient import joined
from odek.llm.model import ModelRequest, ToolSpec
from odek.llm.profiles import ModelProfile, ThinkingStyle
from odek.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from odek.patterns import late_pattern

__all__ = ["RequestForm", "encode_request", "form_after"]

# Tokens to think with, for families that count them instead of taking a word for it.
# No measurement behind these figures; the least that is taken is 1,024.
_BUDGET_TOKENS = {"low": 2_048, "medium": 8_192, "enabled": 8_192, "high": 16_384}
# These families count what they think as a part of the answer and refuse a budget that reaches its
# limit, which is small where none is sent. The smallest limit among them is 32,000. Not measured.
_ANSWER_TOKENS_BESIDE_BUDGET = 8_192

_OTHER_STYLE: Final[dict[ThinkingStyle, ThinkingStyle]] = {"budget": "adaptive", "adaptive": "budget"}
# How a refusal of one of those names what it refuses.
_THINKING_REFUSED = late_pattern(
    r"thinking.*adaptive|adaptive.*thinking|budget_tokens|output_config", re.IGNORECASE
)

# How a refusal of null names what it refuses: the field, or the nothing that a template stumbled over.
_NULL_REFUSED = late_pattern(r"\bcontents?\b|\bnull|none.?type|<nil>", re.IGNORECASE)


class RequestForm(msgspec.Struct, frozen=True):
    """What endpoints disagree about in the shape of a request.

    Attributes:
        asks_for_usage: Whether the usage at the end of the stream is asked for, which some refuse.
        null_content: Whether the absent text beside tool calls is null. Some refuse that and
            want an empty text, which others refuse.
        other_thinking: Whether a family that thinks by a budget is asked to think as it sees fit, and
            the other way round: which of them a model takes changes with its version.
    """

    asks_for_usage: bool = True
    null_content: bool = True
    other_thinking: bool = False


_USUAL_FORM = RequestForm()


def form_after(form: RequestForm, refusal: str, request: ModelRequest) -> RequestForm | None:
    """Return the form to send ``request`` in after the ``refusal`` of ``form``; None when none is left."""
    if form.asks_for_usage and "stream_options" in refusal:
        return msgspec.structs.replace(form, asks_for_usage=False)
    has_null = any(
        isinstance(message, AssistantMessage) and _lacks_text(message) for message in request.messages
    )
    if form.null_content and has_null and _NULL_REFUSED.search(refusal):
        return msgspec.structs.replace(form, null_content=False)
    if not form.other_thinking and request.thinks and _THINKING_REFUSED.search(refusal):
        return msgspec.structs.replace(form, other_thinking=True)
    return None


def encode_request(
    request: ModelRequest, *, model: str, profile: ModelProfile, form: RequestForm = _USUAL_FORM
) -> bytes:
    """Return the JSON body of ``request`` in ``form``. Lone surrogates in any text become U+FFFD."""
    body: dict[str, Any] = {"model": model, "stream": True}
    if form.asks_for_usage:
        body["stream_options"] = {"include_usage": True}
    style = _OTHER_STYLE.get(profile.thinking, profile.thinking) if form.other_thinking else profile.thinking
    body |= _thinking(request.thinking, style, profile.thinking_off)
    budget = _BUDGET_TOKENS[request.thinking] if style in _OTHER_STYLE and request.thinks else 0
    max_tokens = request.max_tokens or (_ANSWER_TOKENS_BESIDE_BUDGET if budget else None)
    if max_tokens is not None:
        body[profile.max_tokens_field] = max_tokens + budget
    # Where what is thought is counted, the temperature is fixed as well.
    if request.temperature is not None and not profile.fixed_temperature and not budget:
        body["temperature"] = request.temperature
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    body["messages"] = _messages(request.messages, profile, form)
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return msgspec.json.encode(_clean(body))


def _thinking(wanted: str, style: ThinkingStyle, thinking_off: str) -> dict[str, Any]:
    """Return the fields that ask for ``wanted`` in the family's way; "" asks for nothing."""
    if not wanted:
        return {}
    off = wanted == "disabled"
    effort = {"disabled": thinking_off, "enabled": "medium"}.get(wanted, wanted)
    match style:
        case "effort":
            return {"reasoning_effort": effort}
        case "switch":
            switch = {"thinking": {"type": "disabled" if off else "enabled"}}
            return switch if wanted in ("disabled", "enabled") else {**switch, "reasoning_effort": effort}
        case "budget" | "adaptive" if off:  # without the field most do not think, and some refuse the word
            return {}
        case "budget":
            return {"thinking": {"type": "enabled", "budget_tokens": _BUDGET_TOKENS[wanted]}}
        case "adaptive":
            adaptive = {"thinking": {"type": "adaptive"}}
            return adaptive if wanted == "enabled" else {**adaptive, "output_config": {"effort": effort}}
        case "template":
            return {"chat_template_kwargs": {"enable_thinking": not off}}
        case unreachable:
            assert_never(unreachable)


def _messages(messages: Sequence[Message], profile: ModelProfile, form: RequestForm) -> list[dict[str, Any]]:
    """Return the messages in the shape of the endpoint.

    Templates that take no late system message mostly insist on the roles taking turns too:
    what follows a user's message in the user's name becomes a part of it.
    """
    encoded: list[dict[str, Any]] = []
    for position, message in enumerate(messages):
        next_one = _message(message, profile, form, first=position == 0)
        last_role = encoded[-1]["role"] if encoded else ""
        if not profile.late_system and last_role == next_one["role"] == "user":
            encoded[-1]["content"] += f"\n\n{next_one['content']}"
        else:
            encoded.append(next_one)
    return encoded


def _message(message: Message, profile: ModelProfile, form: RequestForm, *, first: bool) -> dict[str, Any]:
    """Return one message in the shape of the endpoint.

    A system message behind the first is sent as the user's where the family does not
    take it there; the runtime's own ``name`` stays here, some endpoints refuse it.
    """
    match message:
        case SystemMessage(content):
            return {"role": "system" if first or profile.late_system else "user", "content": content}
        case UserMessage(content):
            return {"role": "user", "content": content}
        case AssistantMessage():
            return _assistant(message, profile, form)
        case ToolMessage(content, tool_call_id):
            return {"role": "tool", "tool_call_id": tool_call_id, "content": content}
        case unreachable:
            assert_never(unreachable)


def _lacks_text(message: AssistantMessage) -> bool:
    return bool(message.tool_calls) and not message.content


def _assistant(message: AssistantMessage, profile: ModelProfile, form: RequestForm) -> dict[str, Any]:
    # Never left out: more endpoints refuse that than either form of nothing.
    content = None if form.null_content and _lacks_text(message) else message.content
    encoded: dict[str, Any] = {"role": "assistant", "content": content}
    if profile.echo_reasoning:
        encoded["reasoning_content"] = message.reasoning_content or ""
    if message.tool_calls:
        encoded["tool_calls"] = [_call(call) for call in message.tool_calls]
    return encoded


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": normalise_arguments(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _clean(value: Any) -> Any:
    match value:
        case str():
            return joined(value)
        case dict():
            return {_clean(key): _clean(inner) for key, inner in value.items()}
        case list():
            return [_clean(inner) for inner in value]
        case _:
            return value
