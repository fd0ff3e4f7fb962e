"""What is wrong with the files of an index, as one error whatever was raised."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.storage.files import describe

__all__ = ["IndexDamagedError", "reason", "translated"]

_OS_ERROR = re.compile(r"\bOs \{ code: (\d+)")  # as Rust writes one inside of others


class IndexDamagedError(StoreError):
    """The files of an index cannot be used; it is to be rebuilt from the texts."""


@contextmanager
def translated(directory: Path) -> Iterator[None]:
    """Turn whatever tantivy raises, panics of its native code among it, into our error."""
    try:
        yield
    except (StoreError, ValueError, OSError, RuntimeError, OverflowError, msgspec.MsgspecError) as error:
        raise IndexDamagedError(f"the index in {directory} cannot be used: {reason(error)}") from error
    except BaseException as error:
        # A panic of the native code is no Exception, by its makers' choice; here it says: damaged.
        if type(error).__name__ != "PanicException":
            raise
        raise IndexDamagedError(f"the index in {directory} cannot be used: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """Return why tantivy could not do something, in a line: what the system said, if it was that."""
    if said := _OS_ERROR.search(str(error)):
        code = int(said[1])
        return describe(OSError(code, os.strerror(code)))
    return " ".join(str(error).split())[:300] or type(error).__name__
