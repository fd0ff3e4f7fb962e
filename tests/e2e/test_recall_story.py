"""Recall through the real command: what was said in one session helps a later one, and can be taken away."""

from pathlib import Path

import msgspec
import trio

from odek.memory.index_upkeep import upkeep_of
from odek.sessions.texts import SessionTexts
from tests.support.cli import Odek
from tests.support.memory_story import ABOUT, RECORD, contexts, model, plant, turns
from tests.support.model_server import by_request, open_model_server, text_answer, tool_call_answer

SAID = "the ferret in the server room bites the network cable"
ABOUT_IT = "which animal bites cables in the server room, a ferret?"


async def test_a_session_is_recalled_by_its_own_words_until_it_is_deleted(tmp_path: Path) -> None:
    """Words that no summary has find it and are quoted; once the session is deleted they find nothing."""
    async with open_model_server(default=model()) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        assert (await odek.talk(SAID, SAID, SAID)).status == 0
        (first,) = msgspec.json.decode((await odek.run("session", "list", "--json")).stdout)
        await odek.run("run", ABOUT_IT)
        found = await odek.run("memory", "search", "ferret", "cable")
        await odek.run("session", "delete", first["id"])
        await odek.run("run", ABOUT_IT)
        await odek.run("run", ABOUT)
        recalled, _, deleted, by_record = turns(server.requests)[-4:]

    (context,) = contexts(recalled)
    assert RECORD in context
    assert f"Said then, word by word:\n> Person: {SAID}" in context
    assert "> Person: the «ferret» in the server room bites the network «cable»" in found.stdout
    assert contexts(deleted) == []
    assert RECORD in contexts(by_record)[0]
    assert "ferret" not in contexts(by_record)[0]


async def test_what_is_still_to_be_done_is_part_of_the_question(tmp_path: Path) -> None:
    """A message may say nothing; then the titles of the plan's open steps do, not those of finished ones."""
    steps = [
        {"title": "tell Ada about the release", "state": "done"},
        {"title": "fix the upload queue that claims an invoice twice", "state": "open"},
    ]
    script = [tool_call_answer([("plan", {"steps": steps})]), text_answer("Planned.")]
    async with open_model_server(script, default=by_request(lambda _: text_answer("Done."))) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await odek.run("run", "make a plan")
        plant(odek, "20260304-queue", RECORD)
        plant(odek, "20260305-ada", "The person told Ada about the release; Ada asked for notes.")
        await odek.run("continue", "go on")
        (context,) = contexts(server.requests[-1])
        why = await odek.run("memory", "why", "--json")

    assert RECORD in context
    assert "Ada" not in context
    (turn,) = msgspec.json.decode(why.stdout)["turns"]
    assert "go on\nfix the upload queue" in turn["query"]


async def test_many_processes_share_one_index(tmp_path: Path) -> None:
    """Agents that begin at once, without an index yet, all recall; afterwards it holds each text once."""
    async with open_model_server(default=model()) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        plant(odek, "20260304-queue", RECORD)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(odek.run, "run", ABOUT)
        found = await odek.run("memory", "search", "upload queue", "--json")

    assert [len(contexts(request)) for request in turns(server.requests)[:3]] == [1, 1, 1]
    assert [hit["id"] for hit in msgspec.json.decode(found.stdout)["found"]] == ["20260304-queue"]


async def test_an_agent_leaves_nothing_for_the_first_question_of_the_next_to_compare(tmp_path: Path) -> None:
    """Its own episode and session are indexed when it ends, and the store is known to be as it is indexed."""
    async with open_model_server(default=model()) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        assert (await odek.talk(SAID, SAID, SAID)).status == 0
        await odek.run("run", ABOUT_IT)
        assert (await odek.talk(ABOUT, ABOUT, ABOUT)).status == 0

    memory = odek.home / "memory"
    assert [*memory.glob("2*.md")]
    assert upkeep_of(memory, SessionTexts(odek.home / "sessions")).is_settled("episode")
