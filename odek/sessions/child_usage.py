"""What subagents used: on disk before they report it, and counted by their session exactly once.

Each delegation has a directory, in it a file for each subagent, and beside the file of
one that delegated itself a directory for its delegations. A session takes over a whole
delegation: it adds the sum, notes the delegation as counted, is saved, and only then is the
directory removed. Whoever opens a session after a crash counts what is not noted.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import trio

from odek.errors import StoreError
from odek.events import Usage
from odek.processes import is_running, running_processes
from odek.sessions.names import lock_path, session_path
from odek.sessions.session import Session
from odek.sessions.unsaved import UNSAVED
from odek.storage.files import (
    PRIVATE_DIRECTORY,
    describe,
    ensure_directory,
    read_file,
    replace_file,
    sync_directory,
)
from odek.storage.trees import remove_tree

__all__ = ["ChildUsage", "recorded_usage", "stale_usage", "usage_file", "write_usage"]

RECORDS = "usage"

FILE_BYTES = 4096

SETTLE_SECONDS = 10.0
"""For the session to be saved: a dead disk must not hold up the exit for ever."""

ORPHAN_SECONDS = 3.0
"""For the subagents of a killed process to end: their wardens need half a second at most."""

ORPHAN_ROUND_SECONDS = 0.02


class ChildUsage:
    """The subagents' usage of one session.

    Args:
        home: The odek home.
        session: Whose it is.
        below: The directory of the subagent that this is; whoever delegated to it takes all of it over.
    """

    def __init__(self, home: Path, session: Session, *, below: Path | None = None) -> None:
        self._home = home
        self._session = session
        self._is_own = below is None
        self._is_saved = session.id != UNSAVED
        name = session.id if self._is_saved else f"{UNSAVED}-{os.getpid()}"
        self._directory = below or home / RECORDS / name

    async def begin_delegation(self) -> Path:
        """Return the directory of a new delegation.

        Where it cannot be made nothing is recorded; what subagents report is then all there is.
        """
        directory = self._directory / os.urandom(6).hex()
        await trio.to_thread.run_sync(self._make, directory)
        return directory

    def _make(self, directory: Path) -> None:
        with suppress(StoreError, OSError):
            if self._is_own:
                ensure_directory(self._home)
                ensure_directory(directory, durable=False)
            else:  # what was taken over must not come back
                self._directory.mkdir(PRIVATE_DIRECTORY, exist_ok=True)
                directory.mkdir(PRIVATE_DIRECTORY)

    async def count_left(self) -> None:
        """Count what a process that was killed has left of this session, and nobody has counted."""
        left: dict[Path, Usage] = {}
        if self._is_own and await trio.to_thread.run_sync(self._directory.exists):
            await self._wait_for_orphans()
            left = await trio.to_thread.run_sync(_delegations, self._directory)
        self._session.drop_counted(self._session.counted_delegations - {each.name for each in left})
        for directory, usage in left.items():
            # Without a session, it is of a process that had our pid once.
            if self._is_saved and directory.name not in self._session.counted_delegations:
                self._session.add_usage(usage)
                self._session.note_counted(directory.name)
        if left:
            await self._settle(list(left))

    async def _wait_for_orphans(self) -> None:
        """Wait for the subagents of the process that had the session before: they are being ended."""
        if self._is_saved:
            with trio.move_on_after(ORPHAN_SECONDS):
                while await trio.to_thread.run_sync(self._has_orphans):  # noqa: ASYNC110 - nobody tells
                    await trio.sleep(ORPHAN_ROUND_SECONDS)

    async def counted(self, directory: Path) -> None:
        """Take over a delegation whose sum has just been added to the session; cannot be cancelled."""
        if self._is_own:
            self._session.note_counted(directory.name)
            await self._settle([directory])

    async def _settle(self, directories: list[Path]) -> None:
        """Save the session, and remove what it has counted. Without a save the directories stay."""
        with trio.move_on_after(SETTLE_SECONDS, shield=True):
            try:
                await self._session.save()
                await trio.to_thread.run_sync(_remove, directories)
            except StoreError:  # whoever saves next saves the note too, and whoever opens removes
                return
            self._session.drop_counted({directory.name for directory in directories})

    def _has_orphans(self) -> bool:
        return any(process.session == self._session.id for process in running_processes(self._home))


def usage_file(delegation: Path, name: str) -> Path:
    """Return the file of the subagent called ``name``; its own delegations go below the same name."""
    return delegation / f"{name.replace(' ', '-')}.json"


def write_usage(path: Path, usage: Usage) -> None:
    """Record what a subagent itself used so far. Blocking.

    Raises:
        StoreError: it is not recorded.
    """
    # Not synced: it must outlive its process, and a power cut ends the session too.
    replace_file(path, msgspec.json.encode(usage), durable=False)


def recorded_usage(path: Path) -> Usage:
    """Return what the subagent with the file ``path`` used, and all below it. Blocking."""
    return _sum([path, *path.with_suffix("").rglob("*.json")])


def stale_usage(home: Path, *, remove: bool) -> Iterator[Path]:
    """Yield the directories that no session will ever count, and ``remove`` them. Blocking.

    Raises:
        StoreError: one of them cannot be removed.
    """
    sessions = home / "sessions"
    for directory in sorted((home / RECORDS).glob("*/")):
        name = directory.name
        pid = name.removeprefix(f"{UNSAVED}-")
        if pid != name and pid.isdecimal():
            is_used = is_running(home, int(pid))
        else:
            is_used = session_path(sessions, name).exists() or lock_path(sessions, name).exists()
        if not is_used:
            if remove:
                remove_tree(directory)
            yield directory


def _delegations(directory: Path) -> dict[Path, Usage]:
    """Return each delegation with what it used; without any, its directory goes."""
    found = {folder: _sum(folder.rglob("*.json")) for folder in sorted(directory.glob("*/"))}
    if not found:
        with suppress(OSError):
            directory.rmdir()
    return found


def _sum(files: Iterable[Path]) -> Usage:
    total = Usage()
    for path in files:
        try:
            total += msgspec.json.decode(read_file(path, limit_bytes=FILE_BYTES), type=Usage)
        except (FileNotFoundError, StoreError, msgspec.MsgspecError):
            continue
    return total


def _remove(directories: list[Path]) -> None:
    """Remove delegations durably: one that came back would be counted again."""
    for directory in directories:
        remove_tree(directory)
    for parent in {directory.parent for directory in directories}:
        try:
            sync_directory(parent)
        except OSError as error:
            raise StoreError(f"cannot remove what is in {parent}: {describe(error)}") from error
        with suppress(OSError):  # there are others
            parent.rmdir()
