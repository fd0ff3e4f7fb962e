"""The ``session_search`` tool and ``odek session search``, over real session files."""

import os
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest
import trio

from odek.errors import ToolError
from odek.index.engine import open_index
from odek.memory.index_upkeep import FINGERPRINT
from odek.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from odek.sessions.search import PlainSearch, SessionSearch, open_session_search
from odek.sessions.store import SessionStore
from odek.tools.session_search import SessionSearchTool
from tests.support.cli import Odek
from tests.support.sessions import ask, call, save_session, write_foreign
from tests.support.tool_calls import call as run
from tests.support.tool_calls import prepare


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """Return the directory of the sessions in a home of the test."""
    return tmp_path / "sessions"


@pytest.fixture
def store(sessions: Path) -> SessionStore:
    """Return a store in a directory of the test."""
    return SessionStore(sessions)


@pytest.fixture(params=["indexed", "plain"])
async def search(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[SessionSearch]:
    """Yield both ways of finding: by the index, and session by session."""
    async with open_session_search(tmp_path, lambda _: None, is_indexed=request.param == "indexed") as search:
        yield search


@pytest.fixture
def tool(search: SessionSearch) -> SessionSearchTool:
    """Return the tool over the same directory."""
    return SessionSearchTool(lambda: search)


async def test_a_passage_names_its_session_day_and_turn(
    store: SessionStore, tool: SessionSearchTool, sessions: Path
) -> None:
    """The words of the query are marked in the passage that holds most of them.

    The day is what the session says: a copied file has another time.
    """
    session = await save_session(
        store,
        [
            UserMessage("first the docs"),
            AssistantMessage("ok"),
            UserMessage("now release it"),
            AssistantMessage("The release is tagged v1.2; the changelog went with it."),
        ],
    )

    os.utime(sessions / f"{session}.json", (0, 0))

    output = await run(tool, query="release changelog")

    day = time.strftime("%Y-%m-%d")
    assert output.content == (
        f"{session} ({day}, turn 2)\nThe **release** is tagged v1.2; the **changelog** went with it."
    )


async def test_more_matched_words_come_first_then_newer_sessions(
    sessions: Path, search: SessionSearch
) -> None:
    """A session with all the words is before one with some; of equal ones the newer is first."""
    for name, day, text in (
        ("20260101-some", "2026-03-09", "alpha and something else"),
        ("20260101-old", "2026-03-01", "alpha beta"),
        ("20260101-new", "2026-03-05", "alpha beta"),
        ("20260101-none", "2026-03-05", "gamma delta"),
    ):
        write_foreign(sessions, name, [{"role": "user", "content": text}], updated_at=f"{day}T10:00:00Z")

    result = await search.find("Alpha BETA", limit=3)

    assert [hit.session for hit in result.hits] == ["20260101-new", "20260101-old", "20260101-some"]
    assert (result.searched, result.skipped) == (4, 0)


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
    assert "error: **straw**" in (await run(tool, query="straws")).content


@pytest.mark.parametrize("query", ["しりとり", "gen-itgc", "ÉTÉ", "größe"])
async def test_words_of_any_script_are_found_however_the_file_escapes_them(
    tool: SessionSearchTool, sessions: Path, query: str
) -> None:
    """A file of another program has its characters escaped, and case is no matter."""
    write_foreign(sessions, "20260101-a", [{"role": "user", "content": f"重跑 {query.lower()} 后"}])

    assert "20260101-a" in (await run(tool, query=query)).content


async def test_a_long_text_is_shown_around_the_densest_place(search: SessionSearch, sessions: Path) -> None:
    """The passage is short, and cut marks say that there is more."""
    text = "alpha " + "x " * 500 + "beta then alpha " + "y " * 500
    write_foreign(sessions, "20260101-a", [{"role": "user", "content": text}])

    (hit,) = (await search.find("alpha beta", limit=5)).hits
    assert "beta then alpha" in hit.passage
    assert hit.passage.startswith("…")
    assert hit.passage.endswith("…")
    assert len(hit.passage) < 400


async def test_damaged_files_and_the_asking_session_are_passed_over(
    store: SessionStore, sessions: Path, search: SessionSearch
) -> None:
    """The rest is found all the same."""
    mine = await save_session(store, [UserMessage("needle")])
    other = await save_session(store, [UserMessage("needle")])
    (sessions / "20260101-bad.json").write_bytes(b"needle" + bytes(99))

    content = (await run(SessionSearchTool(lambda: search, session=mine), query="needle")).content
    assert other in content
    assert mine not in content


async def test_what_changes_is_found_as_it_is_at_the_next_search(
    store: SessionStore, sessions: Path, search: SessionSearch
) -> None:
    """A new session, one with another text, one that is gone: nobody has to tell."""
    first = await save_session(store, [UserMessage("the flaky test waits for a port")])
    found = [[hit.session for hit in (await search.find("flaky port", limit=5)).hits]]
    second = await save_session(store, [UserMessage("another flaky port")])
    found.append(sorted(hit.session for hit in (await search.find("flaky port", limit=5)).hits))
    (sessions / f"{first}.json").unlink()
    write_foreign(sessions, second, [{"role": "user", "content": "penguins walk over the ice"}])
    found.append([hit.session for hit in (await search.find("flaky port", limit=5)).hits])
    found.append([hit.session for hit in (await search.find("penguins", limit=5)).hits])

    assert found == [[first], sorted([first, second]), [], [second]]


async def test_a_session_that_is_going_on_is_found_when_it_rests(store: SessionStore, tmp_path: Path) -> None:
    """Each of its saves would be read again; whoever leaves it leaves it to the next search."""
    await save_session(store, [UserMessage("something else")])
    async with open_session_search(tmp_path, lambda _: None, is_indexed=True) as search:
        with store.create("test-model", "a task") as session:
            session.append(UserMessage("needle"))
            await session.save()
            meanwhile = (await search.find("needle", limit=5)).hits
        afterwards = (await search.find("needle", limit=5)).hits

    assert meanwhile == []
    assert [hit.session for hit in afterwards] == [session.id]


async def test_results_count_as_outside_content(tool: SessionSearchTool) -> None:
    """Other projects and tainted sessions are among them, so that the result is fenced."""
    assert (await prepare(tool, query="x")).effects.outside


async def test_a_query_without_a_word_is_refused(tool: SessionSearchTool) -> None:
    """The model reads why."""
    with pytest.raises(ToolError, match="holds no word"):
        await prepare(tool, query="?!")


async def test_a_search_is_given_up_between_sessions(sessions: Path) -> None:
    """A cancelled call does not go on reading for nobody."""
    for number in range(3):
        write_foreign(sessions, f"20260101-{number}", [{"role": "user", "content": "needle"}])

    with trio.CancelScope() as scope:
        scope.cancel()
        await PlainSearch(sessions, trio.CapacityLimiter(1)).find("needle", limit=5)
    assert scope.cancelled_caught


async def test_the_command_shows_the_passage_with_its_words_marked(tmp_path: Path) -> None:
    """In quotation marks without colour; JSON has it as it is; a query without a word is refused."""
    odek = Odek(tmp_path)
    write_foreign(
        odek.home / "sessions", "20260101-a", [{"role": "user", "content": "why do the releases hang?"}]
    )
    shown = await odek.run("session", "search", "release", "hanging")
    data = await odek.run("session", "search", "release", "--json")
    nothing = await odek.run("session", "search", "penguins")
    no_word = await odek.run("session", "search", "?!")

    assert "20260101-a" in shown.stdout
    assert "why do the «releases» «hang»?" in shown.stdout
    (hit,) = msgspec.json.decode(data.stdout)["hits"]
    assert hit["passage"] == "why do the releases hang?"
    assert nothing.stdout == "no match in 1 sessions\n"
    assert (no_word.status, "holds no word" in no_word.stderr) == (1, True)


async def test_the_words_of_a_deleted_session_are_gone_at_once(tmp_path: Path) -> None:
    """Not only are they found no more: the index itself knows nothing of them, nor of turns trimmed away."""
    odek = Odek(tmp_path)
    messages = [
        {"role": "user", "content": "first the zebras"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "then the penguins"},
        {"role": "assistant", "content": "done"},
    ]
    for name in ("20260101-a", "20260202-b"):
        write_foreign(odek.home / "sessions", name, messages)
    before = await odek.run("session", "search", "zebras")
    await odek.run("session", "delete", "20260101-a")
    await odek.run("session", "trim", "20260202-b", "1")

    index = open_index(odek.home / "memory" / "index", FINGERPRINT, tuple)
    assert "20260101-a" in before.stdout
    assert "20260202-b" in before.stdout
    assert not index.needs_rebuild
    assert index.search("zebras", 5, floor=0.0) == []
    assert [hit.id for hit in index.search("penguins", 5, floor=0.0)] == ["session/20260202-b"]


async def test_an_index_that_cannot_be_made_is_told_once(tmp_path: Path) -> None:
    """The sessions are looked through without it, and the reason takes a line."""
    odek = Odek(tmp_path)
    write_foreign(odek.home / "sessions", "20260101-plain", [{"role": "user", "content": "the release plan"}])
    (odek.home / "memory").mkdir()
    (odek.home / "memory" / "index").write_text("in the way")

    done = await odek.run("session", "search", "release")

    assert done.status == 0
    assert "20260101-plain" in done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert str(odek.home / "memory" / "index") in done.stderr
