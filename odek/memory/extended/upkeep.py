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
    links = _Links(store, atom_id)
    with store.change():
        found = [store.read(atom_id, place) for place in (CHUNKS, QUARANTINE)]
        atom = next(filter(None, found), None)
        if atom is None:
            raise StoreError(f"there is no atom {atom_id[:40]}")
        links.cut()
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
    # Every atom is read and ranked before the lock is taken: there others wait to write.
    candidates = [*_expired(store, settings, now), *_by_retention(store, settings, now)]
    freed = 0
    going: dict[Place, list[str]] = {CHUNKS: [], QUARANTINE: []}
    with store.change():
        for candidate in candidates:
            if freed >= room:
                break
            name, place = candidate.atom.id, candidate.place
            there = store.read(name, place)
            if there == candidate.atom:
                going[place].append(name)
            elif there is not None or store.has(name):
                continue  # pinned, confirmed or promoted meanwhile
            freed += candidate.size_bytes  # of one that another process has removed, too
        store.remove(going[QUARANTINE], QUARANTINE)
        store.remove(going[CHUNKS])
        index.remove([_DOCUMENT_PREFIX + atom_id for atom_id in going[CHUNKS]])
    return Evicted(tuple(going[QUARANTINE]), tuple(going[CHUNKS]))


def prune(store: AtomStore, settings: ExtendedSettings, *, now: datetime) -> list[str]:
    """Remove waiting atoms that have outlived their time; return their ids.

    Raises:
        StoreError: not all of it could be done.
    """
    expired = [candidate.atom for candidate in _expired(store, settings, now)]
    with store.change():
        same = [atom.id for atom in expired if store.read(atom.id, QUARANTINE) == atom]
        return store.remove(same, QUARANTINE)


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


class _Candidate(msgspec.Struct, frozen=True):
    """An atom that may go, as it was when it was looked at."""

    atom: Atom
    place: Place
    size_bytes: int


def _expired(store: AtomStore, settings: ExtendedSettings, now: datetime) -> list[_Candidate]:
    """Return the waiting atoms past their time, oldest first."""
    found = (
        _Candidate(atom, QUARANTINE, _size(store, atom.id, QUARANTINE))
        for atom in store.all(QUARANTINE)
        if age_days(atom.created_at, now) > settings.quarantine_ttl_days
    )
    return sorted(found, key=lambda candidate: candidate.atom.created_at)


def _by_retention(store: AtomStore, settings: ExtendedSettings, now: datetime) -> list[_Candidate]:
    """Return the live atoms that are not pinned, the least retained first."""
    found = (_Candidate(atom, CHUNKS, _size(store, atom.id, CHUNKS)) for atom in store.all() if not atom.pin)
    half_life = settings.decay_half_life_days
    return sorted(found, key=lambda each: (retention(each.atom, now, half_life), each.atom.created_at))


def _size(store: AtomStore, atom_id: str, place: Place) -> int:
    try:
        return os.lstat(store.path(atom_id, place)).st_size
    except OSError:
        return 0


class _Links:
    """Which atoms link to one that goes.

    They are looked for at once, without the lock, for that takes a read of every atom; `cut`
    looks again, under it, at those whose files have changed since.
    """

    def __init__(self, store: AtomStore, atom_id: str) -> None:
        self._store = store
        self._gone = atom_id
        self._states: dict[tuple[Place, str], tuple[int, ...]] = {}
        self._linking: set[tuple[Place, str]] = set()
        self._look()

    def cut(self) -> None:
        """Take the id of the one that goes out of all others. Within ``change``.

        Raises:
            StoreError: the message says which cannot be written.
        """
        self._look()
        for place, atom_id in sorted(self._linking):
            atom = self._store.read(atom_id, place)
            if atom is not None:
                rest = tuple(name for name in atom.related if name != self._gone)
                self._store.write([msgspec.structs.replace(atom, related=rest)], place)

    def _look(self) -> None:
        for place in (CHUNKS, QUARANTINE):
            for atom_id in self._store.ids(place):
                state = self._store.state(atom_id, place)  # first: what changes from here on is read again
                if self._states.get((place, atom_id)) == state:
                    continue
                self._states[place, atom_id] = state
                try:
                    atom = self._store.read(atom_id, place)
                except StoreError:  # told by ``unreadable``
                    atom = None
                if atom is not None and self._gone in atom.related:
                    self._linking.add((place, atom_id))
                else:
                    self._linking.discard((place, atom_id))
