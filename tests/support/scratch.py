"""A directory whose files need no disk: for tests that write much."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["scratch"]

_MEMORY = Path("/dev/shm")


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a directory that is removed after the block, in memory where the system offers that."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as directory:
        yield Path(directory)
