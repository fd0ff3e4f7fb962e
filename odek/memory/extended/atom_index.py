"""The index of the atoms: beside them, made from them, brought up to date when they are changed by hand."""

from pathlib import Path

from odek.index.engine import Index, open_index
from odek.memory.extended.atom_store import CHUNKS, EXTENDED, INDEX, AtomStore
from odek.memory.extended.upkeep import is_fit
from odek.memory.extended.write import AtomIndex, document_of

__all__ = ["SCANNED_ATOMS", "is_behind", "open_atom_index"]

SCANNED_ATOMS = 500
"""Without an index so many texts are searched one by one, in about a tenth of a second; more have to wait."""

_FINGERPRINT = "atoms 1"  # of what ``document_of`` makes of an atom, and of which are fit


def open_atom_index(memory: Path, space: str = "") -> Index:
    """Return the index of the atoms below ``memory``. Use from one thread at a time: open one for each.

    ``space`` names what the vectors of the atoms mean, if they have some.

    Raises:
        StoreError: its directory cannot be used.
    """
    store = AtomStore(memory / EXTENDED)
    return open_index(
        memory / EXTENDED / INDEX,
        _FINGERPRINT,
        lambda: (document_of(atom) for atom in store.all() if is_fit(atom)),
        space=space,
    )


def is_behind(index: AtomIndex, store: AtomStore) -> bool:
    """Tell whether atoms came or went since the index was written, other than by its own hand.

    Whoever changes atoms writes the files first and then the index. A file edited in place
    is not noticed here: what is shown of it is true nevertheless, for that is read from it.
    """
    try:
        changed_at_ns = (store.directory / CHUNKS).stat().st_mtime_ns
    except OSError:
        return False
    return index.needs_rebuild or changed_at_ns > index.changed_at_ns
