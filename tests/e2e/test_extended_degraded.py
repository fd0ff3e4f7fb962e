"""A memory model that fails in every way harms no answer, and ``stats`` says how often it did."""

from pathlib import Path

import msgspec

from tests.support.cli import Odek
from tests.support.model_server import Answer, error_answer, open_model_server, stall, text_answer

FAILING: tuple[Answer, ...] = (
    text_answer("I would rather not take notes."),
    text_answer('{"text": ["'),
    error_answer(400, "no such model"),
    stall(head=False),
)


async def test_a_failing_memory_model_costs_no_answer(tmp_path: Path) -> None:
    """It refuses, answers garbage, is broken, slow or down: each turn is answered, each failure counted."""
    async with open_model_server(default=text_answer("Done.")) as main:
        odek = Odek(tmp_path, base_url=main.base_url)
        odek.environment |= {
            "ODEK_MEMORY_EXTENDED_ENABLED": "true",
            "ODEK_MEMORY_EXTENDED_LLM_MODEL": "small",
            "ODEK_MEMORY_EXTENDED_LLM_TIMEOUT_SECONDS": "0.4",
            "ODEK_MEMORY_EXTENDED_PREDICTIVE_INTENTS": "0",
            "ODEK_MEMORY_EXTRACT_ON_END": "false",
        }
        extracted = 0
        for number, failure in enumerate(FAILING):
            async with open_model_server(default=failure) as memory:
                odek.environment["ODEK_MEMORY_EXTENDED_LLM_BASE_URL"] = memory.base_url
                done = await odek.run("run", f"I moved to town number {number}.")
                extracted += len(memory.requests)
            assert (done.status, done.stdout.strip()) == (0, "Done."), done.stderr
        # The last of them is closed by now.
        done = await odek.run("run", "I moved once more.")
        assert (done.status, done.stdout.strip()) == (0, "Done."), done.stderr
        assert extracted >= len(FAILING)
        stats = msgspec.json.decode((await odek.run("memory", "extended", "stats", "--json")).stdout)
        assert stats["live"] == 0
        assert stats["counted"]["extract_failed"]["count"] >= len(FAILING) + 1
        told = (await odek.run("memory", "extended", "stats")).stdout
        assert "extract failed" in told


async def test_a_damaged_store_costs_no_answer(tmp_path: Path) -> None:
    """Atoms, index, user model and budget are garbage: the turn is answered, and ``stats`` tells of it."""
    async with open_model_server(default=text_answer("Done.")) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        odek.environment |= {
            "ODEK_MEMORY_EXTENDED_ENABLED": "true",
            "ODEK_MEMORY_EXTENDED_AUTO_EXTRACT_PER_TURN": "false",
            "ODEK_MEMORY_EXTRACT_ON_END": "false",
        }
        extended = odek.home / "memory" / "extended"
        (extended / "chunks").mkdir(parents=True)
        (extended / "index").mkdir()
        for name in ("user_model.json", "usage.json", "counters.json", "nudges.json", "index/current"):
            (extended / name).write_bytes(b"\xff{garbage")
        (extended / "chunks" / f"{'a' * 32}.md").write_bytes(b"\x00" * 100)
        done = await odek.run("run", "Who lives in Lyon?")
        assert (done.status, done.stdout.strip()) == (0, "Done."), done.stderr
        stats = msgspec.json.decode((await odek.run("memory", "extended", "stats", "--json")).stdout)
        assert "user_model_unreadable" in stats["counted"]
        assert [f"{'a' * 32}" in line for line in stats["unreadable"]] == [True]
