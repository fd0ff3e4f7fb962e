"""The vectors of the episodes on disk, so that a process need not make them anew. Blocking.

Plain float32 rows in one file, and in another what they are. Both can be made from the
texts: whatever does not fit together is not used.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from odek.errors import StoreError
from odek.memory.journal import digest
from odek.memory.places import locate, read_bounded
from odek.storage.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odek.embedding.embedder import Vector

__all__ = ["META", "VECTORS", "load_vectors", "save_vectors"]

VECTORS = "episodes_vectors.f32"
META = "episodes_index_meta.json"

# A hundred thousand vectors of 1,024 numbers would be 400 MB: no store of episodes comes near.
_LIMIT_BYTES = 128 * 1024 * 1024


class _Meta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``space`` names the embedder, ``corpus`` the texts; ``rows`` are the hashes of the texts, in order."""

    space: str
    corpus: str
    dims: int
    sha256: str
    rows: tuple[str, ...]


def load_vectors(directory: Path, space: str) -> "dict[str, Vector]":
    """Return the vectors of ``space`` by the hash of their text; none when they cannot be used."""
    try:
        meta = msgspec.json.decode(read_bounded(directory, META, limit_bytes=_LIMIT_BYTES), type=_Meta)
        if meta.space != space or meta.dims < 1:
            return {}
        data = read_bounded(directory, VECTORS, limit_bytes=_LIMIT_BYTES)
    except (FileNotFoundError, StoreError, msgspec.MsgspecError, UnicodeError):
        return {}
    if len(data) != 4 * meta.dims * len(meta.rows) or digest(data) != meta.sha256:
        return {}
    import numpy as np

    rows = np.frombuffer(data, dtype="<f4").reshape(len(meta.rows), meta.dims)
    if not np.isfinite(rows).all():
        return {}
    return dict(zip(meta.rows, rows.astype(np.float32), strict=True))


def save_vectors(directory: Path, space: str, corpus: str, vectors: "Mapping[str, Vector]") -> None:
    """Write the vectors down.

    Raises:
        StoreError: they cannot be written; nothing is lost but time.
    """
    import numpy as np

    rows = np.stack(list(vectors.values())).astype("<f4")
    data = rows.tobytes()
    meta = _Meta(space, corpus, int(rows.shape[1]), digest(data), tuple(vectors))
    # A crash between the two leaves a pair that does not fit, which is made anew.
    replace_file(locate(directory, VECTORS), data, durable=False)
    replace_file(locate(directory, META), msgspec.json.encode(meta) + b"\n", durable=False)
