"""Every event of the memory that is declared fires, through the real command."""

import os
import typing
from pathlib import Path
from typing import get_args

import msgspec

from odek.events import MemoryEvent
from tests.support.cli import Finished, Odek
from tests.support.model_server import (
    Answer,
    RecordedRequest,
    by_request,
    open_model_server,
    text_answer,
    tool_call_answer,
)

UPLOADS = (
    "The person asked to fix the race in the upload queue of the billing service. The agent found that two "
    "workers claimed the same invoice and added a lock around the claim; nineteen tests pass."
)
PARSER = (
    "The person asked for a parser of the museum's old catalogue cards. The agent wrote one in Python that "
    "reads the scanned columns, and the person checked forty cards by hand."
)


def kinds(*runs: Finished) -> list[str]:
    """Return the kinds of the memory's events in the output of ``--json`` runs, in order."""
    return [str(event["kind"]) for run in runs for event in run.events if event["type"] == "memory_event"]


def extraction(request: RecordedRequest) -> bool:
    """Tell a question of the memory from a turn."""
    return "transcript of a finished session" in request.json["messages"][0]["content"]


def records(record: str, turn: Answer | None = None) -> Answer:
    """Answer a turn, and a question for a record with ``record``."""
    said = text_answer("Done.")
    return by_request(
        lambda request: (
            text_answer(record)
            if extraction(request)
            else (said if turn is None or request.json["messages"][-1]["role"] == "tool" else turn)
        )
    )


async def facts_change(folder: Path) -> list[str]:
    """Change facts in every way; return the kinds of the events."""
    odek = Odek(folder)
    odek.environment["ODEK_MEMORY_CONSOLIDATE_AT_CAP_PCT"] = "0"
    odek.environment["ODEK_MEMORY_LLM_EXTRACT"] = "false"
    tea, noon = "The person likes tea.", "Deploys run on Friday at noon"
    script: list[Answer] = []
    for arguments in (
        {"action": "add", "target": "user", "content": tea},
        {"action": "add", "target": "user", "content": tea},
        {"action": "add", "target": "user", "content": "The person likes tea, green tea above all."},
        {
            "action": "replace",
            "target": "user",
            "old_text": "green tea",
            "content": "The person likes coffee.",
        },
        {"action": "remove", "target": "user", "old_text": "coffee"},
        {"action": "consolidate", "target": "env"},
    ):
        script += [tool_call_answer([("memory", arguments)]), text_answer("Noted.")]
    script.insert(-1, text_answer(f'["{noon}"]'))
    (odek.home / "memory").mkdir(mode=0o700, parents=True)
    (odek.home / "memory" / "env.md").write_text(f"{noon}\n§\nDeploys run on Friday")
    (odek.home / "memory" / "env.md").chmod(0o600)
    async with open_model_server(script) as server:
        odek.environment |= {"ODEK_BASE_URL": server.base_url, "ODEK_MODEL": "m"}
        return kinds(await odek.talk(*["note it"] * 6, flags=["--json"]))


async def episodes_change(folder: Path) -> list[str]:
    """End sessions in every way, and promote one while a session runs; return the kinds of the events."""
    outside = folder.parent / "page.txt"
    outside.write_text("from elsewhere")
    read = tool_call_answer([("read_file", {"path": str(outside)})])
    async with open_model_server(default=records(UPLOADS)) as server:
        odek = Odek(folder, base_url=server.base_url)
        runs = [await odek.talk(*["fix the race in the upload queue"] * 3, flags=["--json"])]
        runs += [await odek.talk(*["fix the race in the upload queue again"] * 3, flags=["--json"])]
        odek.environment["ODEK_MEMORY_MAX_EPISODES"] = "1"
        server.answer_with(records(PARSER))
        runs += [await odek.talk(*["write a parser for the catalogue cards"] * 3, flags=["--json"])]
        odek.environment["ODEK_MEMORY_MAX_EPISODES"] = "500"
        server.answer_with(records(UPLOADS, read))
        runs += [await odek.talk(*["read the page about uploads"] * 3, flags=["--json"])]
        listed = msgspec.json.decode((await odek.run("memory", "list", "--all", "--json")).stdout)
        (held,) = [row["session_id"] for row in listed if row["provenance"].get("untrusted")]
        server.answer_with(records(PARSER))
        runs.append(await promoted_meanwhile(odek, held))
    return kinds(*runs)


async def promoted_meanwhile(odek: Odek, held: str) -> Finished:
    """Talk, let a person promote an episode by a command of its own, and talk on."""
    reads, writes = os.pipe()
    try:
        async with odek.start("repl", "--json", stdin=reads) as running:
            os.write(writes, b"what about uploads?\n")
            await running.wait_for('"type":"turn_finished"')
            assert (await odek.run("memory", "promote", held)).status == 0
            os.write(writes, b"and now?\n/exit\n")
            return await running.wait()
    finally:
        os.close(reads)
        os.close(writes)


async def test_every_declared_event_fires(tmp_path: Path) -> None:
    """Each change is told once, by its own kind; what nothing changed is not told."""
    (tmp_path / "facts").mkdir()
    (tmp_path / "episodes").mkdir()
    facts = await facts_change(tmp_path / "facts")
    episodes = await episodes_change(tmp_path / "episodes")

    kinds = get_args(typing.get_type_hints(MemoryEvent)["kind"])
    declared = {kind for kind in kinds if not kind.startswith("atom_")}  # see test_extended_memory
    assert facts == ["fact_added", "fact_merged", "fact_replaced", "fact_removed", "fact_consolidated"]
    assert set(facts) | set(episodes) == declared
    assert episodes.count("episode_promoted") == 1
