"""File tools beside a process that swaps directories for links while they work."""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio

from odek.errors import ToolError
from odek.tools.edit_files import PatchTool, WriteFileTool
from odek.tools.read_file import ReadFileTool
from odek.tools.search_files import SearchFilesTool
from odek.trust.paths import Where
from odek.trust.policy import assess
from odek.trust.risk import Risk
from tests.support.tool_calls import SCOPE, call, prepare

ROOT = Path(__file__).parents[2]
SHORT, LONG = 60, 3000
"""Calls beside the swapper; each is a chance to be led astray."""


@asynccontextmanager
async def swapping(directory: Path, target: Path) -> AsyncGenerator[None]:
    """Have a process swap ``directory`` for a link to ``target``, and back, until the block is left."""
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "tests.support.link_swapper", str(directory), str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        await process.stdout.receive_some()
        yield
    finally:
        with trio.CancelScope(shield=True), trio.move_on_after(10):
            await process.stdin.aclose()
            await process.wait()
            await process.stdout.aclose()


@pytest.mark.parametrize(
    "tries", [pytest.param(SHORT, id="short"), pytest.param(LONG, id="long", marks=pytest.mark.slow)]
)
async def test_no_write_goes_through_a_link_that_appears(tmp_path: Path, tries: int) -> None:
    """However the swap falls, nothing is made or changed outside: a call writes where it said, or not."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "old.txt").write_text("theirs")
    (work / "sub" / "old.txt").write_text("ours")
    disk = trio.CapacityLimiter(4)
    writer, patcher = WriteFileTool(work, disk), PatchTool(work, disk)
    async with swapping(work / "sub", outside):
        for number in range(tries):
            with suppress(ToolError):
                prepared = await prepare(writer, path=f"sub/new-{number}/a.txt", content="mine")
                if not any(path.is_relative_to(outside) for path in prepared.effects.writes):
                    await prepared.run(SCOPE)
            with suppress(ToolError):
                prepared = await prepare(
                    patcher,
                    path="sub/old.txt",
                    edits=[{"old_text": "ours", "new_text": "ours"}, {"old_text": "o", "new_text": "0"}],
                )
                if not any(path.is_relative_to(outside) for path in prepared.effects.writes):
                    await prepared.run(SCOPE)

    assert [path.name for path in outside.iterdir()] == ["old.txt"]
    assert (outside / "old.txt").read_text() == "theirs"


@pytest.mark.parametrize(
    "tries", [pytest.param(SHORT, id="short"), pytest.param(LONG, id="long", marks=pytest.mark.slow)]
)
async def test_no_read_goes_through_a_link_that_appears(tmp_path: Path, tries: int) -> None:
    """What a call reads is what it declared: nothing of the other directory comes back undeclared."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "a.txt").write_text("secret of others\n")
    (work / "sub" / "a.txt").write_text("plain\n")
    reader = ReadFileTool(work, trio.CapacityLimiter(4))
    seen: list[str] = []
    async with swapping(work / "sub", outside):
        for _ in range(tries):
            with suppress(ToolError):
                prepared = await prepare(reader, path="sub/a.txt")
                if not any(path.is_relative_to(outside) for path in prepared.effects.reads):
                    seen.append((await prepared.run(SCOPE)).content)

    assert seen
    assert not any("secret" in content for content in seen)


async def test_a_search_follows_no_link_that_appears(tmp_path: Path) -> None:
    """Files below a directory that becomes a link during the walk are left out, not read elsewhere."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "sub").mkdir(parents=True)
    outside.mkdir()
    for number in range(50):
        (outside / f"{number}.txt").write_text("needle of others\n")
        (work / "sub" / f"{number}.txt").write_text("needle of ours\n")
    tool = SearchFilesTool(work, trio.CapacityLimiter(4))
    async with swapping(work / "sub", outside):
        found = [await call(tool, pattern="needle", max_results=500) for _ in range(3)]

    assert not any("of others" in output.content for output in found)


HOME_FILES = (
    ".bashrc",
    ".profile",
    ".zshrc",
    ".config/fish/config.fish",
    ".ssh/authorized_keys",
    ".gitconfig",
)
ODEK_FILES = (".odek/config.json", ".odek/memory/user.md", ".odek/memory/index.json", ".odek/sessions/s.json")


def spellings(folder: Path, name: str) -> dict[str, str]:
    """Return ways to write the path of a file of the home, seen from the workspace beside it."""
    home = folder / "home"
    above, _, last = name.rpartition("/")
    return {
        "plain": f"{home}/{name}",
        "climbing": f"../home/{name}",
        "winding": f"{home}/../home/./{name}",
        "doubled": f"{home}//{name}".replace("/home//", "//home///"),
        "by a linked directory": f"to-home/{name}",
        "by a linked directory of its own": f"{home}/link-{above.replace('/', '-') or 'here'}/{last}",
        "by a link to it": f"link-to-{last}",
        "by the directory of a process": f"/proc/self/cwd/{os.path.relpath(home / name)}",
        "by the root of a process": f"/proc/self/root{home}/{name}",
    }


@pytest.mark.parametrize("name", [*HOME_FILES, *ODEK_FILES])
async def test_what_is_obeyed_later_is_system_write_however_it_is_spelled(tmp_path: Path, name: str) -> None:
    """Writing to a start-up file of a shell, or to what odek trusts, is never a write in the workspace."""
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    (home / name).parent.mkdir(parents=True)
    (home / name).write_text("before\n")
    (work / "to-home").symlink_to(home)
    above, _, last = name.rpartition("/")
    (home / f"link-{above.replace('/', '-') or 'here'}").symlink_to(home / above)
    (work / f"link-to-{last}").symlink_to(home / name)
    tool = WriteFileTool(work, trio.CapacityLimiter(4))
    where = Where(work, work, home, home / ".odek")
    risks: dict[str, Risk] = {}
    for spelling, path in spellings(tmp_path, name).items():
        prepared = await prepare(tool, path=path, content="after\n")
        risks[spelling] = assess(prepared.effects, where).risk

    assert {spelling for spelling, risk in risks.items() if risk < Risk.SYSTEM_WRITE} == set()


async def test_a_hard_link_is_no_way_to_it(tmp_path: Path) -> None:
    """A file of the workspace that is another name of a start-up file gets content of its own."""
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    (home / ".bashrc").write_text("alias ls=ls\n")
    (work / "notes.txt").hardlink_to(home / ".bashrc")

    await call(WriteFileTool(work, trio.CapacityLimiter(4)), path="notes.txt", content="curl x | sh\n")

    assert (home / ".bashrc").read_text() == "alias ls=ls\n"
