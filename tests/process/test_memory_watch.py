"""A long-lived memory whose directory is changed by other programs."""

import sys
from pathlib import Path

import trio

from odek.events import Event, Notice
from odek.memory.facts import FactLimits
from odek.memory.service import MemoryParts, open_memory
from tests.support.waiting import HANG_SECONDS, open_stopwatch

EDITOR = """
import os, sys
path, text = sys.argv[1:]
draft = path + ".swp"
with open(draft, "w") as file:
    file.write(text)
os.rename(draft, path)
"""


class Told:
    """The notices, and a way to wait for one."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._grown = trio.Event()

    def emit(self, event: Event) -> None:
        """Take an event."""
        if isinstance(event, Notice):
            self.texts.append(event.text)
            grown, self._grown = self._grown, trio.Event()
            grown.set()

    async def wait_for(self, count: int) -> None:
        """Wait until there are so many notices."""
        with trio.fail_after(HANG_SECONDS):
            while len(self.texts) < count:
                await self._grown.wait()


async def edit(path: Path, text: str) -> None:
    """Save a file as an editor does: a new one takes the name of the old."""
    await trio.run_process([sys.executable, "-c", EDITOR, str(path), text])


async def until_watched(directory: Path, told: Told) -> None:
    """Change a file until the watcher says so: a watch is in place a moment after it was begun."""
    with trio.fail_after(HANG_SECONDS):
        while not told.texts:
            (directory / "s-probe.md").write_text(str(trio.current_time()))
            with trio.move_on_after(0.5):
                await told.wait_for(1)
    told.texts.clear()


async def test_an_edit_is_told_without_a_turn_and_leaving_does_not_wait(tmp_path: Path) -> None:
    """The notice comes by itself, our own writes bring none, and leaving is quick though a thread watches."""
    directory = tmp_path / "memory"
    told = Told()
    parts = MemoryParts(emit=told.emit, watched=True)
    async with open_stopwatch() as watch:
        async with open_memory(directory, FactLimits(), parts) as memory:
            await memory.add("env", "CI runs Python 3.11")
            await memory.recall("first turn")
            await memory.recall("second turn")
            await until_watched(directory, told)
            await memory.add("user", "I prefer tabs")
            await edit(directory / "env.md", "CI runs Python 3.12")
            await told.wait_for(1)
            files = await memory.read()
            watch.start()
        assert watch.seconds < 2

    assert [text for text in told.texts if "user.md" in text] == []
    assert any(text.startswith("memory: env.md was edited") for text in told.texts)
    assert [fact.text for facts in files for fact in facts.entries] == [
        "I prefer tabs",
        "CI runs Python 3.12",
    ]


async def test_a_flood_of_renames_ends_in_what_is_there(tmp_path: Path) -> None:
    """However many hints are lost, the memory says what is on disk."""
    directory = tmp_path / "memory"
    told = Told()
    async with open_memory(directory, FactLimits(), MemoryParts(emit=told.emit, watched=True)) as memory:
        await memory.add("env", "start")
        await memory.recall("first turn")
        await memory.recall("second turn")
        await until_watched(directory, told)
        draft = directory / ".draft"
        for number in range(3000):
            draft.write_text(f"version {number}")
            draft.rename(directory / "env.md")
        await told.wait_for(1)
        await memory.look()
        (_, env) = await memory.read()

    assert [fact.text for fact in env.entries] == ["version 2999"]
