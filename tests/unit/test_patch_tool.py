"""How ``patch`` finds passages, keeps a file's form, and explains what it did not find."""

from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.errors import TargetChangedError, ToolError
from odek.tools.edit_files import PatchTool
from odek.tools.matching import replace_passage
from tests.support.tool_calls import SCOPE, call, prepare

CODE = "class A:\n    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n"


@pytest.fixture
def tool(tmp_path: Path) -> PatchTool:
    """A tool in an empty workspace."""
    return PatchTool(tmp_path, trio.CapacityLimiter(4))


def edit(old: str, new: str, *, replace_all: bool = False) -> dict[str, object]:
    """Return one edit as a model writes it."""
    return {"old_text": old, "new_text": new, "replace_all": replace_all}


async def test_edits_are_applied_in_order_and_shown(tool: PatchTool, tmp_path: Path) -> None:
    """Two edits are one change: one preview, one write, one sentence."""
    (tmp_path / "a.py").write_text(CODE)

    prepared = await prepare(
        tool, path="a.py", edits=[edit("return 1", "return x"), edit("return x", "return 11")]
    )
    output = await prepared.run(SCOPE)

    assert "-        return 1\n+        return 11\n" in prepared.preview
    assert prepared.effects.reads == prepared.effects.writes == (tmp_path / "a.py",)
    assert output.content == "patched a.py: 2 places, +1 -1 lines"
    assert output.diff == prepared.preview
    assert output.changed == ("a.py",)
    assert (tmp_path / "a.py").read_text() == CODE.replace("return 1", "return 11")


async def test_one_failing_edit_leaves_the_file_alone(tool: PatchTool, tmp_path: Path) -> None:
    """All edits are applied or none, and the failing one is numbered."""
    (tmp_path / "a.py").write_text(CODE)

    with pytest.raises(ToolError, match=r"^a\.py is unchanged: edit 2 of 2, old_text is not in the file"):
        await call(tool, path="a.py", edits=[edit("return 1", "return 3"), edit("return 9", "return 4")])

    assert (tmp_path / "a.py").read_text() == CODE


async def test_failure_that_quotes_the_file_is_a_read(tool: PatchTool, tmp_path: Path) -> None:
    """A passage that is not there can only be explained by the file's text, so the policy sees a read."""
    (tmp_path / "secrets").write_text("password = hunter2\n")

    prepared = await prepare(tool, path="secrets", edits=[edit("password = x", "y")])

    assert prepared.effects.reads == (tmp_path / "secrets",)
    assert prepared.effects.writes == ()
    with pytest.raises(ToolError, match="line 1: `password = hunter2`"):
        await prepared.run(SCOPE)


async def test_changed_file_is_not_patched(tool: PatchTool, tmp_path: Path) -> None:
    """An edit made on a file as it was is not applied to what it has become."""
    (tmp_path / "a.py").write_text(CODE)
    prepared = await prepare(tool, path="a.py", edits=[edit("return 1", "return 3")])
    (tmp_path / "a.py").write_text(CODE + "# theirs\n")

    with pytest.raises(TargetChangedError):
        await prepared.run(SCOPE)
    assert (tmp_path / "a.py").read_text() == CODE + "# theirs\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb\n", "a\nx\ny\n", b"a\r\nx\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "b\nc", b"a\r\nb\r\nc\r\n"),
        (b"a\nb\r\nc\nd\r\n", "b", "x\ny", b"a\nx\r\ny\r\nc\nd\r\n"),
        (b"a\nb\r\nc\nd\r\n", "c\n", "x\ny\n", b"a\nb\r\nx\ny\nd\r\n"),
        (b"a\nb", "b", "c", b"a\nc"),
        (b"a\nb", "b\n", "c\n", b"a\nc"),
        (b"a\nb\n", "b", "c", b"a\nc\n"),
        (b"\xef\xbb\xbfa\r\nb\r\n", "a\n", "x\n", b"\xef\xbb\xbfx\r\nb\r\n"),
        ("größe\r\nb".encode("utf-16"), "größe", "maß", "maß\r\nb".encode("utf-16")),
        ("größe\nb\n".encode("latin-1"), "b", "c", "größe\nc\n".encode("latin-1")),
        (b"a\rb\nc\n", "c", "d", b"a\rb\nd\n"),
    ],
)
async def test_form_of_the_file_is_kept(
    tool: PatchTool, tmp_path: Path, before: bytes, old: str, new: str, after: bytes
) -> None:
    """Line ends, byte order mark, encoding and final newline are the file's, mixed ones included."""
    (tmp_path / "a.txt").write_bytes(before)

    await call(tool, path="a.txt", edits=[edit(old, new)])

    assert (tmp_path / "a.txt").read_bytes() == after


async def test_character_outside_the_encoding_is_refused(tool: PatchTool, tmp_path: Path) -> None:
    """A latin-1 file does not become something else for one character."""
    (tmp_path / "a.txt").write_bytes("größe\n".encode("latin-1"))

    with pytest.raises(ToolError, match=r"its encoding, latin-1, has no character '\\u20ac'"):
        await call(tool, path="a.txt", edits=[edit("größe", "€")])


async def test_binary_and_missing_files_are_refused(tool: PatchTool, tmp_path: Path) -> None:
    """Only text that exists can be patched."""
    (tmp_path / "a.bin").write_bytes(b"a\0b")

    with pytest.raises(ToolError, match=r"a\.bin is binary data \(3 bytes\), not text"):
        await call(tool, path="a.bin", edits=[edit("a", "b")])
    with pytest.raises(ToolError, match="new does not exist; write_file creates files"):
        await call(tool, path="new", edits=[edit("a", "b")])


def test_white_space_is_tolerated_and_indentation_fitted() -> None:
    """A passage quoted with the wrong indentation is found, and its replacement fits in."""
    result = replace_passage(
        CODE,
        "def two(self):  \n    return 2\n",
        "def two(self):\n    if self:\n        return 22\n    return 2\n",
    )

    assert result.ignored == "indentation"
    assert result.text == CODE.replace(
        "        return 2\n", "        if self:\n            return 22\n        return 2\n"
    )


def test_blanks_become_the_tabs_of_the_file() -> None:
    """A replacement written with blanks goes into a file of tabs as tabs."""
    text = "if a:\n\tif b:\n\t\tc()\n"

    result = replace_passage(
        text, "    if b:\n        c()", "    if b:\n        if d:\n            c()\n    e()"
    )

    assert result.text == "if a:\n\tif b:\n\t\tif d:\n\t\t\tc()\n\te()\n"


def test_replacement_may_be_less_indented_than_the_quotation() -> None:
    """A line that leaves the quoted block keeps its distance to it."""
    text = "        a()\n        b()\n"

    assert replace_passage(text, "    a()\n    b()\n", "    a()\nb()\n").text == "        a()\n    b()\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("in\u00a0current work\n", "in current work", "in current play", "in\u00a0current play\n"),
        ("She said, \u201cHello.\u201d\n", 'said, "Hello."', 'said, "Hi."', "She said, \u201cHi.\u201d\n"),
        ("a \u2014 b \u2014 c\n", "a - b - c", "x - b - y", "x \u2014 b \u2014 y\n"),
        ("it\u2019s\tone\nit\u2019s two\n", "it's\tone\nit's two", "it's\tone", "it\u2019s\tone\n"),
        ("plain - text\n", "plain \u2013 text", "plain \u2013 words", "plain - words\n"),
        ("a\u00a0b\r\nc\r\n", "a b\nc", "a b\nd", "a\u00a0b\r\nd\r\n"),
    ],
)
def test_characters_that_look_alike_are_found_and_kept(text: str, old: str, new: str, after: str) -> None:
    """A model writes what its keyboard has; what it does not mean to change stays as the file has it."""
    result = replace_passage(text, old, new)

    assert (result.text, result.ignored) == (after, "which blanks, quotes and dashes they are")


def test_characters_that_look_alike_do_not_hide_a_second_place() -> None:
    """Two places that differ in such characters only are two; the one quoted exactly is one."""
    text = "say \u201chi\u201d\nsay 'hi'\nsay \u2018hi\u2019\n"

    assert replace_passage(text, "say 'hi'", "go").text == "say \u201chi\u201d\ngo\nsay \u2018hi\u2019\n"
    with pytest.raises(ToolError, match="occurs 2 times, at lines 2, 3"):
        replace_passage(text, "say \u201b" + "hi'", "go")


def test_a_long_passage_with_such_characters_is_edited_at_once() -> None:
    """Beyond what can be compared, what changed is written as it was given."""
    text = "\u2019" + "x" * 200_000 + "\u2019"

    result = replace_passage(text, "'" + "x" * 200_000 + "'", "'" + "y" * 200_000 + "'")

    assert result.text == "\u2019" + "y" * 200_000 + "\u2019"


def test_exact_match_wins_over_a_tolerant_one() -> None:
    """White space is only looked away from when the exact text is nowhere."""
    result = replace_passage("  a\na\n", "\na", "\nb")

    assert (result.text, result.ignored) == ("  a\nb\n", "")


def test_whole_lines_can_be_deleted() -> None:
    """An empty replacement of quoted lines leaves no blank line behind."""
    assert replace_passage("a\n  b\nc\n", "b\n", "").text == "a\n  c\n"
    assert replace_passage("a\n  b \nc\n", "b\n", "").text == "a\nc\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "return",
            "x",
            r"old_text occurs 2 times, at lines 3, 6; quote more of its surroundings, or set replace_all",
        ),
        ("return 3", "x", r"most similar to its line `return 3`: line 3: `return 1`; line 6: `return 2`"),
        ("return 1", "return 1", r"old_text and new_text are equal"),
        ("", "x", r"old_text is empty"),
        ("3│        return 1", "x", r"it carries the line numbers of read_file: leave `12│` out"),
        ("return 7", "return 2", r"but new_text is, at line 6: the edit seems to be done"),
        ("zzzzzzzzzz", "x", r"nothing resembles `zzzzzzzzzz`; read it again"),
    ],
)
def test_failures_say_what_to_do(old: str, new: str, message: str) -> None:
    """Each way to miss has a sentence that helps to hit."""
    with pytest.raises(ToolError, match=message):
        replace_passage(CODE, old, new)


def test_ambiguous_tolerant_matches_are_numbered() -> None:
    """A passage found twice by ignoring white space is as ambiguous as an exact one."""
    with pytest.raises(ToolError, match="occurs 2 times, at lines 1, 3"):
        replace_passage("  a()\nb\n    a()\n", "a()  \n", "c()\n")

    result = replace_passage("  a()\nb\n    a()\n", "a()  \n", "c()\n", replace_all=True)

    assert (result.text, result.count) == ("  c()\nb\n    c()\n", 2)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "bb", "\n", "\r\n", " ", "c"]), max_size=30).map("".join),
    st.sampled_from(["a", "bb", "a\n", "\nbb", "c\na", "\n"]),
    st.sampled_from(["", "x", "x\ny", "\n"]),
)
def test_replacing_everywhere_is_what_str_replace_does(text: str, old: str, new: str) -> None:
    """Apart from the kind of line ends, replacing each exact match is plain replacement."""
    if old == new or old not in text.replace("\r\n", "\n"):
        return

    result = replace_passage(text, old, new, replace_all=True)

    assert result.text.replace("\r\n", "\n") == text.replace("\r\n", "\n").replace(old, new)
