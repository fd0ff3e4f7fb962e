"""The memory as the agent uses it: async, and frozen where the prompt needs it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio

from odek.errors import StoreError
from odek.memory.facts import TARGETS, Change, Fact, FactLimits, Facts, FactStore, Target

__all__ = ["Memory", "open_memory"]

WARN_PERCENT = 90
"""From here on a file is nearly full: one more entry of usual length may not fit."""

_T = TypeVar("_T")
_SECTIONS: dict[Target, str] = {"user": "── User Profile ──", "env": "── Environment ──"}


@asynccontextmanager
async def open_memory(directory: Path, limits: FactLimits) -> AsyncGenerator["Memory"]:
    """Open the memory below ``directory`` and freeze what the prompt says of it."""
    store = FactStore(directory, limits, poll=trio.from_thread.check_cancelled)
    memory = Memory(store)
    await memory.freeze()
    yield memory


class Memory:
    """Facts for one agent. Every method but ``prompt_block`` sees what is on disk now.

    The methods that change something raise as the ones of ``FactStore`` do.
    ``notices`` says, a line each, what was left out of the prompt and why.
    """

    def __init__(self, store: FactStore) -> None:
        self._store = store
        # Changes queue for one lock anyway; a few threads keep reads from waiting behind them.
        self._limiter = trio.CapacityLimiter(4)
        self._block = ""
        self.notices: tuple[str, ...] = ()

    def prompt_block(self) -> str:
        """Return the facts for the system prompt as they were at the start, "" without any.

        Later changes do not show here: the prompt must not change within a session.
        """
        return self._block

    async def freeze(self) -> None:
        """Take the snapshot for the prompt; what cannot be read or must not be is named in ``notices``."""
        files: list[Facts] = []
        notices: list[str] = []
        for target in TARGETS:
            try:
                files.append(await self._in_thread(partial(self._store.read, target)))
            except StoreError as error:
                notices.append(f"memory: {target}.md is left out of the prompt: {error}")
        for facts in files:
            notices += [
                f"memory: entry {fact.index} of {fact.target}.md is left out of the prompt: {fact.rejection}"
                for fact in facts.entries
                if fact.rejection
            ]
        self._block = _block(files)
        self.notices = tuple(notices)

    async def context(self, query: str) -> str:  # noqa: ARG002 - the seam's; a full file concerns every query
        """Return what the model should know beside the person's message: which file is nearly full."""
        try:
            files = await self.read()
        except StoreError:
            return ""  # whoever changes or reads the memory is told; a turn does not fail for it
        return "\n".join(filter(None, map(fill_warning, files)))

    async def read(self) -> tuple[Facts, ...]:
        """Return both files."""
        return await self._in_thread(lambda: tuple(self._store.read(target) for target in TARGETS))

    async def search(self, query: str) -> list[Fact]:
        """Return the facts that share words with ``query``, best first."""
        from odek.memory.fact_search import search_facts

        files = await self.read()
        return search_facts((fact for facts in files for fact in facts.entries if not fact.rejection), query)

    async def check_content(self, content: str) -> str:
        """Return ``content`` as it would be stored, or raise why it would not."""
        return await self._in_thread(partial(self._store.check_content, content))

    async def select(self, old_text: str, target: Target | None = None) -> Fact:
        """Return the one entry that ``old_text`` names."""
        return await self._in_thread(partial(self._store.select, old_text, target))

    async def add(self, target: Target, content: str) -> Change:
        """Store a fact."""
        return await self._in_thread(partial(self._store.add, target, content))

    async def replace(self, fact: Fact, content: str) -> Change:
        """Put ``content`` in the place of ``fact``."""
        return await self._in_thread(partial(self._store.replace, fact, content))

    async def remove(self, fact: Fact) -> Change:
        """Remove ``fact``."""
        return await self._in_thread(partial(self._store.remove, fact))

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        # Never abandoned: a cancel may end the wait for the lock (through ``poll``), not split a write.
        return await trio.to_thread.run_sync(work, abandon_on_cancel=False, limiter=self._limiter)


def fill_warning(facts: Facts) -> str:
    """Return one line for the model if the file is nearly full, else ""."""
    if facts.percent < WARN_PERCENT:
        return ""
    return (
        f"⚠ {facts.target} fact file {facts.percent}% full — "
        "evict stale entries via memory remove before your next add."
    )


def _block(files: list[Facts]) -> str:
    sections: list[str] = []
    for facts in files:
        texts = [fact.text for fact in facts.entries if not fact.rejection]
        if texts:
            sections += [_SECTIONS[facts.target], "\n§\n".join(texts)]
    if not sections:
        return ""
    used = sum(facts.used_bytes for facts in files)
    limit = sum(facts.limit_bytes for facts in files)
    percent = used * 100 // limit if limit else 100
    return "\n".join([f"═══ MEMORY [{percent}% — {used}/{limit} chars] ═══", *sections])
