"""Whatever fails below Extended Memory is counted, and harms neither the turn nor what is stored."""

import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from odek.errors import StoreError
from odek.events import Event
from odek.memory.extended.atom import Atom
from odek.memory.extended.atom_index import SCANNED_ATOMS
from odek.memory.extended.atom_jobs import AtomJobs, AtomJobsParts, Said
from odek.memory.extended.tally import Counted, Tally
from odek.memory.extended.write import Draft
from odek.messages import UserMessage
from tests.support.extended import NOW, open_extended

FACT = Draft("the staging database is called heron", "fact")
QUESTION = "what is the staging database called?"


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file of this process grow beyond nothing, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_full_disk_loses_nothing_that_was_there(tmp_path: Path) -> None:
    """What cannot be written is an error that names the file; what was there is found, and later it works."""
    async with open_extended(tmp_path) as memory:
        await memory.add([FACT])
        with full_disk():
            with pytest.raises(StoreError, match=r"cannot write .*chunks"):
                await memory.add([Draft("lives in Lyon"), Draft("keeps two cats")])
            assert [each.atom.text for each in (await memory.recall(QUESTION)).atoms] == [FACT.text]
        assert [atom.text for atom in await memory.live()] == [FACT.text]
        assert not list((tmp_path / "extended" / "chunks").glob("*.tmp"))
        await memory.add([Draft("lives in Lyon")])
        assert (await memory.recall("who lives in Lyon?")).atoms


async def test_what_a_full_disk_did_not_take_is_owed(tmp_path: Path) -> None:
    """Extraction onto a full disk is counted and done later; nothing is raised into the turn."""
    said = [UserMessage("I live in Lyon.")]
    counters: Counter[str] = Counter()

    async def ask(_: str, __: str) -> str:
        return '[{"text": "lives in Lyon"}]'

    async with open_extended(tmp_path) as memory:
        parts = AtomJobsParts(
            memory=tmp_path,
            own="s1",
            said=lambda: Said(said, len(said)),
            read=lambda _: None,
            ask=ask,
            keep=memory.add,
            counters=counters,
            emit=list[Event]().append,
        )
        with full_disk():
            async with trio.open_nursery() as nursery:
                AtomJobs(parts, nursery).said(1)
        assert counters["extract_failed"] == 1
        assert await memory.live() == []
        async with trio.open_nursery() as nursery:
            AtomJobs(parts, nursery).said(1)
        assert [atom.text for atom in await memory.live()] == ["lives in Lyon"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"---\ntype: fact\nsource: user_s",
        b"\x00\xff" * 400,
        b"---\nformat: 99\nsource: user_said_v2\n---\nthe staging database is called heron",
        b"x" * 100_000,
    ],
    ids=["empty", "cut short", "garbage", "of an unknown version", "too large"],
)
async def test_a_damaged_atom_is_not_given_and_harms_no_other(tmp_path: Path, data: bytes) -> None:
    """An atom whose file is damaged is withheld and told, with the old index as with a new one."""
    async with open_extended(tmp_path) as memory:
        (damaged, _) = await memory.add([FACT, Draft("the staging database is backed up at night", "fact")])
        (tmp_path / "extended" / "chunks" / f"{damaged.atom.id}.md").write_bytes(data)
        for _ in range(2):
            texts = [each.atom.text for each in (await memory.recall("the staging database")).atoms]
            assert texts == ["the staging database is backed up at night"]
            await memory.compact()
        stats = await memory.stats()
        assert stats.live == 1
        assert [damaged.atom.id in line for line in stats.unreadable] == [True]


async def test_a_directory_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    """Where the atoms should be is something else: nothing is recalled, told once a turn, and counted."""
    async with open_extended(tmp_path) as memory:
        await memory.add([FACT])
    chunks = tmp_path / "extended" / "chunks"
    for path in chunks.iterdir():
        path.unlink()
    chunks.rmdir()
    chunks.write_text("no directory")
    (tmp_path / "extended" / "index" / "current").unlink()
    async with open_extended(tmp_path, is_built=False) as memory:
        assert (await memory.recall(QUESTION)).atoms == ()
        assert memory.counters["recall_failed"] == 1
        with pytest.raises(StoreError):
            await memory.stats()


@pytest.mark.parametrize("damage", ["gone", "garbage", "unknown version"])
async def test_without_an_index_atoms_are_found_and_it_is_made_anew(tmp_path: Path, damage: str) -> None:
    """An index that is gone, garbage or of another version is replaced behind the turn, which is answered."""
    async with open_extended(tmp_path) as memory:
        await memory.add([FACT])
    index = tmp_path / "extended" / "index"
    if damage == "gone":
        (index / "current").unlink()
    elif damage == "garbage":
        for path in index.rglob("*"):
            if path.is_file() and path.parent != index:
                path.write_bytes(b"garbage")
    else:
        (index / "current").write_text('{"generation": "g-0", "fingerprint": "terms 99"}')
    async with open_extended(tmp_path, is_built=False) as memory:
        assert [each.atom.text for each in (await memory.recall(QUESTION)).atoms] == [FACT.text]
    async with open_extended(tmp_path, is_built=False) as memory:
        assert (await memory.stats()).index == "current"


async def test_a_large_store_without_an_index_answers_without_atoms(tmp_path: Path) -> None:
    """More atoms than are read for a turn wait for the index; that is counted, and the index is made."""
    async with open_extended(tmp_path) as memory:
        await memory.add([FACT])
        (known,) = await memory.live()
        with memory.store.change():
            copies = (Atom(id=f"{number:032x}", text=f"note {number}") for number in range(SCANNED_ATOMS))
            memory.store.write(copies)
        (tmp_path / "extended" / "index" / "current").unlink()
    async with open_extended(tmp_path, is_built=False) as memory:
        assert (await memory.recall(QUESTION)).atoms == ()
        assert memory.counters["index_missing"] == 1
    async with open_extended(tmp_path, is_built=False) as memory:
        assert [each.atom for each in (await memory.recall(QUESTION)).atoms] == [known]


def test_what_is_counted_is_added_up_over_processes(tmp_path: Path) -> None:
    """Each adds what it counted since the last time; a damaged file costs the old numbers alone."""
    one, two = Counter({"recall_failed": 2}), Counter({"recall_failed": 1, "extracted": 4})
    first, second = (Tally(tmp_path, counters, lambda: NOW) for counters in (one, two))
    first.save()
    second.save()
    first.save()
    one["recall_failed"] += 1
    was_behind = first.is_behind
    first.save()
    assert (was_behind, first.is_behind) == (True, False)
    assert first.read() == {
        "recall_failed": Counted(4, "2026-06-01T12:00:00Z"),
        "extracted": Counted(4, "2026-06-01T12:00:00Z"),
    }
    (tmp_path / "counters.json").write_text("{")
    one["recall_failed"] += 1
    with full_disk(), pytest.raises(StoreError):
        first.save()
    first.save()
    assert first.read() == {"recall_failed": Counted(1, "2026-06-01T12:00:00Z")}
