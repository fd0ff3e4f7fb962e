"""Arguments of tool calls become one JSON object, or are kept as what they are."""

from typing import Any

import msgspec
import pytest

from odek.errors import ToolError
from odek.llm.arguments import (
    is_json_object,
    malformed_arguments,
    normalise_arguments,
    readable_arguments,
)
from odek.tools.tool import PreparedCall, Tool


@pytest.mark.parametrize("raw", [None, "", "  \n", "null", "{}", "{}{}", " {} "])
def test_no_arguments_are_an_empty_object(raw: Any) -> None:
    """All ways to say nothing are ``{}``."""
    assert normalise_arguments(raw) == "{}"


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{}{"a":1}', {"a": 1}),
        ('{"a":1}{}', {"a": 1}),
        ('{"a":1}\n{"a":1}', {"a": 1}),
        ('{"a":"\\ud83d\\ude00"}', {"a": "😀"}),
        ('{"a":"\ud83d\ude00"}', {"a": "😀"}),
        ('{"a":"\\ud83d"}', {"a": "�"}),
        ({"a": "\ud83d"}, {"a": "�"}),
    ],
)
def test_an_object_is_found(raw: Any, value: Any) -> None:
    """An object as text, as value, as text in text, beside empty or equal ones, with bad escapes."""
    arguments = normalise_arguments(raw)
    assert msgspec.json.decode(arguments) == value
    assert malformed_arguments(arguments) is None


@pytest.mark.parametrize(
    "raw",
    [
        '{"a":',
        '{"a": 1',
        "{'a': 1}",
        '{"a":1}{"a":2}',
        pytest.param("".join(f'{{"a":{n}}} ' for n in range(200_000)), id="many differing ones"),
        '{"a":1} trailing',
        "[1]",
        "7",
        '"text"',
        '{"a":NaN}',
        '{"a":1e999}',
        "[" * 100_000,
        '{"a":' * 100_000,
        "\ud83d",
    ],
    ids=lambda raw: raw[:12].encode("ascii", "backslashreplace").decode(),
)
def test_what_is_no_object_never_runs(raw: str) -> None:
    """Malformed arguments stay readable, are a valid object for the provider, and are recognised."""
    arguments = normalise_arguments(raw)
    assert is_json_object(arguments)
    kept = malformed_arguments(arguments)
    assert kept is not None
    assert kept[:5] == raw[:5].replace("\ud83d", "�")


def test_an_array_in_place_of_an_object_is_malformed() -> None:
    """Also as a value."""
    assert malformed_arguments(normalise_arguments([1])) == "[1]"


def test_normalising_twice_changes_nothing() -> None:
    """Arguments that come back from the history are the same bytes."""
    for raw in ("", '{"a":', '{"a": 1}', '{}{"a":1}'):
        once = normalise_arguments(raw)
        assert normalise_arguments(once) == once


def test_malformed_arguments_are_kept_short() -> None:
    """Half of a large file does not go into every further request."""
    assert len(normalise_arguments('{"content":"' + "x" * 1_000_000)) < 10_000


class Lenient(msgspec.Struct, frozen=True):
    """Arguments that may all be left out, so that nearly any object would do."""

    depth: int = 1


class LenientTool(Tool[Lenient]):
    """A tool that would run with whatever decodes."""

    name = "lenient"
    description = "Does nothing."
    arguments_type = Lenient

    async def prepare(self, arguments: Lenient) -> PreparedCall:
        """Fail: no malformed arguments may come this far."""
        raise AssertionError(arguments)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ('{"depth":', "the arguments are not valid JSON: Input data was truncated"),
        (
            '{"depth":1}{"depth":2}',
            "the arguments are not valid JSON: JSON is malformed: trailing characters",
        ),
        ("[1]", "expected `object`, got `array`"),
        ('{"x":' + "[" * 100_000, "the arguments are n"),  # nested too deeply, where C has less stack
    ],
    ids=["truncated", "two", "array", "deep"],
)
async def test_a_tool_answers_malformed_arguments_with_the_reason(raw: str, sentence: str) -> None:
    """Even a tool without required arguments does not run, and the model learns why."""
    with pytest.raises(ToolError) as caught:
        await LenientTool().prepare_json(normalise_arguments(raw))
    assert str(caught.value).startswith(f"lenient: {sentence}")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"command":"make -k | tail"}', "make -k | tail"),
        ('{"path":"a.py","offset":3,"all":true,"limit":null}', "a.py · offset 3 · all true"),
        ('{"tasks":[{},{}],"extra":{"a":1}}', '2 tasks · extra {"a":1}'),
        ('{"_raw_arguments":"{\\"command\\": make"}', '{"command": make'),
        ("{}", ""),
        ("[1]", "[1]"),
        ("not json", "not json"),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=lambda text: text[:30],
)
def test_arguments_are_shown_as_a_person_reads_them(arguments: str, shown: str) -> None:
    """No braces and quotes where there is a text to show; what no object is, as it is."""
    assert readable_arguments(arguments) == shown
