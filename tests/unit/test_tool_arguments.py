"""Arguments whose meaning is plain although their JSON types are not those of the schema."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
import trio
from msgspec import Meta

from odek.errors import ToolError
from odek.messages import AssistantMessage, FunctionCall, ToolCall
from odek.tools.arguments import decode_arguments
from odek.tools.edit_files import PatchTool, WriteFileTool
from odek.tools.plan import Plan
from odek.tools.read_file import ReadFileTool
from odek.tools.tool import argument_schema
from tests.support.tool_calls import call


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A thing in a list."""

    name: str
    count: int = 1


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A field of every kind."""

    text: str = ""
    number: Annotated[int, Meta(ge=0)] = 0
    ratio: float = 0.5
    flag: bool = False
    maybe: int | None = 7
    mode: Literal["on", "off"] | None = None
    names: list[str] = []
    items: list[Item] = []
    anything: dict[str, Any] | None = None


def decoded(**arguments: object) -> Wanted:
    """Return what the arguments stand for."""
    return decode_arguments(json.dumps(arguments), Wanted, argument_schema(Wanted))


@pytest.mark.parametrize(
    ("field", "written", "meant"),
    [
        ("number", "12", 12),
        ("number", " 12 ", 12),
        ("number", 12.0, 12),
        ("number", None, 0),
        ("number", "", 0),
        ("number", "null", 0),
        ("ratio", "2", 2.0),
        ("ratio", "2.5", 2.5),
        ("flag", "true", True),
        ("flag", "False", False),
        ("flag", None, False),
        ("maybe", "null", None),
        ("maybe", "None", None),
        ("maybe", None, None),
        ("maybe", "3", 3),
        ("text", None, ""),
        ("text", "12", "12"),
        ("text", "null", "null"),
        ("mode", "on", "on"),
        ("names", '["a", "b"]', ["a", "b"]),
        ("names", "a", ["a"]),
        ("names", ["1"], ["1"]),
        ("items", '[{"name": "a", "count": "2"}]', [Item("a", 2)]),
        ("items", {"name": "a"}, [Item("a")]),
        ("items", ['{"name": "a"}'], [Item("a")]),
        ("items", [{"name": "a", "count": None}], [Item("a")]),
        ("anything", '{"type": "object"}', {"type": "object"}),
        ("anything", {"x": None, "y": "1"}, {"x": None, "y": "1"}),
        ("unheard_of", None, None),
    ],
)
def test_what_is_plainly_meant_is_taken(field: str, written: object, meant: object) -> None:
    """Numbers, words, lists and objects written as text, and null for what is left out, are understood."""
    arguments = decoded(**{field: written})

    assert getattr(arguments, field, None) == meant


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"number": "two"}, "Expected `int`, got `str`"),
        ({"number": "1.5"}, "Expected `int`, got `str`"),
        ({"number": "-1"}, "Expected `int`, got `str`"),
        ({"number": True}, "Expected `int`, got `bool`"),
        ({"number": [1]}, "Expected `int`, got `array`"),
        ({"flag": "yes"}, "Expected `bool`, got `str`"),
        ({"flag": 1}, "Expected `bool`, got `int`"),
        ({"text": 12}, "Expected `str`, got `int`"),
        ({"text": {"a": 1}}, "Expected `str`, got `object`"),
        ({"names": [1]}, "Expected `str`, got `int`"),
        ({"items": "a"}, "Expected `array`, got `str`"),
        ({"items": [{"count": 1}]}, "missing required field `name`"),
        ({"unheard_of": 1}, "unknown field `unheard_of`"),
    ],
)
def test_what_could_mean_something_else_is_refused(arguments: dict[str, object], reason: str) -> None:
    """Nothing is guessed, and the reason speaks of what was written."""
    with pytest.raises(msgspec.ValidationError, match=reason):
        decoded(**arguments)


async def test_a_file_is_read_and_patched_by_text_for_everything(tmp_path: Path) -> None:
    """A model that writes every value as text gets its lines, and its edits."""
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    disk = trio.CapacityLimiter(1)
    edits = json.dumps([{"old_text": "two", "new_text": "2", "replace_all": "false"}])

    patched = await call(PatchTool(tmp_path, disk), path="a.txt", edits=edits)
    read = await call(ReadFileTool(tmp_path, disk), path="a.txt", start_line="2", end_line="2")

    assert patched.changed == ("a.txt",)
    assert read.content.startswith("2│2\n")


async def test_a_json_file_given_as_a_value_is_written_as_its_text(tmp_path: Path) -> None:
    """The file holds that JSON, indented."""
    tool = WriteFileTool(tmp_path, trio.CapacityLimiter(1))

    await call(tool, path="a.json", content={"name": "né", "list": [1]})

    assert (tmp_path / "a.json").read_text() == '{\n  "name": "né",\n  "list": [\n    1\n  ]\n}\n'
    with pytest.raises(ToolError, match="write_file: expected `str`, got `array`, in `path`"):
        await call(tool, path=["a"], content="x")


async def test_an_unknown_field_is_answered_with_those_that_there_are(tmp_path: Path) -> None:
    """A model that knows another tool of the kind sees at once what this one calls it."""
    tool = ReadFileTool(tmp_path, trio.CapacityLimiter(1))

    with pytest.raises(ToolError, match="unknown field `file`; the fields are: path, start_line, end_line"):
        await call(tool, file="a.txt")


def test_a_plan_written_as_text_is_there_again_after_a_resume() -> None:
    """What the tool took in the conversation is taken when it is read back."""
    plan = Plan()
    arguments = json.dumps({"steps": json.dumps([{"title": "read"}])})

    plan.restore([AssistantMessage("", (ToolCall("c", FunctionCall("plan", arguments)),))])

    assert plan.open_titles() == ("read",)
