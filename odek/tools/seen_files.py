"""Which files the agent knows, and as of when: what somebody changed since is not written over unseen."""

from pathlib import Path

__all__ = ["SeenFiles", "Stamp", "stamp_of"]

Stamp = tuple[int, int, int]
"""Inode, size and time of the last change: another state of a file has another one."""


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of what is at ``path`` now, None for nothing. Blocking."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


class SeenFiles:
    """The files whose content the agent was shown or wrote, by their paths free of links.

    The tools of one agent share it. Its methods may be called from several threads.
    """

    def __init__(self) -> None:
        self._stamps: dict[Path, Stamp] = {}

    def note(self, path: Path, stamp: Stamp | None) -> None:
        """Remember that the agent knows what ``path`` held when it had this stamp."""
        if stamp is not None:
            self._stamps[path] = stamp

    def knows(self, path: Path) -> bool:
        """Tell whether the agent knows what ``path`` holds now. Blocking."""
        return self._stamps.get(path, ()) == stamp_of(path)

    def changed_since(self, path: Path) -> bool:
        """Tell whether the agent knew what ``path`` held, and something else is there now. Blocking."""
        now = stamp_of(path)
        return path in self._stamps and now is not None and now != self._stamps[path]
