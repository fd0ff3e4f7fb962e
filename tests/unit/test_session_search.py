"""The ``session_search`` tool, over real session files."""

import os
import time
from pathlib import Path

import pytest
import trio

from odek.errors import ToolError
from odek.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from odek.sessions.search import search_sessions
from odek.sessions.store import SessionStore
from odek.tools.session_search import SessionSearchTool
from tests.support.sessions import ask, call, save_session, write_foreign
from tests.support.tool_calls import call as run
from tests.support.tool_calls import prepare


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    """Return a store in a directory of the test."""
    return SessionStore(tmp_path)


@pytest.fixture
def tool(tmp_path: Path) -> SessionSearchTool:
    """Return the tool over the same directory."""
    return SessionSearchTool(tmp_path, trio.CapacityLimiter(1))


async def test_a_passage_names_its_session_day_and_turn(store: SessionStore, tool: SessionSearchTool) -> None:
    """The words of the query are marked in the passage that holds most of them."""
    session = await save_session(
        store,
        [
            UserMessage("first the docs"),
            AssistantMessage("ok"),
            UserMessage("now release it"),
            AssistantMessage("The release is tagged v1.2; the changelog went with it."),
        ],
    )

    output = await run(tool, query="release changelog")

    day = time.strftime("%Y-%m-%d")
    assert output.content == (
        f"{session} ({day}, turn 2)\nThe **release** is tagged v1.2; the **changelog** went with it."
    )


async def test_more_matched_words_come_first_then_newer_sessions(store: SessionStore, tmp_path: Path) -> None:
    """Ranking is by the number of different words; age decides between equals."""
    names = []
    for age_seconds, text in enumerate(["alpha", "alpha beta", "alpha beta alpha"]):
        names.append(await save_session(store, [UserMessage(text)]))
        os.utime(tmp_path / f"{names[-1]}.json", (time.time() - age_seconds,) * 2)

    result = search_sessions(tmp_path, "Alpha BETA", limit=2)

    assert [hit.session for hit in result.hits] == [names[1], names[2]]
    assert (result.searched, result.skipped) == (3, 0)


async def test_calls_and_results_are_searched_instructions_are_not(
    store: SessionStore, tool: SessionSearchTool
) -> None:
    """The system prompt and what memory added would match everything."""
    await save_session(
        store,
        [
            SystemMessage("needle in the prompt"),
            SystemMessage("needle from memory", "odek_context"),
            UserMessage("q"),
            ask(call("1", arguments='{"command":"make haystack"}')),
            ToolMessage("error: straw", "1"),
            AssistantMessage("a"),
        ],
    )

    assert (await run(tool, query="needle")).content == "No match in 1 sessions."
    assert "make **haystack**" in (await run(tool, query="haystack")).content
    assert "error: **straw**" in (await run(tool, query="straw")).content


@pytest.mark.parametrize("query", ["しりとり", "gen-itgc", "ÉTÉ", "größe"])
async def test_words_of_any_script_are_found_however_the_file_escapes_them(
    tool: SessionSearchTool, tmp_path: Path, query: str
) -> None:
    """A file of another program has its characters escaped, and case is no matter."""
    write_foreign(tmp_path, "20260101-a", [{"role": "user", "content": f"重跑{query.lower()}后"}])

    assert "20260101-a" in (await run(tool, query=query)).content


async def test_a_long_text_is_shown_around_the_densest_place(tool: SessionSearchTool, tmp_path: Path) -> None:
    """The passage is short, and cut marks say that there is more."""
    text = "alpha " + "x " * 5000 + "beta then alpha " + "y " * 5000
    write_foreign(tmp_path, "20260101-a", [{"role": "user", "content": text}])

    (hit,) = search_sessions(tmp_path, "alpha beta", limit=5).hits
    assert "**beta** then **alpha**" in hit.passage
    assert hit.passage.startswith("…")
    assert hit.passage.endswith("…")
    assert len(hit.passage) < 400


async def test_damaged_files_and_the_asking_session_are_passed_over(
    store: SessionStore, tmp_path: Path
) -> None:
    """The rest is found all the same."""
    mine = await save_session(store, [UserMessage("needle")])
    other = await save_session(store, [UserMessage("needle")])
    (tmp_path / "20260101-bad.json").write_bytes(b"needle" + bytes(99))

    tool = SessionSearchTool(tmp_path, trio.CapacityLimiter(1), session=mine)
    content = (await run(tool, query="needle")).content
    assert other in content
    assert mine not in content


async def test_results_count_as_outside_content(tool: SessionSearchTool) -> None:
    """Other projects and tainted sessions are among them, so that the result is fenced."""
    assert (await prepare(tool, query="x")).effects.outside


async def test_a_query_without_a_word_is_refused(tool: SessionSearchTool) -> None:
    """The model reads why."""
    with pytest.raises(ToolError, match="holds no word"):
        await prepare(tool, query="?!")


def test_a_search_is_given_up_between_files(tmp_path: Path) -> None:
    """``check`` is asked before each file; a cancelled call does not go on reading for nobody."""
    for number in range(3):
        write_foreign(tmp_path, f"20260101-{number}", [{"role": "user", "content": "needle"}])
    asked = iter([None, InterruptedError()])

    def check() -> None:
        if error := next(asked):
            raise error

    with pytest.raises(InterruptedError):
        search_sessions(tmp_path, "needle", limit=5, check=check)
