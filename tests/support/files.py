"""What a file is, seen from outside."""

from pathlib import Path

__all__ = ["state_of"]


def state_of(path: Path) -> tuple[int, ...]:
    """Return all that a change of what ``path`` names would change, and that reading it does not."""
    status = path.lstat()
    return (
        status.st_dev,
        status.st_ino,
        status.st_mode,
        status.st_nlink,
        status.st_uid,
        status.st_gid,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
