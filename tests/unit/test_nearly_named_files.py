"""Files whose names hold what no keyboard has, asked for as a person or a model types them."""

from pathlib import Path

import pytest
import trio

from odek.attachments import attach
from odek.errors import ToolError
from odek.tools.edit_files import PatchTool, WriteFileTool
from odek.tools.listing import TreeTool
from odek.tools.read_file import ReadFileTool
from tests.support.sessions import files_in
from tests.support.tool_calls import call, prepare

DISK = trio.CapacityLimiter(4)
COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        (f"{DECOMPOSED}.txt", f"{COMPOSED}.txt"),
        (f"{COMPOSED}.txt", f"{DECOMPOSED}.txt"),
        ("Shot at 3.00.00\u202fPM.txt", "Shot at 3.00.00 PM.txt"),
        ("Sn\u00edmek v\u00a013.05.txt", "Sn\u00edmek v 13.05.txt"),
        ("Capture d\u2019e\u0301cran.txt", "Capture d'\u00e9cran.txt"),
        ("a \u2013 b.txt", "a - b.txt"),
        (f"{DECOMPOSED}s/d\u2019or/a.txt", f"{COMPOSED}s/d'or/a.txt"),
    ],
    ids=["NFD", "NFC", "narrow blank", "no-break blank", "apostrophe", "dash", "directories"],
)
async def test_the_one_file_that_is_named_nearly_so_is_read_and_patched(
    tmp_path: Path, name: str, typed: str
) -> None:
    """What is declared, and asked about, is the file that is there."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("one\n")

    prepared = await prepare(ReadFileTool(tmp_path, DISK), path=typed)
    assert prepared.effects.reads == (path,)
    assert prepared.summary == name
    await call(PatchTool(tmp_path, DISK), path=typed, edits=[{"old_text": "one", "new_text": "two"}])
    attached = attach(f'@"{typed}"', (), tmp_path, lambda content, _: content, lambda _: False, lambda _: "")

    assert path.read_text() == "two\n"
    assert attached.text.endswith("```\ntwo\n```")
    assert not tmp_path.joinpath(typed).exists()


async def test_a_directory_of_nearly_that_name_is_listed(tmp_path: Path) -> None:
    """The tree says what it is called."""
    (tmp_path / DECOMPOSED).mkdir()
    (tmp_path / DECOMPOSED / "a.txt").touch()

    assert "a.txt" in (await call(TreeTool(tmp_path, DISK), path=COMPOSED)).content


async def test_the_very_name_comes_first_and_of_two_none_is_taken(tmp_path: Path) -> None:
    """Nothing is guessed."""
    tool = ReadFileTool(tmp_path, DISK)
    (tmp_path / "a\u00a0b.txt").write_text("no-break")
    (tmp_path / "a\u202fb.txt").write_text("narrow")

    with pytest.raises(ToolError, match=r"a b\.txt does not exist; beside it"):
        await call(tool, path="a b.txt")
    (tmp_path / "a b.txt").write_text("plain")
    assert (await call(tool, path="a b.txt")).content == "1│plain"


async def test_what_is_written_gets_the_name_that_was_given(tmp_path: Path) -> None:
    """A new file replaces none that only looks so."""
    (tmp_path / "it\u2019s.txt").write_text("old")

    await call(WriteFileTool(tmp_path, DISK), path="it's.txt", content="new")

    assert files_in(tmp_path) == {"it\u2019s.txt": b"old", "it's.txt": b"new"}
