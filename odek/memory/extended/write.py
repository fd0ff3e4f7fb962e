"""How statements become atoms: cleaned, scanned, compared with what is there, stored. Blocks.

What the scan or the guard rejects, and what is not the person's own word, is not lost: it waits in
quarantine for a person.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from odek.guard import SecondOpinion
from odek.index.document import Document, Filter, Hit
from odek.memory.extended.atom import (
    DEFAULT_CONFIDENCE,
    PROJECT_BOUND,
    TRUSTED_SOURCES,
    Atom,
    AtomType,
    SourceClass,
    atom_id_of_text,
    new_atom_id,
    normalised,
)
from odek.memory.extended.atom_store import QUARANTINE, AtomStore
from odek.text import clip_bytes
from odek.timestamps import moment_of, timestamp
from odek.trust.scan import scan

if TYPE_CHECKING:
    from odek.embedding.embedder import Vector

__all__ = [
    "ATOMS",
    "AtomIndex",
    "Draft",
    "Origin",
    "Written",
    "atom_id_of",
    "document_of",
    "judge",
    "judge_again",
    "neighbours",
    "store_atoms",
]

TAINTED = "tainted"
SCAN_REJECTED = "scan_rejected"
"""Why an atom lies in quarantine; behind the second stands which rule."""

NEIGHBOURS = 4
"""Atoms looked at for each new one at least: the same one is among the first. No measurement behind it."""

ASKED_WORDS = 8
"""Of a new statement: whatever says nearly the same has most of them, and more cost as much time again."""

_PREFIX = "atom/"

ATOMS = Filter(kinds=("atom",))


class AtomIndex(Protocol):
    """What finds atoms."""

    @property
    def needs_rebuild(self) -> bool:
        """Whether the texts are scanned for want of an index."""
        ...

    @property
    def changed_at_ns(self) -> int:
        """When it was last written, in nanoseconds since 1970; 0 for never."""
        ...

    def count(self) -> int:
        """Return how many documents it holds."""
        ...

    def search(
        self, query: str, count: int, where: Filter, *, floor: float, vector: "Vector | None" = None
    ) -> list[Hit]:
        """Return the documents that are about ``query``, best first."""
        ...

    def without_vectors(self, limit: int, where: Filter) -> list[tuple[int, str]]:
        """Return up to ``limit`` documents that have no vector: their version, and the text."""
        ...

    def set_vectors(self, vectors: "Mapping[int, Vector]") -> None:
        """Give documents their vectors, by version."""
        ...

    def add(self, documents: Sequence[Document]) -> None:
        """Add documents, or put them in the place of those with their ids."""
        ...

    def remove(self, ids: Sequence[str]) -> None:
        """Take documents out."""
        ...

    def rebuild(self) -> bool:
        """Make it anew from the texts; False when another process is at it."""
        ...

    def reconcile(self) -> int:
        """Bring it to what the texts are now; return how many differed."""
        ...

    def compact(self) -> bool:
        """Drop from the files what was taken out; False when another process is at it."""
        ...


class Draft(msgspec.Struct, frozen=True):
    """A statement that may become an atom."""

    text: str
    type: AtomType = "observation"
    confidence: float = DEFAULT_CONFIDENCE
    source_class: SourceClass = "user_said"
    related: tuple[str, ...] = ()


class Origin(msgspec.Struct, frozen=True):
    """Where and when statements were made."""

    session: str = ""
    turn: int = 0
    project: str = ""


class Written(msgspec.Struct, frozen=True):
    """What became of a draft: the atom as it is now, and whether it is new, was there, or waits."""

    atom: Atom
    outcome: Literal["added", "refreshed", "quarantined"]


def document_of(atom: Atom) -> Document:
    """Return what is indexed of a live atom."""
    return Document(
        id=_PREFIX + atom.id,
        kind="atom",
        text=atom.text,
        project=atom.project,
        trusted=atom.is_trusted,
        created_at=int(_seconds(atom.created_at)),
        facet=atom.type,
    )


def atom_id_of(document_id: str) -> str:
    """Return the id of the atom that a document stands for."""
    return document_id.removeprefix(_PREFIX)


def judge(
    draft: Draft, *, origin: Origin, now: datetime, max_chars: int, mask: Callable[[str], str]
) -> Atom | None:
    """Return the atom that ``draft`` asks for, with a ``reason`` if it must wait; None for no text."""
    text = " ".join(draft.text.split())
    if len(text) > max_chars:
        text = clip_bytes(text[:max_chars].rsplit(" ", 1)[0], 4 * max_chars)
    if not text:
        return None
    rejection = scan(text)
    reason = TAINTED if draft.source_class not in TRUSTED_SOURCES else ""
    if rejection is not None:
        reason = f"{SCAN_REJECTED}: {rejection}"
    text = mask(text)
    return Atom(
        id=atom_id_of_text(text, draft.type, origin.project),
        text=text,
        type=draft.type,
        source_class=draft.source_class,
        # To the microsecond: of two decisions in one message, the later one holds.
        created_at=timestamp(now, "microseconds"),
        confidence=draft.confidence,
        session=origin.session,
        turn=origin.turn,
        project=origin.project,
        related=draft.related,
        reason=reason,
    )


async def judge_again(atoms: Sequence[Atom], object_to: SecondOpinion) -> list[Atom]:
    """Return ``atoms`` with a ``reason`` for those that passed the scan and not the second opinion."""
    passed = [atom for atom in atoms if not atom.reason]
    objections = await object_to([atom.text for atom in passed]) if passed else []
    reasons = {atom.id: reason for atom, reason in zip(passed, objections, strict=True) if reason}
    return [
        msgspec.structs.replace(atom, reason=f"{SCAN_REJECTED}: {reasons[atom.id]}")
        if atom.id in reasons
        else atom
        for atom in atoms
    ]


def neighbours(index: AtomIndex, text: str, count: int = 0) -> list[tuple[str, str]]:
    """Return (id, text) of the live atoms that share most with ``text``, at least ``count`` if there are."""
    # Names, numbers and long words are rare and tell most; in their order, so that pairs stay pairs.
    words = text.split()
    telling = sorted(range(len(words)), key=lambda at: (words[at].islower(), -len(words[at])))[:ASKED_WORDS]
    asked = " ".join(words[at] for at in sorted(telling))
    found = index.search(asked, max(count, NEIGHBOURS), ATOMS, floor=0.0)
    return [(atom_id_of(hit.id), hit.passage) for hit in found]


def store_atoms(
    store: AtomStore, index: AtomIndex, atoms: Sequence[Atom], same_as: Mapping[str, str]
) -> list[Written]:
    """Store judged atoms; one that says what another says refreshes that.

    Args:
        store: Where they are kept.
        index: Where they are found; searchable on return.
        atoms: What ``judge`` returned.
        same_as: Id of a new atom → id of the one that it repeats, as far as likeness tells.
            Equal texts are found here.

    Raises:
        StoreError: those written before the failure stay.
    """
    done: list[Written] = []
    live: dict[str, Atom] = {}
    waiting: dict[str, Atom] = {}

    def known(atom_id: str) -> Atom | None:
        return live.get(atom_id) or store.read(atom_id)

    with store.change():
        for atom in _without_gone_links(store, atoms):
            if atom.reason and not _is_approved(known(atom.id), atom):
                waiting[atom.id] = atom
                done.append(Written(atom, "quarantined"))
                continue
            old = _twin(known, atom, same_as.get(atom.id, ""))
            if old is not None:
                kept = _refreshed(old, atom)
            elif known(atom.id) is None:
                kept = atom
            else:  # that file says something else by now
                kept = msgspec.structs.replace(atom, id=new_atom_id())
            live[kept.id] = kept
            done.append(Written(kept, "added" if old is None else "refreshed"))
        if waiting:
            store.write(waiting.values(), QUARANTINE)
        if live:
            store.write(live.values())
            index.add([document_of(atom) for atom in live.values()])
    return done


def _without_gone_links(store: AtomStore, atoms: Sequence[Atom]) -> list[Atom]:
    """Return the atoms linked with what is there alone: what was forgotten meanwhile is named by nobody."""
    own = {atom.id for atom in atoms}

    def there(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if name in own or store.has(name))

    return [msgspec.structs.replace(atom, related=there(atom.related)) for atom in atoms]


def _is_approved(old: Atom | None, new: Atom) -> bool:
    """Tell whether a person has approved what the scan holds back again."""
    return (
        old is not None
        and old.source_class == "user_approved"
        and new.source_class in TRUSTED_SOURCES
        and normalised(old.text) == normalised(new.text)
    )


def _twin(known: Callable[[str], Atom | None], atom: Atom, same_as: str) -> Atom | None:
    """Return the live atom that ``atom`` repeats, as it is now."""
    equal = known(atom.id)
    if equal is not None and equal.is_trusted and normalised(equal.text) == normalised(atom.text):
        return equal
    alike = known(same_as)
    if alike is None or not alike.is_trusted:
        return None
    is_bound = atom.type in PROJECT_BOUND or alike.type in PROJECT_BOUND
    return None if is_bound and alike.project != atom.project else alike


def _refreshed(old: Atom, new: Atom) -> Atom:
    """Return ``old`` as said again: its id and text, the new time, the higher confidence."""
    return msgspec.structs.replace(
        old,
        created_at=max(old.created_at, new.created_at),
        confidence=max(old.confidence, new.confidence),
        related=tuple(dict.fromkeys([*old.related, *new.related])),
    )


def _seconds(created_at: str) -> float:
    then = moment_of(created_at)
    return then.timestamp() if then is not None else 0.0
