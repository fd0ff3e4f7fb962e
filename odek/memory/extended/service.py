"""Extended Memory as an agent uses it: async, bounded, and never a turn's misfortune."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TypeVar

import msgspec
import trio

from odek.background import Starter
from odek.embedding.embedder import cosine
from odek.errors import EmbeddingError, StoreError
from odek.events import MemoryEvent, Notice
from odek.memory.extended.atom import Atom
from odek.memory.extended.atom_index import SCANNED_ATOMS, is_behind
from odek.memory.extended.atom_store import EXTENDED, QUARANTINE, AtomStore
from odek.memory.extended.atom_vectors import AtomVectors
from odek.memory.extended.consolidate import Merged, consolidate
from odek.memory.extended.find import AtomFinder, Passed
from odek.memory.extended.links import linked
from odek.memory.extended.nudges import NudgeLog
from odek.memory.extended.parts import ExtendedParts, RecalledAtoms
from odek.memory.extended.scoring import Scored, cut
from odek.memory.extended.upkeep import (
    Evicted,
    Forgotten,
    Stats,
    evict,
    forget,
    pin,
    promote,
    prune,
    remove_unchanged,
    stats,
)
from odek.memory.extended.write import (
    Draft,
    Origin,
    Written,
    judge,
    judge_again,
    neighbours,
    store_atoms,
)
from odek.memory.substance import differs_in_substance

__all__ = ["ExtendedMemory", "ExtendedParts", "RecalledAtoms"]

CAP_CHECK_BYTES = 256 * 1024
"""The size of the whole directory is looked up again after so much was written."""

_T = TypeVar("_T")


class ExtendedMemory:
    """The atoms, for one agent. ``counters`` says how often something was done without."""

    def __init__(self, parts: ExtendedParts, jobs: Starter) -> None:
        self.settings = parts.settings
        self.counters = parts.counters
        self.store = AtomStore(parts.memory / EXTENDED, poll=trio.from_thread.check_cancelled)
        self._parts = parts
        self._jobs = jobs
        self._finder = AtomFinder(self.store, parts.reader, parts.settings)
        self._limiter = trio.CapacityLimiter(1)  # the index is used by one thread at a time
        self._vectors = AtomVectors(parts.embedder, parts.index, jobs, self._in_thread, self._say)
        self._last_of: dict[str, str] = {}  # session → the atom that was last said in it
        self._is_refreshing = False
        self._unchecked_bytes = CAP_CHECK_BYTES  # the first atoms of a process look

    def now(self) -> datetime:
        """Return the time."""
        return self._parts.now()

    async def recall(self, query: str) -> RecalledAtoms:
        """Return the atoms that ``query`` is about; never fails."""
        if not self.settings.semantic_search_top_k:
            return RecalledAtoms()
        try:
            if not await self._is_searchable():
                return RecalledAtoms()
            vector = await self._vectors.of_question(query)
            found, passed = self._finder.find(
                query, project=self._parts.project, now=self._parts.now(), vector=vector
            )
        except StoreError as error:
            self.counters["recall_failed"] += 1
            self._say(f"atoms could not be recalled: {error}")
            return RecalledAtoms()
        return self.cut(found, passed)

    def cut(self, found: Sequence[Scored], passed: Sequence[Passed]) -> RecalledAtoms:
        """Return the best of ``found``, as many as a turn may have."""
        taken, left = cut(
            found,
            count=self.settings.semantic_search_top_k,
            budget_chars=self.settings.memory_budget_chars,
        )
        return RecalledAtoms(tuple(taken), tuple(left), tuple(passed))

    async def search(self, query: str, *, types: Sequence[str] = (), weight: float = 1.0) -> list[Scored]:
        """Return what ``query`` is about, best first, without a budget.

        Raises:
            StoreError: the atoms cannot be searched.
        """
        if not await self._is_searchable():
            return []
        vector = await self._vectors.of_question(query)
        found, _ = self._finder.find(
            query,
            project=self._parts.project,
            now=self._parts.now(),
            types=types,
            weight=weight,
            vector=vector,
        )
        return sorted(found, key=lambda each: (-each.score, each.atom.id))

    async def add(
        self, drafts: Sequence[Draft], *, session: str = "", turn: int = 0, compare: bool = True
    ) -> list[Written]:
        """Store statements: scanned, compared with what is there, searchable on return.

        Without ``compare`` only an equal text is taken for the same.

        Raises:
            StoreError: not all of them are stored.
        """
        origin = Origin(session, turn, self._parts.project)
        atoms = [
            atom
            for draft in drafts
            if (
                atom := judge(
                    draft,
                    origin=origin,
                    now=self._parts.now(),
                    max_chars=self.settings.atom_max_chars,
                    mask=self._parts.mask,
                )
            )
        ]
        if not atoms:
            return []
        if self._parts.object_to is not None:
            atoms = await judge_again(atoms, self._parts.object_to)
        new = [atom for atom in atoms if not atom.reason]
        same_as, alike = await self._compare(new) if compare and new else ({}, {})
        if self.settings.associations_enabled:
            atoms = linked(atoms, alike, self._last_of.get(session, ""))
        written = await self._in_thread(partial(store_atoms, self.store, self._parts.index, atoms, same_as))
        for each in written:
            self._tell(each)
        if session:
            self._last_of[session] = written[-1].atom.id
        self._check_cap(written)
        self._vectors.fill_soon()
        return written

    async def promote(self, atom_id: str) -> Atom:
        """Make a waiting atom live; for a person alone.

        Raises:
            StoreError: there is none, or it cannot be written.
        """
        atom = await self._in_thread(partial(promote, self.store, self._parts.index, atom_id))
        self._parts.emit(MemoryEvent("atom_promoted", target=atom.type, content=atom.text))
        return atom

    async def forget(self, atom_id: str, *, purge: bool = True) -> Forgotten:
        """Remove an atom and every mention of it; without ``purge`` the index is cleaned in the background.

        Raises:
            StoreError: there is none, or it cannot be removed.
        """
        nudges = NudgeLog(self.store.directory, self.settings, self._parts.now)

        def work() -> Forgotten:
            with suppress(StoreError):  # a damaged record that names it is told with the traces
                nudges.forget(atom_id)
            return forget(self.store, self._parts.index, atom_id, purge=purge)

        gone = await self._in_thread(work)
        if not purge:
            self._jobs.start_soon(self._compact)
        self._parts.emit(MemoryEvent("atom_forgotten", target=gone.atom.type, content=gone.atom.text))
        return gone

    async def consolidate(self, ask: Callable[[str, str], Awaitable[str]]) -> list[Merged]:
        """Let a model merge the atoms that say nearly the same; those that it cannot merge stay.

        Raises:
            EmbeddingError: the atoms cannot be compared.
            StoreError: they cannot be read or written.
        """

        async def add(draft: Draft) -> Written | None:
            written = await self.add([draft], compare=False)
            return written[0] if written else None

        async def remove(atoms: Sequence[Atom]) -> None:
            await self._in_thread(partial(remove_unchanged, self.store, self._parts.index, atoms))

        return await consolidate(
            await self.live(),
            threshold=self.settings.consolidate_similarity_threshold,
            embedder=self._parts.embedder,
            ask=ask,
            add=add,
            remove=remove,
        )

    async def pin(self, atom_id: str, *, pinned: bool = True) -> Atom:
        """Keep an atom from being evicted, or no longer.

        Raises:
            StoreError: there is none, or it cannot be written.
        """
        return await self._in_thread(partial(pin, self.store, atom_id, pinned=pinned))

    async def quarantined(self) -> list[Atom]:
        """Return what waits for a person, oldest first.

        Raises:
            StoreError: the directory cannot be read.
        """
        found = await self._in_thread(lambda: list(self.store.all(QUARANTINE)))
        return sorted(found, key=lambda atom: (atom.created_at, atom.id))

    async def live(self) -> list[Atom]:
        """Return every atom that may be recalled, oldest first.

        Raises:
            StoreError: the directory cannot be read.
        """
        found = await self._in_thread(lambda: [atom for atom in self.store.all() if atom.is_trusted])
        return sorted(found, key=lambda atom: (atom.created_at, atom.id))

    async def prune(self) -> list[str]:
        """Remove waiting atoms that have outlived their time; return their ids.

        Raises:
            StoreError: not all of it could be done.
        """
        return await self._in_thread(partial(prune, self.store, self.settings, now=self._parts.now()))

    async def stats(self) -> Stats:
        """Return what there is.

        Raises:
            StoreError: the directory cannot be read.
        """
        found = await self._in_thread(partial(stats, self.store, self.settings))
        reader = self._parts.reader
        state = (
            "missing" if reader.needs_rebuild else "behind" if is_behind(reader, self.store) else "current"
        )
        indexed = await self._in_other_thread(reader.count)
        return msgspec.structs.replace(found, index=state, indexed=indexed)

    async def _compare(self, atoms: Sequence[Atom]) -> tuple[dict[str, str], dict[str, list[str]]]:
        """Return for each atom the live one that it repeats, and the ids of those most like it.

        A likeness that cannot be computed decides nothing: one too many is better than a wrong one gone.
        """
        index, count = self._parts.index, self.settings.association_semantic_top_k + 1
        known = await self._in_thread(
            lambda: {atom.id: neighbours(index, atom.text, count) for atom in atoms}
        )
        for at, atom in enumerate(atoms):
            known[atom.id] += [(other.id, other.text) for other in atoms[:at]]
        texts = list(
            dict.fromkeys([*(a.text for a in atoms), *(t for near in known.values() for _, t in near)])
        )
        try:
            vectors = dict(zip(texts, await self._parts.embedder.embed(texts), strict=True))
        except EmbeddingError:
            self.counters["compare_failed"] += 1
            return {}, {}
        same_as: dict[str, str] = {}
        alike: dict[str, list[str]] = {}
        for atom in atoms:
            ranked = sorted(
                ((cosine(vectors[atom.text], vectors[text]), name, text) for name, text in known[atom.id]),
                reverse=True,
            )
            alike[atom.id] = [name for _, name, _ in ranked[: self.settings.association_semantic_top_k]]
            if ranked and self._is_same(atom.text, *ranked[0]):
                same_as[atom.id] = same_as.get(ranked[0][1], ranked[0][1])
        return same_as, alike

    def _is_same(self, text: str, likeness: float, _: str, other: str) -> bool:
        threshold = self.settings.semantic_dedup_threshold
        return bool(threshold) and likeness >= threshold and not differs_in_substance(text, other)

    async def _is_searchable(self) -> bool:
        """Begin to bring the index up to date if need be; False when it takes too long without one."""
        reader = self._parts.reader
        if is_behind(reader, self.store) and not self._is_refreshing:
            self._is_refreshing = True
            self._jobs.start_soon(self._refresh)
        if not reader.needs_rebuild:
            return True
        few = await self._in_other_thread(lambda: len(self.store.ids()) <= SCANNED_ATOMS)
        if not few:
            self.counters["index_missing"] += 1
        return few

    async def _refresh(self) -> None:
        index = self._parts.index
        try:
            await self._in_thread(lambda: index.rebuild() if index.needs_rebuild else index.reconcile())
            self._vectors.fill_soon()
        except StoreError as error:
            self.counters["index_failed"] += 1
            self._say(f"the index of the atoms could not be brought up to date: {error}")
        finally:
            self._is_refreshing = False

    def _check_cap(self, written: Sequence[Written]) -> None:
        """Make room in the background when enough was written since it was looked at."""
        self._unchecked_bytes += sum(len(each.atom.text) + 256 for each in written)
        if self._unchecked_bytes >= CAP_CHECK_BYTES:
            self._unchecked_bytes = 0
            self._jobs.start_soon(self._make_room)

    async def _make_room(self) -> None:
        try:
            gone = await self._in_thread(self._evict)
        except StoreError as error:
            self.counters["evict_failed"] += 1
            self._say(f"no room could be made among the atoms: {error}")
            return
        if gone.expired or gone.live:
            count = len(gone.expired) + len(gone.live)
            self._parts.emit(MemoryEvent("atom_evicted", count=count))

    async def compact(self) -> bool:
        """Make the index anew and wait for it; False when another process is at it.

        Raises:
            StoreError: it cannot be written; the old one still answers.
        """
        return await self._in_thread(self._parts.index.compact)

    async def _compact(self) -> None:
        try:
            await self.compact()
        except StoreError as error:
            self.counters["compact_failed"] += 1
            self._say(f"the index of the atoms was not cleaned: {error}")

    def _evict(self) -> Evicted:
        return evict(
            self.store,
            self._parts.index,
            self.settings,
            size_bytes=self.store.size_bytes(),
            now=self._parts.now(),
        )

    def _tell(self, written: Written) -> None:
        atom = written.atom
        match written.outcome:
            case "added":
                self._parts.emit(MemoryEvent("atom_added", target=atom.type, content=atom.text))
            case "refreshed":
                self._parts.emit(MemoryEvent("atom_refreshed", target=atom.type, content=atom.text))
            case "quarantined":
                self.counters["quarantined"] += 1
                self._parts.emit(MemoryEvent("atom_quarantined", target=atom.type, content=atom.reason))

    def _say(self, text: str) -> None:
        self._parts.emit(Notice(text, "warning"))

    async def _in_other_thread(self, work: Callable[[], _T]) -> _T:
        """Run what needs no index, beside what does."""
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        # Never abandoned: what writes is finished; the wait for a lock ends through ``poll``.
        return await trio.to_thread.run_sync(work, abandon_on_cancel=False, limiter=self._limiter)
