"""Which atoms are about a question: one pass of the index, then the composite score. Blocks, briefly."""

import os
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from odek.config.extended_settings import ExtendedSettings
from odek.errors import StoreError
from odek.index.document import Filter
from odek.index.engine import RELEVANCE_FLOOR
from odek.memory.extended.atom import PROJECT_BOUND, Atom
from odek.memory.extended.atom_store import AtomStore
from odek.memory.extended.scoring import (
    OTHER_PROJECT_FACTOR,
    Scored,
    composite,
    contrast,
    may_be_recalled,
    retention,
)
from odek.memory.extended.write import AtomIndex, atom_id_of
from odek.trust.scan import scan

if TYPE_CHECKING:
    from odek.embedding.embedder import Vector

__all__ = ["AtomFinder", "Passed"]

MIN_SCORE = 0.5
"""By default: what means as much by words and by vectors, since the index brings them to one scale."""

# Below the floor of the index: a message of several questions finds the atom of each.
_HALF_RELEVANCE = 0.75 * RELEVANCE_FLOOR
_KEPT_ATOMS = 20_000  # some 10 MB


class Passed(msgspec.Struct, frozen=True):
    """An atom that was found and is not given, and why."""

    atom_id: str
    reason: str
    likeness: float


class AtomFinder:
    """Finds atoms. It keeps those that it has read, as long as their files stay as they were."""

    def __init__(self, store: AtomStore, index: AtomIndex, settings: ExtendedSettings) -> None:
        self._store = store
        self._index = index
        self._settings = settings
        self._read: dict[str, tuple[tuple[int, int, int], Atom | None]] = {}

    def find(
        self,
        query: str,
        *,
        project: str,
        now: datetime,
        types: Iterable[str] = (),
        weight: float = 1.0,
        vector: "Vector | None" = None,
    ) -> tuple[list[Scored], list[Passed]]:
        """Return the atoms that ``query`` is about, and those found that may not be shown.

        Args:
            query: The question.
            project: The directory the person works in.
            now: For their age.
            types: Only these, if any are named.
            weight: What the scores are multiplied by.
            vector: That of the question, if there is one.
        """
        settings = self._settings
        count = settings.semantic_search_top_k * settings.semantic_search_overfetch
        wanted = frozenset(types)
        where = Filter(
            kinds=("atom",),
            project=project,
            trusted_only=True,
            excluded_elsewhere=tuple(sorted(PROJECT_BOUND)),
        )
        admitted: list[tuple[Atom, float, float]] = []
        passed: list[Passed] = []
        for hit in self._index.search(query, count, where, floor=0.0, vector=vector):
            atom_id, likeness = atom_id_of(hit.id), likeness_of(hit.relevance)
            atom = self._current(atom_id, hit.passage)
            if atom is None or (wanted and atom.type not in wanted):
                continue
            if likeness < self.min_score:
                passed.append(Passed(atom_id, "score", likeness))
            elif not may_be_recalled(atom, project):
                passed.append(Passed(atom_id, "withheld", likeness))
            else:
                admitted.append((atom, likeness, hit.relevance))
        best = max((relevance for _, _, relevance in admitted), default=0.0)
        found: list[Scored] = []
        for atom, likeness, relevance in admitted:
            kept = retention(atom, now, settings.decay_half_life_days)
            score = composite(likeness_of(best) * contrast(relevance, best), kept) * weight
            if atom.project not in {"", project}:
                score *= OTHER_PROJECT_FACTOR
            found.append(Scored(atom, likeness, score))
        return found, passed

    @property
    def min_score(self) -> float:
        """The least likeness that counts."""
        chosen = self._settings.semantic_search_min_score
        return chosen or MIN_SCORE

    def _current(self, atom_id: str, indexed_text: str) -> Atom | None:
        """Return an atom as its file has it; None if it is gone or was changed to what may not be shown."""
        try:
            status = os.lstat(self._store.path(atom_id))  # of a string: for each hit of each turn
        except OSError:
            return None
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        known = self._read.get(atom_id)
        if known is not None and known[0] == stamp:
            return known[1]
        try:
            atom = self._store.read(atom_id)
        except StoreError:
            atom = None
        # What the index holds was scanned when it was written; a text edited since is scanned here.
        if atom is not None and atom.text != indexed_text and scan(atom.text) is not None:
            atom = None
        if len(self._read) >= _KEPT_ATOMS:
            self._read.clear()
        self._read[atom_id] = (stamp, atom)
        return atom


def likeness_of(relevance: float) -> float:
    """Return a relevance of the index as a likeness from 0 to 1."""
    return relevance / (relevance + _HALF_RELEVANCE) if relevance > 0 else 0.0
