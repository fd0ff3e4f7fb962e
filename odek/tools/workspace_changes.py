"""Which files of a workspace have changed, seen from outside: by size and time."""

import os
from collections.abc import Mapping
from pathlib import Path

from odek.tools.walk import Walk

__all__ = ["changed_between", "snapshot"]


def snapshot(workspace: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of each file that git would look at."""
    found: dict[str, tuple[int, int]] = {}
    for entry in Walk(workspace, workspace, lambda: None):
        if entry.is_regular:
            try:
                status = os.lstat(entry.path)
            except OSError:  # gone since the listing
                continue
            found[entry.relative] = status.st_mtime_ns, status.st_size
    return found


def changed_between(before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]) -> list[str]:
    """Return the files that are new, gone or other than before, by name."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
