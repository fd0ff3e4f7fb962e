"""Files of the memory that others may read or write: found, and made private."""

import os
import stat
from pathlib import Path

from odek.errors import StoreError
from odek.memory.places import INDEX, JOURNAL, real_directory
from odek.storage.files import describe

__all__ = ["loose", "tighten"]

_KNOWN = ("user.md", "env.md", INDEX, JOURNAL)


def loose(directory: Path, *, every_file: bool = False) -> list[Path]:
    """Return what below ``directory`` is open to others, the directory itself first.

    Without ``every_file`` the episodes are looked at only if the directory is open.
    """
    real = real_directory(directory)
    try:
        is_open = _is_loose(real)
        names = list(_KNOWN)
        if is_open or every_file:
            names += sorted(name for name in os.listdir(real) if name.endswith(".md"))  # noqa: PTH208 - many
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {real}: {describe(error)}") from error
    found = [real] if is_open else []
    for name in dict.fromkeys(names):
        try:
            if _is_loose(real / name):
                found.append(real / name)
        except OSError:  # not there, or gone meanwhile
            continue
    return found


def tighten(directory: Path, *, every_file: bool = False) -> list[str]:
    """Make what is open to others private; say what was done, or could not be, in one line."""
    done: list[str] = []
    for path in loose(directory, every_file=every_file):
        try:
            path.chmod(0o700 if path.is_dir() else 0o600)
        except OSError as error:
            return [f"memory: {path} is open to others and cannot be made private: {describe(error)}"]
        done.append(path.name)
    if not done:
        return []
    names = ", ".join(done[:3]) + (f" and {len(done) - 3} more" if len(done) > 3 else "")
    return [f"memory: {names} could be read or written by others; now private"]


def _is_loose(path: Path) -> bool:
    status = path.lstat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return False
    return bool(status.st_mode & 0o077)
