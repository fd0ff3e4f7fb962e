"""JSON in a model's reply: with talk or a code fence around it, or broken off at its end. Pure."""

from typing import Any

__all__ = ["json_array", "json_object"]


def json_object(reply: str) -> dict[str, Any] | None:
    """Return the first JSON object in a reply, None if there is none."""
    value = _value(reply, "{")
    return value if isinstance(value, dict) else None


def json_array(reply: str) -> list[Any] | None:
    """Return the first JSON array in a reply, None if there is none."""
    value = _value(reply, "[")
    return value if isinstance(value, list) else None


def _value(reply: str, opening: str) -> object:
    start = reply.find(opening)
    if start < 0:
        return None
    import json

    decoder = json.JSONDecoder(strict=False)
    try:
        value, _ = decoder.raw_decode(reply, start)
    except (ValueError, RecursionError):
        try:
            value, _ = decoder.raw_decode(_closed(reply[start:]))
        except (ValueError, RecursionError):
            return None
    found: object = value
    return found


def _closed(text: str) -> str:
    """Close what is open at the end of JSON text that was cut off; what is half a value goes."""
    stack: list[str] = []
    in_string = escaped = False
    last_whole = 0
    for at, char in enumerate(text):
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "{[":
            stack.append("}" if char == "{" else "]")
            last_whole = at + 1
        elif char in "}]" and stack:
            stack.pop()
            last_whole = at + 1
        elif char == ",":
            last_whole = at
    return text[:last_whole] + "".join(reversed(stack))  # each change of which moved last_whole
