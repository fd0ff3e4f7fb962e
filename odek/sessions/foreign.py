"""Messages as other programs and people write them, in the shape of the wire."""

from typing import Any

from odek.llm.arguments import normalise_arguments
from odek.llm.lenient import encode_json
from odek.messages import (
    AssistantMessage,
    FunctionCall,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from odek.text import visible, without_surrogates

__all__ = ["message_of", "parts_left_out"]


def message_of(value: object) -> Message | str:
    """Return the message that a decoded JSON ``value`` stands for, or the reason why it is none."""
    if not isinstance(value, dict):
        return "it is no JSON object"
    content = _content(value.get("content"))
    match value.get("role"):
        case "system" | "developer":
            return SystemMessage(content, _text(value.get("name")) or None)
        case "user":
            return UserMessage(content)
        case "assistant":
            reasoning = _text(value.get("reasoning_content")) or None
            return AssistantMessage(content, _calls(value.get("tool_calls")), reasoning)
        case "tool":
            return ToolMessage(content, _text(value.get("tool_call_id")))
        case str() as role:
            return f"its role {visible(role[:40], keep_newlines=False)!r} is unknown"
        case _:
            return "it has no role"


def parts_left_out(value: object) -> int:
    """Return how many parts of a message hold something else than text, which `message_of` only names."""
    content = value.get("content") if isinstance(value, dict) else None
    return sum(_text_of(part) is None for part in content) if isinstance(content, list) else 0


def _content(value: object) -> str:
    """Return the text of a content: null, text, or a list of parts."""
    if value is None:
        return ""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return "\n".join(map(_part, value))
    return encode_json(value)


def _text_of(part: object) -> str | None:
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else None


def _part(part: object) -> str:
    if (text := _text_of(part)) is not None:
        return without_surrogates(text)
    kind = part.get("type") if isinstance(part, dict) else None
    return f"[{visible(str(kind or 'part'), keep_newlines=False)[:40]} left out: only text is kept]"


def _calls(value: object) -> tuple[ToolCall, ...]:
    """Return the calls of an answer; one that does not name its tool cannot be told from noise."""
    calls = []
    for call in value if isinstance(value, list) else []:
        function: Any = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and (name := _text(function.get("name"))):
            arguments = without_surrogates(normalise_arguments(function.get("arguments")))
            calls.append(ToolCall(_text(call.get("id")), FunctionCall(name, arguments)))
    return tuple(calls)


def _text(value: object) -> str:
    return without_surrogates(value) if isinstance(value, str) else ""
