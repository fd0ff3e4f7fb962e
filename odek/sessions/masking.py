"""Messages as they go to the disk: secrets hidden, and nothing in them that no encoder takes."""

from collections.abc import Callable
from typing import Any, assert_never

import msgspec

from odek.llm.arguments import is_json_object, normalise_arguments
from odek.messages import (
    AssistantMessage,
    FunctionCall,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from odek.text import without_surrogates

__all__ = ["Mask", "clean", "masked", "masked_value"]

Mask = Callable[[str], str]


def clean(message: Message) -> Message:
    """Return ``message`` with lone surrogates replaced; the same object when there are none."""
    return _mapped(message, without_surrogates, without_surrogates)


def masked(message: Message, mask: Mask) -> Message:
    """Return ``message`` with ``mask`` applied to all text in it; arguments stay JSON objects."""
    return _mapped(message, mask, lambda text: _mask_json(text, mask))


def _mapped(message: Message, text: Mask, arguments: Mask) -> Message:
    match message:
        case SystemMessage() | UserMessage():
            content = text(message.content)
            return (
                message if content is message.content else msgspec.structs.replace(message, content=content)
            )
        case ToolMessage(content, call_id):
            return ToolMessage(text(content), without_surrogates(call_id))
        case AssistantMessage(content, calls, reasoning):
            mapped = tuple(_mapped_call(call, arguments) for call in calls)
            return AssistantMessage(text(content), mapped, None if reasoning is None else text(reasoning))
        case _:
            assert_never(message)


def _mapped_call(call: ToolCall, arguments: Mask) -> ToolCall:
    function = FunctionCall(without_surrogates(call.name), arguments(call.arguments))
    return ToolCall(without_surrogates(call.id), function)


def _mask_json(text: str, mask: Mask) -> str:
    """Mask the strings of a JSON object, where they are not escaped, and then what spans them."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return normalise_arguments(mask(without_surrogates(text)))
    hidden = masked_value(value, mask)
    result = text if hidden == value else msgspec.json.encode(hidden).decode()
    whole = mask(result)
    return whole if is_json_object(whole) else result


def masked_value(value: Any, mask: Mask) -> Any:
    """Return ``value``, as JSON has it, with ``mask`` applied to every text in it, keys included."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {mask(key): masked_value(item, mask) for key, item in value.items()}
    if isinstance(value, list):
        return [masked_value(item, mask) for item in value]
    return value
