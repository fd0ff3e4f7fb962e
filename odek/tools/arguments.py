"""The arguments of a call as its tool wants them, and what models write in their place. Pure.

A value whose meaning is plain is taken although its JSON type is another: servers and
models write numbers, lists and objects as text, one element for a list of one, and
null for what is left out. What a value means is never guessed.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

__all__ = ["decode_arguments"]

A = TypeVar("A", bound=msgspec.Struct)

_WORDS = {"true": True, "false": False, "null": None, "none": None, "": None}
"""How a text says what JSON has a word for; Python's spelling is common."""


def decode_arguments(
    text: str, arguments_type: type[A], schema: Mapping[str, Any], *, json_texts: Collection[str] = ()
) -> A:
    """Return ``text``, a JSON object, as ``arguments_type``, whose schema is ``schema``.

    ``json_texts`` are the fields for the text of a file, which may itself be JSON: where a
    model gives the value instead of its text, the text is made of it.

    Raises:
        msgspec.ValidationError: it does not fit, read either way; says what the strict reading found.
        msgspec.DecodeError: this is not JSON.
        RecursionError: it is nested too deeply.
    """
    try:
        return msgspec.json.decode(text, type=arguments_type)
    except msgspec.ValidationError:
        given = msgspec.json.decode(text)
        if not isinstance(given, dict):
            raise
        for name in json_texts:
            if isinstance(value := given.get(name), dict | list):
                given[name] = msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
        with suppress(msgspec.ValidationError):  # the strict reading names what the model wrote
            return msgspec.convert(_fitted(given, schema), arguments_type)
        raise


def _fitted(value: Any, schema: Mapping[str, Any], *, optional: bool = False) -> Any:
    """Return ``value`` in the JSON type that ``schema`` wants, if it says the same; else as it is.

    None may come back for what is ``optional``, and means that it is not given.
    """
    kinds = _kinds(schema) | ({"null"} if optional else set())
    if isinstance(value, str) and "string" not in kinds:
        value = _said(value, kinds)
    if isinstance(value, float) and value.is_integer() and "number" not in kinds and "integer" in kinds:
        return int(value)
    if "array" in kinds and value is not None and not isinstance(value, list):
        value = [value]
    match value:
        case list():
            items: Mapping[str, Any] = next((at["items"] for at in _branches(schema) if "items" in at), {})
            return [_fitted(item, items) for item in value]
        case dict():
            return _fitted_object(value, schema)
        case _:
            return value


def _fitted_object(value: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = next((branch["properties"] for branch in _branches(schema) if "properties" in branch), None)
    if properties is None:
        return value  # any object will do
    required = schema.get("required", ())
    fitted: dict[str, Any] = {}
    for name, inner in value.items():
        known = properties.get(name)
        if known is not None:
            inner = _fitted(inner, known, optional=name not in required)  # noqa: PLW2901 - the same value
        if inner is not None or (known is not None and "null" in _kinds(known)) or name in required:
            fitted[name] = inner
    return fitted


def _said(text: str, kinds: Collection[str]) -> Any:
    """Return what ``text`` says as JSON, if it is of one of ``kinds``; else the text."""
    stripped = text.strip()
    try:
        value = _WORDS[stripped.lower()] if stripped.lower() in _WORDS else msgspec.json.decode(stripped)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    return value if _kind(value) in kinds or (_kind(value) == "integer" and "number" in kinds) else text


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _branches(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [schema, *schema.get("anyOf", ())]


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    """Return the JSON types that ``schema`` takes; those of any value when it does not say."""
    kinds = {branch["type"] for branch in _branches(schema) if "type" in branch}
    kinds |= {_kind(value) for branch in _branches(schema) for value in branch.get("enum", ())}
    return kinds or {"string"}
