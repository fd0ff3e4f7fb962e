"""The end of a session through the real command: what is remembered, by whom, and when it is not."""

import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from odek.background import Background
from odek.config.memory_settings import MemorySettings
from odek.embedding.local import ProjectionEmbedder
from odek.events import MemoryEvent, Notice
from odek.llm.model import ModelRequest, ModelResponse
from odek.llm.scripted import ScriptedModel, says
from odek.memory.drain import Drain, open_drained_jobs
from odek.memory.episodes import EpisodeStore
from odek.memory.facts import FactLimits
from odek.memory.service import MemoryParts, open_memory
from odek.memory.session_end import SessionEnd, SessionRecord
from odek.messages import AssistantMessage, UserMessage
from odek.sessions.ending import session_end_parts
from odek.sessions.session import Session
from odek.sessions.store import SessionStore
from odek.storage.jobs import JobQueue
from tests.support.agents import Recorder
from tests.support.cli import Odek
from tests.support.model_server import (
    Answer,
    RecordedRequest,
    by_request,
    open_model_server,
    stall,
    text_answer,
)
from tests.support.waiting import HANG_SECONDS

RECORD = "The person had a race in the file tool found and fixed; nineteen tests were added."


def is_extraction(request: RecordedRequest) -> bool:
    """Tell a question of the memory from a turn of the conversation."""
    return "transcript of a finished session" in request.json["messages"][0]["content"]


def answering(extraction: Answer) -> Answer:
    """Answer turns with a word, and questions for a record with ``extraction``."""
    return by_request(lambda request: extraction if is_extraction(request) else text_answer("Done."))


async def talk(odek: Odek, turns: int) -> None:
    """Have a session of some turns."""
    steps = [f"go on, step {number}" for number in range(2, turns + 1)]
    assert (await odek.talk("fix the race in the file tool", *steps)).status == 0


def episodes(odek: Odek) -> list[dict[str, Any]]:
    """Return the stored episodes."""
    path = odek.home / "memory" / "index.json"
    return msgspec.json.decode(path.read_bytes(), type=list[dict[str, Any]]) if path.exists() else []


async def jobs(odek: Odek, *flags: str) -> list[dict[str, Any]]:
    """Return what ``odek memory jobs`` lists."""
    done = await odek.run("memory", "jobs", "--json", *flags)
    return msgspec.json.decode(done.stdout.encode(), type=list[dict[str, Any]])


async def saved_session(home: Path, *, taints: tuple[str, ...] = ()) -> Session:
    """Return a session of three turns, saved and given up."""
    session = SessionStore(home / "sessions").create("scripted", "fix it")
    session.add_taint(taints, ingested=bool(taints))
    for number in range(3):
        session.append(UserMessage(f"step {number}"), AssistantMessage("It was done."))
    await session.save()
    session.release()
    return session


async def end(
    home: Path,
    session: str,
    model: ScriptedModel,
    recorder: Recorder,
    *,
    settings: MemorySettings | None = None,
    drain: Drain | None = None,
) -> None:
    """End a session in this process, as an agent does."""
    memory_parts = MemoryParts(settings=settings or MemorySettings(), emit=recorder)
    async with open_memory(home / "memory", FactLimits(), memory_parts) as memory:
        parts = session_end_parts(
            home,
            memory,
            model,
            emit=recorder,
            mask=str,
            drain=drain or Drain(),
            make_embedder=ProjectionEmbedder,
        )
        with trio.fail_after(HANG_SECONDS):
            async with open_drained_jobs(parts.drain) as jobs:
                await SessionEnd(parts, Background(jobs, recorder, "the end of the session")).finish(session)


async def test_a_session_of_three_turns_leaves_one_episode(tmp_path: Path) -> None:
    """Two turns leave nothing and cost nothing; the third leaves a record, asked for once."""
    async with open_model_server(default=answering(text_answer(RECORD))) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await talk(odek, 2)
        before, requests_before = episodes(odek), len(server.requests)
        await odek.run("continue", "and now commit it")
        asked = [request for request in server.requests if is_extraction(request)]
        owed, everything = await jobs(odek), await jobs(odek, "--all")

    (episode,) = episodes(odek)
    (text,) = list((odek.home / "memory").glob("2*.md"))
    assert (before, requests_before, len(asked)) == ([], 2, 1)
    assert (episode["turns"], episode["summary"]) == (3, RECORD)
    assert not episode["provenance"].get("untrusted", False)
    assert text.read_text() == RECORD
    assert owed == []
    assert [job["state"] for job in everything] == ["done"]


async def test_a_fault_that_nobody_foresaw_costs_one_line(tmp_path: Path) -> None:
    """A session whose reading breaks leaves the command with a line, not with a traceback."""

    def broken(session: str) -> SessionRecord | None:
        raise ValueError(f"{session} is odd")

    recorder = Recorder()
    async with open_memory(tmp_path / "memory", FactLimits(), MemoryParts(emit=recorder)) as memory:
        parts = session_end_parts(
            tmp_path,
            memory,
            ScriptedModel([]),
            emit=recorder,
            mask=str,
            drain=Drain(),
            make_embedder=ProjectionEmbedder,
        )
        async with open_drained_jobs(parts.drain) as nursery:
            jobs = Background(nursery, recorder, "the end of the session")
            await SessionEnd(msgspec.structs.replace(parts, read=broken), jobs).finish("s1")
    assert [notice.text for notice in recorder.of(Notice)] == [
        "the end of the session: internal error: ValueError: s1 is odd"
    ]


async def test_the_transcript_holds_no_tool_result_and_no_instructions(tmp_path: Path) -> None:
    """What the model reads of the session is what was said."""
    async with open_model_server(default=answering(text_answer(RECORD))) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await talk(odek, 3)
        (asked,) = [request for request in server.requests if is_extraction(request)]

    transcript = asked.json["messages"][-1]["content"]
    assert transcript.startswith("The person said: fix the race in the file tool\n\nThe agent said: Done.")
    assert "You are odek" not in transcript
    assert "tools" not in asked.json


async def test_a_killed_extraction_is_done_by_the_next_command(tmp_path: Path) -> None:
    """SIGKILL while the model is asked loses nothing, and nothing is stored twice."""
    async with open_model_server(default=answering(stall())) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await talk(odek, 2)
        async with odek.start("continue", "and now commit it") as running:
            with trio.fail_after(HANG_SECONDS):
                await server.wait_requests(4)
            running.signal(signal.SIGKILL)
            await running.wait()
        owed = await jobs(odek)
    async with open_model_server(default=answering(text_answer(RECORD))) as server:
        odek.environment["ODEK_BASE_URL"] = server.base_url
        await odek.run("run", "something else")
        await odek.run("run", "something else again")
        asked = [request for request in server.requests if is_extraction(request)]

    assert [job["state"] for job in owed] == ["owed"]
    assert [episode["summary"] for episode in episodes(odek)] == [RECORD]
    assert len(asked) == 1
    assert await jobs(odek) == []


async def test_ctrl_c_twice_leaves_what_is_owed_to_the_next_run(tmp_path: Path) -> None:
    """The first Ctrl-C is answered by what is being waited for, the second ends the wait; status stays 0."""
    async with open_model_server(default=answering(stall())) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await talk(odek, 2)
        async with odek.start("continue", "and now commit it") as running:
            await running.wait_for("remembering what was done")
            running.stderr.clear()
            running.signal(signal.SIGINT)
            await running.wait_for("remembering what was done")
            running.signal(signal.SIGINT)
            with trio.fail_after(HANG_SECONDS):
                done = await running.wait()

    assert (done.status, done.stdout) == (0, "Done.\n")
    assert "not remembered yet" in done.stderr
    (job,) = await jobs(odek)
    assert (job["state"], job["failures"]) == ("owed", [])


@pytest.mark.slow
async def test_a_model_that_never_answers_holds_the_exit_for_fifteen_seconds(tmp_path: Path) -> None:
    """Then the process is gone, one line says what is still owed, and the job is there with the reason."""
    async with open_model_server(default=answering(stall())) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await talk(odek, 2)
        started = trio.current_time()
        done = await odek.run("continue", "and now commit it")
        seconds = trio.current_time() - started

    assert (done.status, done.stdout) == (0, "Done.\n")
    assert 15 <= seconds < 17.5
    assert done.stderr.count("not remembered yet") == 1
    (job,) = await jobs(odek)
    assert (job["state"], len(job["failures"])) == ("owed", 1)


async def test_a_wait_that_is_over_leaves_the_job(tmp_path: Path) -> None:
    """The same with a wait of a fifth of a second, in this process; the session can be gone on with."""
    home = tmp_path / "home"
    session = await saved_session(home)
    recorder = Recorder()
    await end(home, session.id, ScriptedModel([_never]), recorder, drain=Drain(0.2))

    (job,) = JobQueue(home / "memory" / "jobs").list()
    assert (job.key, job.state, job.running) == (session.id, "owed", None)
    assert [notice.text for notice in recorder.of(Notice)] == [
        f"not remembered yet: {session.id}; the next run does it (`odek memory jobs`)"
    ]


async def test_a_near_duplicate_replaces_the_older_episode(tmp_path: Path) -> None:
    """Two sessions with one and the same outcome leave the newer one, and every event is told."""
    home = tmp_path / "home"
    recorder = Recorder()
    ids: list[str] = []
    for _ in range(2):
        session = await saved_session(home)
        ids.append(session.id)
        await end(home, session.id, ScriptedModel([says(RECORD)]), recorder)

    kinds = [(event.kind, event.session_id) for event in recorder.of(MemoryEvent)]
    stored = EpisodeStore(home / "memory").read_index()
    assert kinds == [("episode_stored", ids[0]), ("episode_stored", ids[1]), ("episode_deduped", ids[1])]
    assert [episode.session_id for episode in stored] == [ids[1]]


async def test_an_untrusted_session_waits_for_a_person_and_gives_no_facts(tmp_path: Path) -> None:
    """Its episode is stored for review, the question for facts is not even asked."""
    home = tmp_path / "home"
    session = await saved_session(home, taints=("network",))
    recorder, model = Recorder(), ScriptedModel([says(RECORD)])
    await end(home, session.id, model, recorder, settings=MemorySettings(extract_facts=True))

    (episode,) = EpisodeStore(home / "memory").read_index()
    assert (episode.provenance.sources, episode.provenance.is_recallable) == (("network",), False)
    assert [event.kind for event in recorder.of(MemoryEvent)] == ["episode_stored", "episode_pending_review"]
    assert len(model.requests) == 1
    assert '"facts"' not in model.requests[0].messages[0].content


async def test_facts_of_a_trusted_session_are_asked_for_in_the_same_question(tmp_path: Path) -> None:
    """One question gives the record and the facts; each fact is stored and told."""
    home = tmp_path / "home"
    session = await saved_session(home)
    reply = msgspec.json.encode({"summary": RECORD, "facts": {"user": ["Prefers tabs."], "env": []}}).decode()
    recorder, model = Recorder(), ScriptedModel([says(reply)])
    await end(
        home,
        session.id,
        model,
        recorder,
        settings=MemorySettings(extract_facts=True, consolidate_on_end=False),
    )

    assert [event.kind for event in recorder.of(MemoryEvent)] == ["episode_stored", "fact_added"]
    assert (home / "memory" / "user.md").read_text() == "Prefers tabs."
    assert len(model.requests) == 1


async def _never(_: ModelRequest) -> ModelResponse:
    await trio.sleep_forever()
    raise AssertionError


async def test_nothing_usable_in_the_reply_stores_nothing(tmp_path: Path) -> None:
    """A reply that declines is no record, and is not asked for again."""
    async with open_model_server(
        default=answering(text_answer("I'm sorry, I can't help with that."))
    ) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await talk(odek, 3)

    assert episodes(odek) == []
    assert await jobs(odek) == []


async def test_three_failures_park_a_job_until_a_person_retries(tmp_path: Path) -> None:
    """A model that refuses is asked by three processes, not for ever; the reason is listed."""
    refuse = by_request(lambda _: text_answer("", finish_reason="length"))
    async with open_model_server(default=answering(refuse)) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await talk(odek, 3)
        await odek.run("run", "a second thing")
        parking = await odek.run("run", "a third thing")
        await odek.run("run", "a fourth thing")
        asked = [request for request in server.requests if is_extraction(request)]
        (parked,) = await jobs(odek)
        (again,) = await jobs(odek, "--retry")

    assert len(asked) == 3
    assert "gave up on remembering" in parking.stderr
    assert (parked["state"], len(parked["failures"]), again["state"]) == ("parked", 3, "owed")


async def test_the_buffer_survives_in_the_session(tmp_path: Path) -> None:
    """Each turn leaves its line, and a later process adds to them."""
    async with open_model_server(default=text_answer("ok")) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await talk(odek, 2)

    (session,) = odek.sessions()
    lines = msgspec.json.decode(session.read_bytes())["buffer"]
    assert [line[5:] for line in lines] == [
        '  user   "fix the race in the file tool"',
        '  user   "go on, step 2"',
    ]
