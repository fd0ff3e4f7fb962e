"""What a person and time do to atoms: promoted, pinned, forgotten, evicted. Blocks."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from odek.config.extended_settings import ExtendedSettings
from odek.errors import StoreError
from odek.memory.extended.atom import Atom, atom_id_of_text, is_atom_id
from odek.memory.extended.atom_store import CHUNKS, INDEX, QUARANTINE, AtomStore, Place
from odek.memory.extended.scoring import age_days, retention
from odek.memory.extended.write import AtomIndex, document_of
from odek.memory.why import WhyLog
from odek.trust.scan import scan

__all__ = [
    "Evicted",
    "Forgotten",
    "Stats",
    "evict",
    "forget",
    "is_fit",
    "pin",
    "promote",
    "prune",
    "remove_unchanged",
    "stats",
    "traces",
]

EVICT_TO_PERCENT = 95
"""Room is made down to this part of the cap, so that not every atom after it makes room again."""

_DOCUMENT_PREFIX = "atom/"
_MEGABYTE = 1_000_000


class Forgotten(msgspec.Struct, frozen=True):
    """An atom that is gone, and the files in which its id is still found: none, or something is wrong."""

    atom: Atom
    traces: tuple[str, ...]


class Evicted(msgspec.Struct, frozen=True):
    """Atoms that went to make room."""

    expired: tuple[str, ...] = ()
    live: tuple[str, ...] = ()


class Stats(msgspec.Struct, frozen=True):
    """What there is.

    ``reasons`` counts why atoms wait. ``index`` is current, behind or missing, and holds ``indexed`` atoms.
    ``unreadable`` has a line for each file that is among the live ones and is not recalled for what it holds.
    """

    live: int
    pinned: int
    quarantined: int
    reasons: dict[str, int]
    types: dict[str, int]
    size_bytes: int
    limit_bytes: int
    index: str = ""
    indexed: int = 0
    unreadable: tuple[str, ...] = ()


def promote(store: AtomStore, index: AtomIndex, atom_id: str) -> Atom:
    """Make a waiting atom live, in the name of the person who has looked at it.

    Raises:
        StoreError: there is none, or it cannot be written.
    """
    with store.change():
        atom = store.read(atom_id, QUARANTINE)
        if atom is None:
            raise StoreError(f"no atom {atom_id[:40]} waits in quarantine")
        live = msgspec.structs.replace(atom, source_class="user_approved", reason="")
        store.move(live, CHUNKS)
        index.add([document_of(live)])
    return live


def pin(store: AtomStore, atom_id: str, *, pinned: bool = True) -> Atom:
    """Keep an atom from being evicted, or no longer.

    Raises:
        StoreError: there is none, or it cannot be written.
    """
    with store.change():
        atom = store.read(atom_id)
        if atom is None:
            raise StoreError(f"there is no atom {atom_id[:40]}")
        kept = msgspec.structs.replace(atom, pin=pinned)
        if kept != atom:
            store.write([kept])
    return kept


def forget(store: AtomStore, index: AtomIndex, atom_id: str, *, purge: bool) -> Forgotten:
    """Remove an atom and every mention of it, wherever it is.

    With ``purge`` the index is also written anew, which takes its time in a large store, and
    then every file is searched for what is left; without, words of it stay in there unfound.

    Raises:
        StoreError: there is none, or it cannot be removed.
    """
    with store.change():
        found = [store.read(atom_id, place) for place in (CHUNKS, QUARANTINE)]
        atom = next(filter(None, found), None)
        if atom is None:
            raise StoreError(f"there is no atom {atom_id[:40]}")
        _unlink_from_others(store, [atom_id])
        for place in (CHUNKS, QUARANTINE):
            store.remove([atom_id], place)
        index.remove([_DOCUMENT_PREFIX + atom_id])
    with suppress(StoreError):  # a record that cannot be changed is among the traces
        WhyLog(store.directory.parent).forget(atom_id)
    if not purge:
        return Forgotten(atom, ())
    unpurged = () if index.compact() else (f"{store.directory / INDEX}, which another process makes anew,",)
    return Forgotten(atom, (*unpurged, *traces(store.directory.parent, atom_id)))


def remove_unchanged(store: AtomStore, index: AtomIndex, atoms: Sequence[Atom]) -> None:
    """Remove live atoms that are still as they were, and were not pinned meanwhile.

    Raises:
        StoreError: not all of them could be removed.
    """
    with store.change():
        going = [atom.id for atom in atoms if not atom.pin and store.read(atom.id) == atom]
        store.remove(going)
        index.remove([_DOCUMENT_PREFIX + atom_id for atom_id in going])


def traces(memory: Path, atom_id: str) -> Iterator[str]:
    """Yield the paths below ``memory`` whose name or content holds the id of an atom."""
    wanted = atom_id.encode()
    if not is_atom_id(atom_id):
        return
    for folder, _, names in os.walk(memory):
        for name in names:
            path = Path(folder, name)
            try:
                held = atom_id in name or (path.is_file() and wanted in path.read_bytes())
            except OSError:
                held = False
            if held:
                yield str(path)


def evict(
    store: AtomStore, index: AtomIndex, settings: ExtendedSettings, *, size_bytes: int, now: datetime
) -> Evicted:
    """Make room when ``size_bytes``, what there is, is over the cap.

    First go waiting atoms that have outlived their time, then live ones, the least
    retained first; pinned ones never.

    Raises:
        StoreError: not all of it could be done.
    """
    limit = settings.max_size_mb * _MEGABYTE
    if size_bytes <= limit:
        return Evicted()
    room = size_bytes - limit * EVICT_TO_PERCENT // 100
    with store.change():
        expired, freed = _expired(store, settings, now, room)
        going: list[str] = []
        if freed < room:
            by_retention = sorted(
                (atom for atom in store.all() if not atom.pin),
                key=lambda atom: (retention(atom, now, settings.decay_half_life_days), atom.created_at),
            )
            for atom in by_retention:
                if freed >= room:
                    break
                freed += _size(store, atom.id, CHUNKS)
                going.append(atom.id)
        store.remove(expired, QUARANTINE)
        store.remove(going)
        index.remove([_DOCUMENT_PREFIX + atom_id for atom_id in going])
    return Evicted(tuple(expired), tuple(going))


def prune(store: AtomStore, settings: ExtendedSettings, *, now: datetime) -> list[str]:
    """Remove waiting atoms that have outlived their time; return their ids.

    Raises:
        StoreError: not all of it could be done.
    """
    with store.change():
        expired, _ = _expired(store, settings, now, room=None)
        return store.remove(expired, QUARANTINE)


def stats(store: AtomStore, settings: ExtendedSettings) -> Stats:
    """Return what there is; reads every atom.

    Raises:
        StoreError: the directory cannot be read.
    """
    stored = list(store.all())
    live = [atom for atom in stored if is_fit(atom)]
    waiting = list(store.all(QUARANTINE))
    return Stats(
        live=len(live),
        pinned=sum(atom.pin for atom in live),
        quarantined=len(waiting),
        reasons=dict(
            Counter(re.split(r"[:\s]", atom.reason, maxsplit=1)[0] or "tainted" for atom in waiting)
        ),
        types=dict(Counter(atom.type for atom in live)),
        size_bytes=store.size_bytes(),
        limit_bytes=settings.max_size_mb * _MEGABYTE,
        unreadable=(
            *store.unreadable(),
            *(
                f"{store.path(atom.id)}: its text does not pass the scan"
                if atom.is_trusted
                else f"{store.path(atom.id)}: where it comes from cannot be read"
                for atom in stored
                if not is_fit(atom)
            ),
        ),
    )


def is_fit(atom: Atom) -> bool:
    """Tell whether a live atom may be indexed: trusted, and its text passes the scan or a person approved it.

    What was approved is told by the id, which is of the text: one that was edited since is scanned.
    """
    if atom.source_class == "user_approved" and atom.id == atom_id_of_text(
        atom.text, atom.type, atom.project
    ):
        return True
    return atom.is_trusted and scan(atom.text) is None


def _expired(
    store: AtomStore, settings: ExtendedSettings, now: datetime, room: int | None
) -> tuple[list[str], int]:
    """Return the waiting atoms past their time, oldest first, as many as make ``room``, and their size."""
    old = sorted(
        (
            atom
            for atom in store.all(QUARANTINE)
            if age_days(atom.created_at, now) > settings.quarantine_ttl_days
        ),
        key=lambda atom: atom.created_at,
    )
    going: list[str] = []
    freed = 0
    for atom in old:
        if room is not None and freed >= room:
            break
        freed += _size(store, atom.id, QUARANTINE)
        going.append(atom.id)
    return going, freed


def _size(store: AtomStore, atom_id: str, place: Place) -> int:
    try:
        return (store.directory / place / f"{atom_id}.md").lstat().st_size
    except OSError:
        return 0


def _unlink_from_others(store: AtomStore, gone: Sequence[str]) -> None:
    """Take the ids of atoms that go out of the links of those that stay."""
    names = frozenset(gone)
    for place in (CHUNKS, QUARANTINE):
        for atom in store.all(place):
            if names.intersection(atom.related):
                rest = tuple(name for name in atom.related if name not in names)
                store.write([msgspec.structs.replace(atom, related=rest)], place)
