"""Whether an answer is the JSON that was asked for: the part of JSON Schema that tasks use. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

__all__ = ["problem_with", "unsupported"]

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}
_IGNORED: Final = frozenset({"title", "description", "default", "examples", "$schema", "$id", "format"})
_KNOWN: Final = frozenset(
    {
        "type",
        "enum",
        "const",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
    }
)
_BOUNDS: Final = {"minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"}


def unsupported(schema: Any, path: str = "$") -> str:
    """Return in words what of ``schema`` cannot be checked, "" if all of it can."""
    if isinstance(schema, bool):
        return ""
    if not isinstance(schema, dict):
        return f"{path} is no schema"
    for name, value in schema.items():
        if name not in _KNOWN | _IGNORED:
            return f"{path}: {name!r} is not supported; use {', '.join(sorted(_KNOWN))}"
        if name == "type" and not set(value if isinstance(value, list) else [str(value)]) <= set(_TYPES):
            return f"{path}: there is no type {value!r}"
        if name in _BOUNDS and (isinstance(value, bool) or not isinstance(value, int | float)):
            return f"{path}: {name} must be a number"
        if name in {"enum", "required"} and not isinstance(value, list):
            return f"{path}: {name} must be a list"
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        return f"{path}: properties must be an object"
    below = [(f"{path}.{name}", inner) for name, inner in properties.items()]
    below += [(f"{path}[]", schema["items"])] if "items" in schema else []
    below += [(f"{path}.*", schema["additionalProperties"])] if "additionalProperties" in schema else []
    return next((found for where, inner in below if (found := unsupported(inner, where))), "")


def problem_with(answer: str, schema: dict[str, Any]) -> str:
    """Return in words why ``answer`` is not JSON that fits ``schema``, "" if it is.

    A Markdown fence around it does not count.
    """
    text = answer.strip()
    if fenced := re.fullmatch(r"```\w*\n(.*)\n```", text, re.DOTALL):
        text = fenced[1]
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"it is not JSON: {error}"
    return _mismatch(value, schema, "$")


def _mismatch(value: Any, schema: Any, path: str) -> str:
    if isinstance(schema, bool):
        return "" if schema else f"{path} must not be there"
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_is_of(value, name) for name in names):
            return f"{path} must be of type {' or '.join(names)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{path} must be one of {schema['enum']!r}"
    if "const" in schema and value != schema["const"]:
        return f"{path} must be {schema['const']!r}"
    if problem := _beyond(value, schema):
        return f"{path} {problem}"
    if isinstance(value, dict):
        return _in_object(value, schema, path)
    if isinstance(value, list) and "items" in schema:
        found = (_mismatch(item, schema["items"], f"{path}[{index}]") for index, item in enumerate(value))
        return next(filter(None, found), "")
    return ""


def _is_of(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _beyond(value: Any, schema: Mapping[str, Any]) -> str:
    size: float
    match value:
        case bool():
            return ""
        case str():
            size, low, high = len(value), "minLength", "maxLength"
        case list():
            size, low, high = len(value), "minItems", "maxItems"
        case int() | float():
            size, low, high = value, "minimum", "maximum"
        case _:
            return ""
    if low in schema and size < schema[low]:
        return f"is below {low} {schema[low]}"
    if high in schema and size > schema[high]:
        return f"is above {high} {schema[high]}"
    return ""


def _in_object(value: dict[str, Any], schema: Mapping[str, Any], path: str) -> str:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{path}.{name} is missing"
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    found = (_mismatch(item, properties.get(name, others), f"{path}.{name}") for name, item in value.items())
    return next(filter(None, found), "")
