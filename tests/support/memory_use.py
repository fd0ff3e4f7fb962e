"""How much memory of Python's own something takes."""

import gc
import tracemalloc
from collections.abc import Callable

__all__ = ["kept_bytes"]


def kept_bytes(work: Callable[[], object]) -> int:
    """Return by how much more is held after ``work`` than before."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        work()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return after - before
