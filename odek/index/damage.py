"""What is wrong with the files of an index, as one error whatever was raised."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from odek.errors import StoreError

__all__ = ["IndexDamagedError", "translated"]


class IndexDamagedError(StoreError):
    """The files of an index cannot be used; it is to be rebuilt from the texts."""


@contextmanager
def translated(directory: Path) -> Iterator[None]:
    """Turn whatever tantivy raises, panics of its native code among it, into our error."""
    try:
        yield
    except (StoreError, ValueError, OSError, RuntimeError, OverflowError, msgspec.MsgspecError) as error:
        raise IndexDamagedError(f"the index in {directory} cannot be used: {_line(error)}") from error
    except BaseException as error:
        # A panic of the native code is no Exception, by its makers' choice; here it says: damaged.
        if type(error).__name__ != "PanicException":
            raise
        raise IndexDamagedError(f"the index in {directory} cannot be used: {_line(error)}") from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
