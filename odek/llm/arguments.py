"""The arguments of a tool call, made fit for the tool and for being sent back.

Providers reject a history with arguments that are not a JSON object, so that the
arguments of a ``FunctionCall`` always are one. What a model wrote instead of an
object is kept as text under ``MALFORMED_KEY``: it never runs, the tool layer asks
`malformed_arguments` and answers with the reason, and the model sees what it wrote.
"""

import math
from typing import Any

import msgspec

from odek.llm.lenient import encode_json, joined
from odek.patterns import late_pattern
from odek.text import clip_middle

__all__ = [
    "MALFORMED_KEY",
    "is_json_object",
    "malformed_arguments",
    "normalise_arguments",
    "readable_arguments",
]

MALFORMED_KEY = "_raw_arguments"

_KEPT_BYTES = 4096
"""How much of malformed arguments is kept: enough for the model to see its mistake, and a broken
half of a large file does not fill the window. No measurement behind this figure."""

_SPACE = late_pattern(r"\s+")


def normalise_arguments(raw: Any) -> str:
    """Return the JSON object that the arguments ``raw`` of a call stand for.

    Nothing at all ("", white space, null) is ``{}``. A JSON object is taken as text or
    as a value, also as JSON text inside a JSON string. Objects run together count as one
    if they are equal or all but one are empty; differing ones are ambiguous. Whatever is
    no object comes back as ``{"_raw_arguments": …}``.
    """
    if raw is None:
        return "{}"
    if not isinstance(raw, str):
        return encode_json(raw) if isinstance(raw, dict) else _malformed(encode_json(raw))
    text = raw.strip()
    if not text:
        return "{}"
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _mend(joined(text))
    if isinstance(value, dict):
        return text
    if value is None:
        return "{}"
    inner = value.strip() if isinstance(value, str) else ""
    return inner if is_json_object(inner) else _malformed(text)


def is_json_object(text: str) -> bool:
    """Whether ``text`` is one whole JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False


def malformed_arguments(arguments: str) -> str | None:
    """Return what the model wrote when ``arguments`` stand for no JSON object, else None."""
    if MALFORMED_KEY not in arguments:
        return None
    try:
        return msgspec.json.decode(arguments, type=_Malformed).raw
    except msgspec.MsgspecError:
        return None


def readable_arguments(arguments: str) -> str:
    """Return arguments as a person reads them: texts as they are, the rest with its name, lists counted.

    What is no JSON object comes back as it is.
    """
    try:
        values = msgspec.json.decode(arguments, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return arguments
    return " · ".join(_readable(name, value) for name, value in values.items() if value is not None)


def _readable(name: str, value: Any) -> str:
    match value:
        case str():
            return value
        case list():
            return f"{len(value)} {name}"
        case _:
            return f"{name} {encode_json(value)}"


class _Malformed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    raw: str = msgspec.field(name=MALFORMED_KEY)


def _mend(text: str) -> str:
    """Make one object of objects run together, or of one with lone surrogates."""
    import json  # only here: well-formed arguments do not need it

    decoder = json.JSONDecoder(parse_constant=_refuse_number, parse_float=_finite)
    found: dict[str, Any] = {}
    at = 0
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            if (space := _SPACE.match(text, at)) is not None:
                at = space.end()
            if not isinstance(value, dict) or (value and found and value != found):
                return _malformed(text)
            found = found or value
    except (ValueError, RecursionError):
        return _malformed(text)
    return encode_json(found)


def _refuse_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse_number(text)


def _malformed(text: str) -> str:
    return encode_json({MALFORMED_KEY: clip_middle(text, _KEPT_BYTES)})
