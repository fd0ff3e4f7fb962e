"""What is forgotten or evicted while others change atoms: they wait for a moment, not for a read of all."""

import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import trio

from odek.config.extended_settings import ExtendedSettings
from odek.memory.extended.atom import Atom
from odek.memory.extended.atom_index import open_atom_index
from odek.memory.extended.atom_store import QUARANTINE, AtomStore
from odek.memory.extended.service import ExtendedMemory
from odek.memory.extended.upkeep import Evicted, evict, forget, prune
from odek.memory.extended.write import Draft
from tests.support.extended import NOW, open_extended
from tests.support.waiting import HANG_SECONDS

T = TypeVar("T")


@asynccontextmanager
async def waiting_for_the_lock(
    memory: ExtendedMemory, work: Callable[[AtomStore], T]
) -> AsyncGenerator[list[T]]:
    """Yield, holding the lock, while ``work`` waits for it; its result is in the list after the block."""
    waits = threading.Event()
    store, result = AtomStore(memory.store.directory, poll=waits.set), list[T]()

    async with trio.open_nursery() as nursery:
        with memory.store.change():
            nursery.start_soon(
                trio.to_thread.run_sync, lambda: result.append(work(store)), name="waits for the lock"
            )
            with trio.fail_after(HANG_SECONDS):
                while not waits.is_set():  # noqa: ASYNC110 - a thread cannot tell
                    await trio.sleep(0.001)
            yield result


def changed(memory: ExtendedMemory, atom: Atom, **fields: object) -> None:
    """Write ``atom`` anew; the lock is held."""
    memory.store.write([msgspec.structs.replace(atom, **fields)])


async def test_a_link_that_is_made_while_an_atom_is_forgotten_goes_too(tmp_path: Path) -> None:
    """Links of before, links written until the lock is there, and links in quarantine are cut."""
    async with open_extended(tmp_path) as memory:
        gone, before, later, fresh = (
            each.atom for each in await memory.add([Draft(f"owns boat {name}") for name in "abcd"])
        )
        with memory.store.change():
            changed(memory, before, related=(gone.id, later.id))
            changed(memory, later, related=())
            memory.store.move(fresh, QUARANTINE)
        index = open_atom_index(tmp_path)
        work = partial(forget, index=index, atom_id=gone.id, purge=False)
        async with waiting_for_the_lock(memory, work):
            changed(memory, later, related=(gone.id,))
            memory.store.write([msgspec.structs.replace(fresh, related=(gone.id,))], QUARANTINE)

        live = {atom.id: atom.related for atom in await memory.live()}
        assert live == {before.id: (later.id,), later.id: ()}
        assert [atom.related for atom in await memory.quarantined()] == [()]


async def test_what_is_kept_or_gone_by_then_is_not_evicted(tmp_path: Path) -> None:
    """An atom that was pinned meanwhile stays, and one that another process removed counts as room."""

    def work(store: AtomStore) -> Evicted:
        settings = ExtendedSettings(max_size_mb=1)
        # Some 50 KB have to go; those that are gone by then had 55.
        return evict(store, open_atom_index(tmp_path), settings, size_bytes=1_000_001, now=NOW)

    async with open_extended(tmp_path) as memory:
        (old,) = await memory.add([Draft("an old remark about tea")])
        atoms = [
            msgspec.structs.replace(
                old.atom,
                id=f"{number:032x}",
                text="y" * 2000,
                created_at=f"2026-01-{number:02}T00:00:00Z",
            )
            for number in range(1, 29)
        ]
        with memory.store.change():
            memory.store.write(atoms)
        async with waiting_for_the_lock(memory, work) as evicted:
            changed(memory, atoms[0], pin=True)
            memory.store.remove([atom.id for atom in atoms[1:]])

        assert evicted == [Evicted()]
        assert {atom.id for atom in await memory.live()} == {old.atom.id, atoms[0].id}


async def test_a_waiting_atom_that_is_promoted_by_then_is_not_pruned(tmp_path: Path) -> None:
    """What a person has just let in is no longer what has outlived its time."""
    settings, later = ExtendedSettings(), NOW + timedelta(days=30)
    async with open_extended(tmp_path) as memory:
        drafts = [Draft(f"a page says {name}", source_class="web") for name in ("one", "two")]
        one, two = (each.atom for each in await memory.add(drafts))
        async with waiting_for_the_lock(memory, partial(prune, settings=settings, now=later)) as pruned:
            memory.store.move(msgspec.structs.replace(one, source_class="user_approved", reason=""), "chunks")

        assert pruned == [[two.id]]
        assert [atom.id for atom in await memory.live()] == [one.id]
