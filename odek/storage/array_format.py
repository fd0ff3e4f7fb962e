"""How ``arrays`` lays out its files: a header, and records of one size. Pure."""

import hashlib
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Rows: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.float32]]
    Keys: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.uint64]]
    Places: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.int64]]
    Mask: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.bool_]]
    Records: TypeAlias = np.ndarray[tuple[int], np.dtype[np.void]]

__all__ = [
    "HEADER_BYTES",
    "LABELS",
    "MAX_DIMS",
    "REMOVED",
    "ROW",
    "are_whole",
    "dims_of",
    "header_of",
    "new_records",
    "record_type",
    "seal",
]

LABELS = 2
"""Numbers of 64 bits beside each row, for its owner."""

MAX_DIMS = 65_536

HEADER_BYTES = 64

ROW, REMOVED = 1, 2
"""States of a record: it holds its key's row, or says that the key has none."""

_MAGIC = b"odekrows"
_VERSION = 1

# An odd number whose powers are the weights of a checksum. Any with many bits set will do.
_FACTOR = 0x9E37_79B9_7F4A_7C15


def header_of(space: str, dims: int) -> bytes:
    """Return the header of a file with rows of ``dims`` numbers of ``space``."""
    name = hashlib.blake2b(space.encode("utf-8", "surrogatepass"), digest_size=32).digest()
    named = _MAGIC + _VERSION.to_bytes(4, "little") + dims.to_bytes(4, "little") + name
    return named + hashlib.blake2b(named, digest_size=HEADER_BYTES - len(named)).digest()


def dims_of(header: bytes, space: str) -> int:
    """Return how many numbers a row has, by the header of a file; 0 if it is none of ``space``."""
    dims = int.from_bytes(header[12:16], "little")
    return dims if 0 < dims <= MAX_DIMS and header == header_of(space, dims) else 0


def record_type(dims: int) -> "np.dtype[np.void]":
    """Return the layout of a record."""
    import numpy as np

    numbers = dims + dims % 2  # an even number: a record is whole words of 64 bits
    fields = [("check", "<u8"), ("key", "<u8"), ("state", "<u8"), ("labels", "<u8", LABELS)]
    found: np.dtype[np.void] = np.dtype([*fields, ("row", "<f4", numbers)])
    return found


def new_records(keys: "Keys", state: int, dims: int) -> "Records":
    """Return records with ``keys`` and zeros, to be filled in and sealed."""
    import numpy as np

    records: Records = np.zeros(len(keys), record_type(dims))
    records["key"] = keys
    records["state"] = state
    return records


def seal(records: "Records") -> None:
    """Put its checksum into each record."""
    records["check"] = _sums(records)


def are_whole(records: "Records") -> "Mask":
    """Tell which records were written to their end."""
    found: Mask = (_sums(records) == records["check"]) & (records["state"] >= ROW)
    return found


def _sums(records: "Records") -> "Keys":
    """Return a weighted sum of all words but the checksum of each record.

    Made for many records at once: no loop of Python's. The weights are odd, so that no
    change of one word goes unseen.
    """
    import numpy as np

    words = records.view("<u8").reshape(len(records), records.dtype.itemsize // 8)[:, 1:]
    weights = np.cumprod(np.full(words.shape[1], _FACTOR, np.uint64), dtype=np.uint64)
    sums: Keys = words @ weights
    return sums
