"""What somebody wrote into a file since the agent saw it is not written over unseen."""

from pathlib import Path

import pytest
import trio

from odek.errors import ToolError
from odek.tools.edit_files import PatchTool, WriteFileTool
from odek.tools.read_file import ReadFileTool
from odek.tools.seen_files import SeenFiles
from tests.support.cli import Odek
from tests.support.tool_calls import call

Tools = tuple[ReadFileTool, WriteFileTool, PatchTool]


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    """Return the file tools of one agent, and a file of one word a line."""
    disk, seen = trio.CapacityLimiter(4), SeenFiles()
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    return (
        ReadFileTool(tmp_path, disk, seen),
        WriteFileTool(tmp_path, disk, seen),
        PatchTool(tmp_path, disk, seen),
    )


async def test_a_file_that_changed_since_it_was_read_is_not_replaced(tools: Tools, tmp_path: Path) -> None:
    """The person's edit stays; once the agent has read it, it may write."""
    read, write, _ = tools
    await call(read, path="a.txt", start_line=2)
    (tmp_path / "a.txt").write_text("one\nby a person\n")

    with pytest.raises(
        ToolError, match=r"^a\.txt was changed by somebody since you saw it; read it again first$"
    ):
        await call(write, path="./a.txt", content="one\n2\n")
    assert (tmp_path / "a.txt").read_text() == "one\nby a person\n"

    await call(read, path="a.txt")
    await call(write, path="a.txt", content="one\nby both\n")
    assert (tmp_path / "a.txt").read_text() == "one\nby both\n"


async def test_a_file_that_changed_since_it_was_written_is_not_replaced(tools: Tools, tmp_path: Path) -> None:
    """What the agent wrote it knows, until somebody goes on with it."""
    _, write, _ = tools
    for content in ("first\n", "second\n"):
        await call(write, path="new.txt", content=content)
    (tmp_path / "new.txt").write_text("third\n")

    with pytest.raises(ToolError, match="was changed by somebody"):
        await call(write, path="new.txt", content="fourth\n")
    assert (
        "already has exactly this content" in (await call(write, path="new.txt", content="third\n")).content
    )


async def test_a_patch_finds_its_passage_and_shows_no_more_of_the_file(tools: Tools, tmp_path: Path) -> None:
    """Behind one the agent knows the file as well as before it, and no better."""
    read, write, patch = tools
    await call(read, path="a.txt")
    await call(patch, path="a.txt", edits=[{"old_text": "one", "new_text": "1"}])
    await call(write, path="a.txt", content="1\ntwo\nthree\n")
    (tmp_path / "a.txt").write_text("1\ntwo\nthree\nfour\n")
    await call(patch, path="a.txt", edits=[{"old_text": "1", "new_text": "one"}])

    with pytest.raises(ToolError, match="was changed by somebody"):
        await call(write, path="a.txt", content="1\n")
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\nthree\nfour\n"


async def test_what_was_never_seen_or_is_gone_may_be_written(tools: Tools, tmp_path: Path) -> None:
    """Nothing is lost that anybody took for something else."""
    read, write, _ = tools
    await call(write, path="a.txt", content="new\n")
    await call(read, path="a.txt")
    (tmp_path / "a.txt").unlink()

    assert "created a.txt" in (await call(write, path="a.txt", content="again\n")).content


async def test_the_tools_of_an_agent_know_of_each_other(tmp_path: Path) -> None:
    """In a dialogue, a command may change what was read before."""
    odek = Odek(tmp_path)
    (odek.workspace / "a.txt").write_text("one\n")

    done = await odek.run("repl", stdin=b"read a.txt\nrun printf 2 > a.txt\nwrite a.txt: three\n")

    assert "a.txt was changed by somebody since you saw it; read it again first" in done.stdout
    assert (odek.workspace / "a.txt").read_text() == "2"


async def test_a_session_that_goes_on_knows_what_it_saw(tmp_path: Path) -> None:
    """Between two commands a person edits a file: it is not written over; one that nobody touched is."""
    odek = Odek(tmp_path)
    for name in ("a.txt", "b.txt"):
        (odek.workspace / name).write_text("one\n")
    await odek.run("run", "read a.txt\nread b.txt\nread none.txt")
    (odek.workspace / "a.txt").write_text("by a person\n")

    refused = await odek.run("continue", "write a.txt: two\nwrite b.txt: two\nwrite none.txt: two")
    done = await odek.run("continue", "read a.txt, then write a.txt: two")

    assert "a.txt was changed by somebody since you saw it; read it again first" in refused.stdout
    assert (odek.workspace / "b.txt").read_text() == (odek.workspace / "none.txt").read_text() == "two\n"
    assert "replaced a.txt" in done.stdout
    assert (odek.workspace / "a.txt").read_text() == "two\n"
