"""Whole turns of the offline model with the real tools and a real memory."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio

from odek.llm.offline import OfflineModel
from odek.llm.offline_rules import EXAMPLES, Call, parse_requests
from odek.loop import run_turn
from odek.memory.facts import FactLimits
from odek.memory.service import open_memory
from odek.tools.edit_files import WriteFileTool
from odek.tools.http_get import HttpGetTool
from odek.tools.listing import GlobTool, TreeTool
from odek.tools.memory import MemoryTool
from odek.tools.plan import PlanTool
from odek.tools.read_file import ReadFileTool
from odek.tools.search_files import SearchFilesTool
from odek.tools.session_search import SessionSearchTool
from odek.tools.shell import Shell
from tests.support.agents import OpenGate, make_agent

if TYPE_CHECKING:
    from odek.tools.tool import Tool

Ask = Callable[[str], Awaitable[str]]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A small project."""
    path = tmp_path / "project"
    (path / "src").mkdir(parents=True)
    (path / "notes.txt").write_text("The release is on Friday.\nTODO: tag it\n")
    (path / "src" / "a.py").write_text("x = f(1)\n")
    return path


@asynccontextmanager
async def open_session(workspace: Path, gate: OpenGate | None = None) -> AsyncGenerator[Ask]:
    """Open one session that answers a task a call."""
    disk = trio.CapacityLimiter(2)
    files = [
        tool(workspace, disk) for tool in (ReadFileTool, WriteFileTool, TreeTool, GlobTool, SearchFilesTool)
    ]
    async with open_memory(workspace.parent / "memory", FactLimits()) as memory:
        agent = make_agent(OfflineModel(), *files, MemoryTool(memory), gate=gate)

        async def ask(task: str) -> str:
            return (await run_turn(agent, task)).answer

        yield ask


async def test_files_are_read_written_listed_and_searched(workspace: Path) -> None:
    """The tools take what the model asks for, and the answer holds what they returned."""
    async with open_session(workspace) as ask:
        read = await ask("read notes.txt")
        written = await ask("write todo.md: - tag it, then read todo.md")
        listed = await ask("list\nlist *.py in src")
        found = await ask("search for f(1)")

    assert "The release is on Friday." in read
    assert (workspace / "todo.md").read_text() == "- tag it\n"
    assert written.index("`write_file todo.md") < written.index("`read_file todo.md`")
    assert "a.py" in listed
    assert "notes.txt" in listed
    assert "src/a.py" in found


def test_every_call_fits_the_schema_of_its_tool() -> None:
    """Whatever the model asks for, the real tool takes the arguments as they are."""
    tools: list[type[Tool[Any]]] = [
        MemoryTool,
        ReadFileTool,
        WriteFileTool,
        TreeTool,
        GlobTool,
        SearchFilesTool,
        SessionSearchTool,
        Shell,
        HttpGetTool,
        PlanTool,
    ]
    schemas = {tool.name: tool.arguments_type for tool in tools}
    steps = [step for example in EXAMPLES for stage in parse_requests(example) for step in stage]
    calls = [step for step in steps if isinstance(step, Call) and step.tool in schemas]

    assert {call.tool for call in calls} == set(schemas)
    for call in calls:
        msgspec.convert(call.arguments, schemas[call.tool])


async def test_a_later_session_knows_what_an_earlier_one_was_told(workspace: Path) -> None:
    """A fact that is remembered in one session is found in another, and gone once it is forgotten."""
    async with open_session(workspace) as ask:
        await ask("remember that I prefer tabs\nremember that CI runs Python 3.11")
    async with open_session(workspace) as ask:
        known = await ask("what do you know about tabs?")
        await ask("forget that I prefer tabs")
        rest = await ask("what do you remember")

    assert "user: I prefer tabs" in known
    assert "I prefer tabs" not in rest
    assert "CI runs Python 3.11" in rest


async def test_a_refused_call_is_reported_as_refused(workspace: Path) -> None:
    """The answer says that a call was denied; nothing was written."""
    async with open_session(workspace, OpenGate(denied=["write_file"])) as ask:
        answer = await ask("write todo.md: x\nread notes.txt")

    assert "write_file was denied by the person" in answer
    assert "The release is on Friday." in answer
    assert not (workspace / "todo.md").exists()


async def test_a_tool_that_does_not_exist_here_is_named(workspace: Path) -> None:
    """Without a shell a command is not run and the answer says so."""
    async with open_session(workspace) as ask:
        answer = await ask("run ls")

    assert answer == "Not done: “run ls”. The tool `shell` is not offered here."
