"""The vectors of an index: which documents are close to a question, whatever words they use. Blocks.

A row for each document, under its version: a changed document has no vector until it is
given a new one, and a row that no document has any more is found by nobody. All rows
are compared, by one product. numpy is loaded with the first ``VectorIndex``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from odek.errors import StoreError
from odek.index.document import Filter
from odek.index.ranking import Candidate
from odek.index.units import Sieve
from odek.storage.arrays import RowFile
from odek.storage.files import remove_file

if TYPE_CHECKING:
    import numpy as np

    from odek.embedding.embedder import Vector

    Versions: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.uint64]]
    Places: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.int64]]

__all__ = ["Closeness", "VectorIndex"]

MIN_ROWS = 8
"""With fewer there is no telling how close strangers are in this space, and nothing is called close."""

# Filters whose places are kept: a turn uses two or three.
_FILTERS = 8

# Products of more numbers are done by all cores at once. On a busy machine that waits for the slowest core,
# measured up to 20 ms for 1,200 rows that take 0.04 ms otherwise: worth it from so many rows on alone.
_ONE_CORE_NUMBERS = 262_144
_ALL_CORES_ROWS = 16_384

# Where all cosines are 1 there is nothing to tell apart, and nothing to divide by.
_LEAST = 1e-6


class Closeness:
    """How close the documents are to one question.

    A closeness is a cosine less what the average document has, from there to 1. Spaces in
    which strangers have cosines of 0, and of 0.7, thus mean the same by it.
    """

    def __init__(self, rows: RowFile, cosines: "Vector", admitted: "Places") -> None:
        self._rows = rows
        self._cosines = cosines
        self._admitted = admitted
        alive = cosines if rows.size == len(cosines) else cosines[rows.alive]
        self._usual = float(alive.sum()) / rows.size
        self._unit = 1 / max(1 - self._usual, _LEAST)

    def of(self, versions: Sequence[int]) -> dict[int, float]:
        """Return the closeness of those documents that have a vector."""
        places = self._rows.places_of(versions)
        values = ((self._cosines[places] - self._usual) * self._unit).tolist()
        known = (places >= 0).tolist()
        return {
            version: value
            for version, value, is_known in zip(versions, values, known, strict=True)
            if is_known
        }

    def nearest(self, count: int) -> list[Candidate]:
        """Return the ``count`` closest documents that the filter admits, as if no word had found them."""
        import numpy as np

        places = self._admitted
        if len(places) > count:
            cosines = self._cosines if len(places) == len(self._cosines) else self._cosines[places]
            places = places[np.argpartition(cosines, -count)[-count:]]
        versions = self._rows.record_keys[places].tolist()
        bits = self._rows.labels[places, 0].tolist()
        return [Candidate(version, 0.0, 0.0, of) for version, of in zip(versions, bits, strict=True)]


class VectorIndex:
    """The vectors of one space in the file at ``path``; a file of another space is not read.

    ``damage`` says in a line what was wrong with the file the last time; then there are no vectors.
    """

    def __init__(self, path: Path, space: str) -> None:
        self._rows = RowFile(path, space)
        self._places: dict[Filter, Places] = {}
        self.damage = ""

    def closeness(self, vector: "Vector", where: Filter) -> Closeness | None:
        """Return how close all documents are to a question's vector; None if that cannot be told.

        So it is for a vector of another size than those in the file, one that says nothing,
        and while there are too few.
        """
        import numpy as np

        self._refresh()
        wanted = np.asarray(vector, np.float32)
        with np.errstate(over="ignore"):  # the next line says it
            length = float(np.linalg.norm(wanted))
        if self._rows.size < MIN_ROWS or wanted.shape != (self._rows.dims,) or not 0 < length < np.inf:
            return None
        cosines = _product(self._rows.rows, wanted / np.float32(length))
        return Closeness(self._rows, cosines, self._admitted(where))

    def versions(self) -> "Versions":
        """Return the versions of documents that have a vector."""
        self._refresh()
        return self._rows.keys

    def missing(self, versions: Sequence[int]) -> list[int]:
        """Return which documents have no vector, by their place in ``versions``."""
        import numpy as np

        self._refresh()
        places: list[int] = np.flatnonzero(self._rows.places_of(versions) < 0).tolist()
        return places

    def keep(self, known: "Versions", wanted: Sequence[int]) -> None:
        """Remove the vectors of those ``known`` versions that are not ``wanted``.

        Raises:
            StoreError: they cannot be removed.
        """
        import numpy as np

        orphans: Versions = np.setdiff1d(known, np.array(wanted, np.uint64))
        if len(orphans):
            self._rows.remove(orphans)
            self._places.clear()

    def compact(self) -> None:
        """Write the file anew without what was removed; one of another space goes.

        Raises:
            StoreError: it is not done.
        """
        self._refresh()
        if self._rows.dims:
            self._rows.compact()
        else:
            remove_file(self._rows.path)
        self._places.clear()

    def put(self, vectors: Mapping[int, "Vector"], labels: Mapping[int, tuple[int, int]]) -> None:
        """Give documents their vectors, with their bits and the key of their project as labels.

        A vector that is not finite, or has no length, is kept as one that says nothing.

        Raises:
            StoreError: not all of them have one now.
            ValueError: the vectors are not of one size.
        """
        import numpy as np

        versions = [version for version in vectors if version in labels]
        if not versions:
            return
        rows = np.stack([np.asarray(vectors[version], np.float32) for version in versions])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        rows[~np.isfinite(rows).all(axis=1)] = 0
        self._rows.append(versions, [labels[version] for version in versions], rows)
        if self._rows.wants_compaction:
            self._rows.compact()
        self._places.clear()

    def _refresh(self) -> None:
        try:
            if self._rows.refresh():
                self._places.clear()
                self.damage = ""
        except StoreError as error:
            self._places.clear()
            self.damage = str(error)

    def _admitted(self, where: Filter) -> "Places":
        """Return the places of the records that a filter admits, in order."""
        import numpy as np

        places = self._places.get(where)
        if places is None:
            labels = self._rows.labels
            passing = Sieve(where).admits_all(labels[:, 0], labels[:, 1])
            places = np.flatnonzero(self._rows.alive & passing)
            if len(self._places) >= _FILTERS:
                self._places.clear()
            self._places[where] = places
        return places


def _product(rows: "Vector", vector: "Vector") -> "Vector":
    """Return the product of each row with a vector, by one core unless there are very many."""
    import numpy as np

    if len(rows) >= _ALL_CORES_ROWS:
        return rows @ vector
    products = np.empty(len(rows), np.float32)
    block = max(_ONE_CORE_NUMBERS // len(vector), 1)
    for start in range(0, len(rows), block):
        np.matmul(rows[start : start + block], vector, out=products[start : start + block])
    return products
