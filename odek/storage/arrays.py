"""Rows of numbers under keys, in one file that every process maps into its memory. Blocks.

Records are appended only. One is there once it is whole, which its length and its
checksum tell; what a dead writer left half-written at the end is ignored by readers and
written over by the next writer. Of several records with one key the last counts, and may
say that the key is removed. Compaction writes a new file and puts it in the place of
the old one, which whoever reads it keeps. Nothing is ever cut off a file: that would
end a process that has it mapped.

Nothing is synced: the rows can be made anew, and a checksum finds what a power cut left.
numpy is loaded with the first ``RowFile``.
"""

import mmap
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from odek.errors import StoreError
from odek.storage.array_format import (
    HEADER_BYTES,
    LABELS,
    MAX_DIMS,
    REMOVED,
    ROW,
    are_whole,
    dims_of,
    header_of,
    new_records,
    record_type,
    seal,
)
from odek.storage.files import describe, ensure_directory, replace_file
from odek.storage.locks import exclusive

if TYPE_CHECKING:
    from odek.storage.array_format import Keys, Mask, Places, Records, Rows

__all__ = ["LABELS", "MAX_DIMS", "RowFile"]

LOCK_SECONDS = 10.0
"""A write waits so long for another's. One takes milliseconds; no measurement behind the rest."""

# Tombstones and replaced rows cost time in each search; below so many it is not worth a new file.
_MIN_DEAD = 1_000

# Records that are made ready at once: some megabytes.
_BLOCK = 4_096

_Stamp: TypeAlias = tuple[int, int, int, int]


class RowFile:
    """The rows of one space, as they are in the file at ``path``.

    Use from one thread at a time; any number of processes share the file. What the
    properties tell is from the last ``refresh``, or from the last write here.

    Args:
        path: The file; it and its directory come into being with the first row.
        space: Names what the numbers mean. A file of another space is not read, and
            replaced by the first row.
    """

    def __init__(self, path: Path, space: str) -> None:
        self.path = path
        self._space = space
        self._forget()

    @property
    def dims(self) -> int:
        """Numbers in a row; 0 while there is no file of this space."""
        return self._dims

    @property
    def size(self) -> int:
        """How many keys have a row."""
        return len(self._keys)

    @property
    def keys(self) -> "Keys":
        """The keys that have a row, sorted."""
        return self._keys

    @property
    def rows(self) -> "Rows":
        """The numbers of all records, shape (records, dims), mapped; those not ``alive`` mean nothing."""
        found: Rows = self._records["row"][:, : self._dims]
        return found

    @property
    def record_keys(self) -> "Keys":
        """The key of each record."""
        found: Keys = self._records["key"]
        return found

    @property
    def labels(self) -> "Keys":
        """The labels of each record, shape (records, LABELS)."""
        found: Keys = self._records["labels"]
        return found

    @property
    def alive(self) -> "Mask":
        """Which records are the row of their key."""
        return self._alive

    @property
    def wants_compaction(self) -> bool:
        """Whether more records are dead than alive, and enough of them to matter."""
        return len(self._alive) - self.size > max(self.size, _MIN_DEAD)

    def places_of(self, keys: "Sequence[int] | Keys") -> "Places":
        """Return for each key the number of the record with its row, or -1."""
        import numpy as np

        wanted = np.asarray(keys, np.uint64)
        if not self.size:
            return np.full(len(wanted), -1, np.int64)
        at = np.minimum(np.searchsorted(self._keys, wanted), self.size - 1)
        return np.where(self._keys[at] == wanted, self._places[at], -1)

    def refresh(self) -> bool:
        """See what was written since the last time; tell whether that may be anything. Costs one stat.

        Raises:
            StoreError: there is a file that cannot be read. Until it can, there are no rows.
        """
        try:
            status = os.stat(self.path)  # noqa: PTH116 - half the time of Path.stat, in each search
        except FileNotFoundError:
            was_there = self._stamp is not None
            self._forget()
            return was_there
        except OSError as error:
            self._forget()
            raise StoreError(f"cannot read {self.path}: {describe(error)}") from error
        if _stamp_of(status) == self._stamp:
            return False
        self._map()
        return True

    def append(self, keys: Sequence[int], labels: Sequence[Sequence[int]], rows: "Rows") -> None:
        """Add rows, or put them in the place of those with their keys; visible to all on return.

        Rows of another size than those in the file begin the file anew.

        Args:
            keys: Of 64 bits each.
            labels: ``LABELS`` numbers of 64 bits for each row.
            rows: Finite numbers, shape (keys, dims).

        Raises:
            StoreError: not all of it is done; some of the first rows may be there.
        """
        import numpy as np

        rows = np.ascontiguousarray(rows, np.float32)
        if rows.ndim != 2 or not 0 < rows.shape[1] <= MAX_DIMS or not np.isfinite(rows).all():
            raise ValueError(f"rows of shape {rows.shape} are no finite numbers under keys")
        dims = rows.shape[1]
        with self._locked():
            if self._dims != dims:
                self._begin(dims)
            for start in range(0, len(keys), _BLOCK):
                block = slice(start, start + _BLOCK)
                records = new_records(np.asarray(keys[block], np.uint64), ROW, dims)
                records["labels"] = np.asarray(labels[block], np.uint64)
                records["row"][:, :dims] = rows[block]
                self._write(records)

    def remove(self, keys: "Sequence[int] | Keys") -> None:
        """Take the rows of ``keys`` out; unknown keys are none the worse.

        Raises:
            StoreError: not all of it is done.
        """
        import numpy as np

        with self._locked():
            known: Keys = np.intersect1d(np.asarray(keys, np.uint64), self._keys)
            for start in range(0, len(known), _BLOCK):
                self._write(new_records(known[start : start + _BLOCK], REMOVED, self._dims))

    def compact(self) -> None:
        """Write the file anew without what is dead.

        Raises:
            StoreError: it is not done; the file is as it was.
        """
        import numpy as np

        with self._locked():
            if not self._dims:
                return
            kind = self._records.dtype
            data = np.empty(HEADER_BYTES + self.size * kind.itemsize, np.uint8)
            data[:HEADER_BYTES] = np.frombuffer(header_of(self._space, self._dims), np.uint8)
            np.take(self._records, np.sort(self._places), out=data[HEADER_BYTES:].view(kind))
            replace_file(self.path, data.data, durable=False)
            self.refresh()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Exclude other writers, and see what they have written."""
        ensure_directory(self.path.parent)
        with exclusive(self.path.with_name(self.path.name + ".lock"), timeout_seconds=LOCK_SECONDS):
            self.refresh()
            yield

    def _begin(self, dims: int) -> None:
        replace_file(self.path, header_of(self._space, dims), durable=False)
        self.refresh()
        if self._dims != dims:
            raise StoreError(f"{self.path} was changed by something that does not take its lock")

    def _write(self, records: "Records") -> None:
        """Put ``records`` behind the last whole one, where half a one may be."""
        seal(records)
        rest = records.view("u1").data
        offset = HEADER_BYTES + len(self._records) * records.dtype.itemsize
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                while rest:  # a full disk or a signal may cut a write short
                    written = os.pwrite(descriptor, rest, offset)
                    rest, offset = rest[written:], offset + written
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {describe(error)}") from error
        finally:
            self.refresh()

    def _forget(self) -> None:
        """Know nothing of a file."""
        import numpy as np

        self._stamp: _Stamp | None = None
        self._dims = 0
        self._records: Records = np.empty(0, record_type(0))
        self._keys: Keys = np.empty(0, np.uint64)
        self._places: Places = np.empty(0, np.int64)
        self._alive: Mask = np.empty(0, np.bool_)

    def _map(self) -> None:
        """Map the file as it is now, and let the records count that are new."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise StoreError(f"cannot read {self.path}: it is no regular file")
                self._map_descriptor(descriptor, _stamp_of(status))
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:  # ValueError: it was cut off a moment ago
            self._forget()
            reason = describe(error) if isinstance(error, OSError) else str(error)
            raise StoreError(f"cannot read {self.path}: {reason}") from error

    def _map_descriptor(self, descriptor: int, stamp: _Stamp) -> None:
        import numpy as np

        if self._stamp is not None and (stamp[:2] != self._stamp[:2] or stamp[2] < self._stamp[2]):
            self._forget()
        self._dims = dims_of(os.pread(descriptor, HEADER_BYTES, 0), self._space)
        if not self._dims:
            self._forget()
            self._stamp = stamp
            return
        kind = record_type(self._dims)
        count = (stamp[2] - HEADER_BYTES) // kind.itemsize
        size_bytes = HEADER_BYTES + count * kind.itemsize
        mapped = mmap.mmap(descriptor, size_bytes, access=mmap.ACCESS_READ)
        records: Records = np.frombuffer(mapped, kind, count, HEADER_BYTES)
        known = len(self._records)
        whole = are_whole(records[known:])
        # What is not whole at the end may be in the making, and will be written over.
        end = known + (int(np.flatnonzero(whole)[-1]) + 1 if whole.any() else 0)
        self._stamp, self._records = stamp, records[:end]
        self._take_in(known, whole[: end - known])

    def _take_in(self, start: int, whole: "Mask") -> None:
        """Let the records from ``start`` on count that are ``whole``, in their order."""
        import numpy as np

        end = len(self._records)
        records = self._records[start:]
        places = np.where(records["state"] == ROW, np.arange(start, end), -1)[whole]
        keys, last = np.unique(records["key"][whole][::-1], return_index=True)
        places = places[::-1][last]
        at = np.searchsorted(self._keys, keys)
        known = np.zeros(len(keys), np.bool_)
        inside = at < self.size
        known[inside] = self._keys[at[inside]] == keys[inside]
        self._alive = np.concatenate([self._alive, np.zeros(end - start, np.bool_)])
        self._alive[self._places[at[known]]] = False
        self._alive[places[places >= 0]] = True
        self._places[at[known]] = places[known]
        all_keys = np.insert(self._keys, at[~known], keys[~known])
        all_places = np.insert(self._places, at[~known], places[~known])
        self._keys, self._places = all_keys[all_places >= 0], all_places[all_places >= 0]


def _stamp_of(status: os.stat_result) -> _Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
