"""What lies in a directory. Blocking."""

import os
from typing import TYPE_CHECKING

from odek.errors import StoreError
from odek.storage.files import describe

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["files_in"]


def files_in(directory: "Path", suffix: str) -> "list[Path]":
    """Return the paths in ``directory`` whose names end with ``suffix``, sorted; none without a directory.

    Not by ``glob``: that passes over a directory which is closed to this user, as if it were empty.

    Raises:
        StoreError: the directory cannot be read.
    """
    try:
        names = os.listdir(directory)  # noqa: PTH208 - names alone, without a Path for each that is left out
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StoreError(f"cannot read {directory}: {describe(error)}") from error
    return [directory / name for name in sorted(names) if name.endswith(suffix)]
