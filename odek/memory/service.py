"""The memory as the agent uses it: async, and frozen where the prompt needs it."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import trio

from odek.background import Background, Starter
from odek.config.memory_settings import MemorySettings
from odek.embedding.embedder import Embedder
from odek.errors import StoreError
from odek.events import Event, MemoryEvent, Notice
from odek.guard import SecondOpinion, in_thread
from odek.memory.ask import Ask
from odek.memory.context_text import facts_text, fill_warning
from odek.memory.drain import Drain, open_drained_jobs
from odek.memory.facts import TARGETS, Change, Fact, FactLimits, Facts, FactStore, Target
from odek.memory.lookout import Lookout
from odek.memory.outside import Outside
from odek.memory.recollection import Recalled, Recollection, RecollectionParts
from odek.memory.watch import Scan, Stamp, fact_stamps, hot_stamps, is_episode_file, is_vast

if TYPE_CHECKING:
    from odek.memory.consolidate import Consolidated
    from odek.memory.episode_reader import EpisodeReader
    from odek.memory.episodes import Episode, EpisodeText
    from odek.memory.index_texts import Sessions
    from odek.memory.journal import Origin
    from odek.memory.memory_index import MemoryIndex
    from odek.memory.ranker import Found
    from odek.memory.remember import Remembered

__all__ = ["Memory", "MemoryParts", "open_memory"]

CONSOLIDATION_GRACE_SECONDS = 2.0
"""Leaving waits so long for a consolidation under way; the next addition begins another one."""

CONSOLIDATION_STEP_PERCENT = 5
"""A file that could not be made smaller is tried again when it is fuller by so much."""

_T = TypeVar("_T")


def _projection() -> Embedder:
    from odek.embedding.local import ProjectionEmbedder

    return ProjectionEmbedder()


def _ignore(_: object) -> None:
    pass


class MemoryParts(msgspec.Struct, frozen=True, kw_only=True):
    """What the memory works with; without any it keeps facts, and compares by words.

    ``ask`` puts a question to the model, None when there is none. ``emit`` takes what happens
    and never waits. ``watched`` says that the directory is watched from the first turn on.
    ``object_to`` is a second opinion on new texts. ``sessions`` returns the sessions as they are
    indexed, None for episodes alone. Who ``keeps_up`` the index does so behind the agent too.
    """

    settings: MemorySettings = MemorySettings()
    make_embedder: Callable[[], Embedder] = _projection
    ask: Ask | None = None
    emit: Callable[[Event], None] = _ignore
    watched: bool = False
    object_to: SecondOpinion | None = None
    sessions: "Callable[[], Sessions] | None" = None
    keeps_up: bool = True


@asynccontextmanager
async def open_memory(
    directory: Path, limits: FactLimits, parts: MemoryParts | None = None
) -> AsyncGenerator["Memory"]:
    """Open the memory below ``directory`` and freeze what the prompt says of it."""
    parts = parts or MemoryParts()
    second = in_thread(parts.object_to)
    store = FactStore(directory, limits, poll=trio.from_thread.check_cancelled, object_to=second)
    async with open_drained_jobs(Drain(CONSOLIDATION_GRACE_SECONDS)) as jobs, trio.open_nursery() as nursery:
        behind, owed = (Background(each, parts.emit, "memory") for each in (nursery, jobs))
        memory = Memory(directory, store, parts, behind, owed)
        await memory.freeze()
        yield memory
        nursery.cancel_scope.cancel()


class Memory:
    """Facts and episodes for one agent. Every method but ``prompt_block`` sees what is on disk now.

    The methods that change something raise as the ones of ``FactStore`` do.
    ``notices`` says, a line each, what was left out of the prompt and why.
    """

    def __init__(
        self, directory: Path, store: FactStore, parts: MemoryParts, behind: Starter, jobs: Starter
    ) -> None:
        self.directory = directory
        self.settings = parts.settings
        self.object_to = parts.object_to
        self._store = store
        self._parts = parts
        self._jobs = jobs
        # Changes queue for one lock anyway; a few threads keep reads from waiting behind them.
        self._limiter = trio.CapacityLimiter(4)
        self._outside = Outside(directory, self._reader)
        self._lookout = Lookout(
            directory,
            self._outside,
            store,
            behind,
            self._limiter,
            parts.emit,
            is_watched=parts.watched,
            on_changed=self._refresh_index if parts.keeps_up and parts.settings.ranker != "rp" else None,
        )
        self._made: Embedder | None = None
        self._read_by: EpisodeReader | None = None
        self._recollection = Recollection(
            RecollectionParts(
                directory=directory,
                episodes=self._reader,
                settings=parts.settings,
                sessions=parts.sessions,
                embedder=self.embedder,
                ask=parts.ask,
                emit=parts.emit,
                starter=behind,
                limiter=self._limiter,
                keeps_up=parts.keeps_up,
            )
        )
        self._tried: dict[Target, int] = {}
        self._fills: tuple[Facts, ...] = ()
        self._filled: tuple[Stamp | None, ...] | None = None
        self._block = ""
        self._frozen: tuple[Facts, ...] = ()
        self.notices: tuple[str, ...] = ()

    def prompt_block(self) -> str:
        """Return the facts for the system prompt as they were at the start, "" without any.

        Later changes do not show here: the prompt must not change within a session.
        """
        return self._block

    @property
    def frozen(self) -> tuple[Facts, ...]:
        """The facts as they were at the start."""
        return self._frozen

    async def freeze(self) -> None:
        """Take the snapshot for the prompt; what cannot be read or must not be is named in ``notices``."""
        stamps = fact_stamps(self.directory)
        files, failed = await self._in_thread(self._read_each)
        if not failed:
            self._fills, self._filled = tuple(files), stamps
        notices = [f"memory: {target}.md is left out of the prompt: {error}" for target, error in failed]
        for facts in files:
            notices += [
                f"memory: entry {fact.index} of {fact.target}.md is left out of the prompt: {fact.rejection}"
                for fact in facts.entries
                if fact.rejection
            ]
        self._frozen = tuple(files)
        self._outside.start(self._frozen)
        self._block = facts_text(files)
        self.notices = tuple(notices)

    async def context(self, query: str) -> str:  # noqa: ARG002 - the seam's; a full file concerns every query
        """Return what the model should know beside the person's message: which file is nearly full."""
        return "\n".join(filter(None, map(fill_warning, await self.fills())))

    async def fills(self) -> tuple[Facts, ...]:
        """Return both files, () when one cannot be read: a turn does not fail for it."""
        stamps = fact_stamps(self.directory)
        if stamps != self._filled:
            try:
                self._fills = await self.read()
            except StoreError:
                return ()  # whoever changes or reads the memory is told
            self._filled = stamps
        return self._fills

    async def recall(
        self, query: str, *, shown: Callable[[str], bool] = lambda _: False, explain: bool = True
    ) -> Recalled:
        """Return the episodes that ``query`` is about; never fails, and never waits for long.

        ``shown`` tells whether the conversation holds an episode already, ``explain`` whether
        it matters what was found and must not be given.
        """
        try:
            seen = await self.look()
        except StoreError as error:
            return Recalled(note=str(error))
        return await self._recollection.recall(query, seen, shown=shown, explain=explain)

    async def look(self) -> Scan:
        """Look at the directory; tell of what was changed from outside. See ``Lookout.look``.

        Raises:
            StoreError: the directory cannot be read.
        """
        return await self._lookout.look()

    async def read(self) -> tuple[Facts, ...]:
        """Return both files."""
        return await self._in_thread(lambda: tuple(self._store.read(target) for target in TARGETS))

    async def search(self, query: str) -> "Found":
        """Return the facts and the recallable episodes that are about ``query``, best first.

        Raises:
            StoreError: a file of facts, or the list of the episodes, cannot be read.
        """
        files = await self.read()
        return await self._recollection.search(query, files, await self.look())

    def index(self) -> "MemoryIndex":
        """Return what finds episodes and sessions."""
        return self._recollection.index()

    async def take_up(self, session_ids: Iterable[str]) -> None:
        """Let the index say what these sessions and their episodes say now; never fails."""
        from odek.memory.index_texts import document_id

        ids = tuple(session_ids)
        await self.index().take_up(
            [document_id(kind, name) for kind in ("episode", "session") for name in ids]
        )
        await self.index().settle(Scan(is_whole=False) if is_vast(hot_stamps(self.directory)) else None)

    async def episodes(self) -> "tuple[tuple[Episode, ...], int]":
        """Return the episodes that may be recalled, newest first, and how many wait for a person."""
        listed = await self._in_thread(self._reader().read_index)
        recallable = tuple(episode for episode in listed if episode.provenance.is_recallable)
        return recallable, len(listed) - len(recallable)

    async def episode(self, session_id: str) -> "EpisodeText":
        """Return one episode, whatever its trust.

        Raises:
            StoreError: there is none, or it cannot be read.
        """
        return await self._in_thread(partial(self._reader().read, session_id))

    async def check_content(self, content: str) -> str:
        """Return ``content`` as it would be stored, or raise why it would not."""
        return await self._in_thread(partial(self._store.check_content, content))

    async def select(self, old_text: str, target: Target | None = None) -> Fact:
        """Return the one entry that ``old_text`` names."""
        return await self._in_thread(partial(self._store.select, old_text, target))

    async def add(self, target: Target, content: str, origin: "Origin | None" = None) -> "Remembered":
        """Store a fact, or fold it into one that says the same."""
        from odek.memory.remember import remember

        made = await remember(
            self._store,
            target,
            content,
            embedder=self.embedder(),
            ask=self._parts.ask,
            settings=self.settings,
            origin=origin,
            limiter=self._limiter,
        )
        if made.note:
            self._parts.emit(Notice(made.note))
        if made.change.changed:
            text = made.change.fact.text
            if made.kind == "merged":
                self._parts.emit(MemoryEvent("fact_merged", target, text, similarity=made.similarity))
            else:
                self._parts.emit(MemoryEvent("fact_added", target, text))
            self._consolidate_if_full(made.change.facts)
        return made

    async def replace(self, fact: Fact, content: str, origin: "Origin | None" = None) -> Change:
        """Put ``content`` in the place of ``fact``."""
        change = await self._in_thread(partial(self._store.replace, fact, content, origin=origin))
        if change.changed:
            self._parts.emit(MemoryEvent("fact_replaced", fact.target, change.fact.text))
            self._consolidate_if_full(change.facts)
        return change

    async def remove(self, fact: Fact, origin: "Origin | None" = None) -> Change:
        """Remove ``fact``."""
        change = await self._in_thread(partial(self._store.remove, fact, origin=origin))
        self._parts.emit(MemoryEvent("fact_removed", fact.target, fact.shown))
        return change

    async def consolidate(
        self, target: Target, *, dry_run: bool = False, origin: "Origin | None" = None
    ) -> "Consolidated":
        """Let the model merge related entries of one file, if there is one to ask.

        Raises:
            StoreError: the file cannot be read or written.
        """
        from odek.memory.consolidate import Consolidated, consolidate

        if self._parts.ask is None or not self.settings.llm_consolidate:
            reason = "there is no model to ask (api_key, base_url, memory.llm_consolidate)"
            return Consolidated((), (), applied=False, reason=reason)
        done = await consolidate(
            self._store, target, self._parts.ask, dry_run=dry_run, origin=origin, limiter=self._limiter
        )
        if done.applied:
            count, new_count = len(done.before), len(done.after)
            self._parts.emit(MemoryEvent("fact_consolidated", target, count=count, new_count=new_count))
        return done

    def _consolidate_if_full(self, facts: Facts) -> None:
        """Begin to merge entries in the background when the file has reached its mark, once at a time."""
        mark, tried = self.settings.consolidate_at_cap_pct, self._tried.get(facts.target)
        if not mark or facts.percent < mark or self._parts.ask is None or not self.settings.llm_consolidate:
            return
        if tried is None or facts.percent >= tried + CONSOLIDATION_STEP_PERCENT:
            self._tried[facts.target] = facts.percent
            self._jobs.start_soon(self._consolidate_quietly, facts.target)

    async def _consolidate_quietly(self, target: Target) -> None:
        from odek.memory.journal import Origin

        try:
            done = await self.consolidate(target, origin=Origin(approval="policy"))
        except StoreError as error:
            self._parts.emit(Notice(f"memory: {target}.md was not consolidated: {error}"))
            return
        if done.applied:
            del self._tried[target]

    def embedder(self) -> Embedder:
        """Return what makes vectors; the same one each time, for it knows which backend is down."""
        if self._made is None:
            self._made = self._parts.make_embedder()
        return self._made

    def _reader(self) -> "EpisodeReader":
        """Return what reads the episodes, one for all, so that their list is read once."""
        if self._read_by is None:
            from odek.memory.episode_reader import EpisodeReader

            self._read_by = EpisodeReader(self.directory)
        return self._read_by

    def _refresh_index(self, changed: frozenset[str] | None) -> None:
        """Let the index follow the files that changed; None for whatever may have."""
        from odek.memory.index_texts import document_id

        index = self.index()
        if changed is None:
            index.refresh_soon()
        else:
            names = filter(is_episode_file, changed)
            index.take_up_soon([document_id("episode", name.removesuffix(".md")) for name in names])

    def _read_each(self) -> tuple[list[Facts], list[tuple[Target, StoreError]]]:
        files: list[Facts] = []
        failed: list[tuple[Target, StoreError]] = []
        for target in TARGETS:
            try:
                files.append(self._store.read(target))
            except StoreError as error:
                failed.append((target, error))
        return files, failed

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        # Never abandoned: a cancel may end the wait for the lock (through ``poll``), not split a write.
        return await trio.to_thread.run_sync(work, abandon_on_cancel=False, limiter=self._limiter)
