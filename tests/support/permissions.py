"""Permissions that count, also where tests run as the superuser."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["locked"]

_NOBODY = 65534


@contextmanager
def locked(directory: Path, left: int = 0) -> Iterator[None]:
    """Leave ``left`` of the permissions on ``directory``; the block runs as a user without privileges."""
    mode = directory.stat().st_mode
    directory.chmod(left)
    privileged = os.geteuid() == 0
    if privileged:
        for parent in directory.parents:  # made by pytest for its owner alone, and shared by its processes
            if parent.is_relative_to(tempfile.gettempdir()) and parent != Path(tempfile.gettempdir()):
                parent.chmod(parent.stat().st_mode | 0o055)
        os.seteuid(_NOBODY)
    try:
        if not os.access(directory.parent, os.X_OK, effective_ids=True):
            pytest.skip(f"another user does not reach {directory.parent}")
        yield
    finally:
        if privileged:
            os.seteuid(0)
        directory.chmod(mode)
