"""Whole directories removed, whatever those who filled them did to their permissions. Blocking."""

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from odek.errors import StoreError
from odek.storage.files import PRIVATE_DIRECTORY, describe

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["remove_tree"]


def remove_tree(path: "Path") -> bool:
    """Remove ``path`` and all below it, without following a link; False when it was not there.

    Directories that their owner closed, as some package caches are, are opened first.

    Raises:
        StoreError: something of it cannot be removed.
    """
    try:
        if path.is_symlink() or path.is_file():
            path.unlink()
            return True
        if not path.exists():
            return False
        shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            _open_directories(path)
            shutil.rmtree(path)
    except FileNotFoundError:  # another process removes it too
        return True
    except OSError as error:
        raise StoreError(f"cannot remove {error.filename or path}: {describe(error)}") from error
    return True


def _open_directories(path: "Path") -> None:
    """Let the owner of the directories at and below ``path`` change what is in them."""
    with suppress(OSError):  # what stays closed is reported by the removal
        path.chmod(PRIVATE_DIRECTORY)
    for folder, names, _ in os.walk(path):  # from the top, so that each is open when it is entered
        for name in names:
            inner = os.path.join(folder, name)  # noqa: PTH118 - os.walk speaks of strings
            if not os.path.islink(inner):  # noqa: PTH114
                with suppress(OSError):
                    os.chmod(inner, PRIVATE_DIRECTORY)  # noqa: PTH101
