"""While one process works with the memory, others and a person's editor change it."""

import os
from pathlib import Path

import trio

from tests.support.cli import Finished, Odek
from tests.support.model_server import gated, open_model_server, text_answer, tool_call_answer
from tests.support.waiting import HANG_SECONDS


async def test_a_fact_added_during_a_slow_consolidation_is_there_afterwards(tmp_path: Path) -> None:
    """The model condenses what it was shown; what another process added meanwhile is not overwritten."""
    gate = trio.Event()
    answer = gated(gate, text_answer('["Deploys run on Friday at noon"]'))
    async with open_model_server([answer]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        for fact in ("Deploys run on Friday at noon", "Deploys run on Friday"):
            environment = {"ODEK_MEMORY_MERGE_ON_WRITE": "false"}
            assert (
                await odek.run("memory", "facts", "add", "env", fact, environment=environment)
            ).status == 0
        async with odek.start("memory", "consolidate", "env") as running:
            with trio.fail_after(HANG_SECONDS):
                await server.wait_requests(1)
            added = await odek.run("memory", "facts", "add", "env", "The printer is on floor 3")
            gate.set()
            finished = await running.wait()
        kept = (odek.home / "memory" / "env.md").read_text()

    assert added.status == 0
    assert "The printer is on floor 3" in kept
    assert "Deploys run on Friday at noon" in kept
    assert "Traceback" not in finished.stderr


async def test_an_edit_during_a_session_is_seen_where_it_should_be(tmp_path: Path) -> None:
    """The tool reads the edit at once, the running session's prompt keeps its bytes, the next one has it."""
    read = tool_call_answer([("memory", {"action": "read"})])
    script = [text_answer("Hello."), read, text_answer("Read."), text_answer("New.")]
    async with open_model_server(script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await odek.run("memory", "facts", "add", "user", "I like tea")
        await talk_around_an_edit(odek, odek.home / "memory" / "user.md")
        await odek.run("run", "who am I?")
        first, second, after_tool, another = (request.json["messages"] for request in server.requests)

    assert "I like tea" in first[0]["content"]
    assert first[0] == second[0] == after_tool[0]
    assert "I like coffee" in after_tool[-1]["content"]
    assert "I like coffee" in another[0]["content"]


async def talk_around_an_edit(odek: Odek, path: Path) -> Finished:
    """Ask in a repl, edit the file as an editor does, ask again, and leave."""
    reads, writes = os.pipe()
    try:
        async with odek.start("repl", stdin=reads) as running:
            os.write(writes, b"hello\n")
            await running.wait_for("Hello.")
            draft = path.with_name("user.md~")
            draft.write_text("I like coffee\n")
            draft.replace(path)
            os.write(writes, b"what do you know?\n/exit\n")
            return await running.wait()
    finally:
        os.close(reads)
        os.close(writes)
