"""Noticing what others change in the memory's directory. ``Scan`` is pure but for reading the directory.

Events of the file system are hints: they may come late, double or not at all. What counts
is the comparison of two scans, which every use of the memory can afford.
"""

import os
import stat
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from pathlib import Path

import msgspec
import trio

from odek.errors import StoreError
from odek.memory.places import INDEX, INTENT, JOURNAL, is_episode_id, real_directory
from odek.storage.files import describe

__all__ = [
    "Scan",
    "Stamp",
    "changed_names",
    "fact_stamps",
    "hot_stamps",
    "is_episode_file",
    "is_vast",
    "list_stamps",
    "scan",
    "scan_of",
    "stamp_of",
    "watch",
]

Stamp = tuple[int, int, int, int]
"""Inode, size, modification and change time in nanoseconds."""

VAST_LIST_BYTES = 600_000
"""A list of so much has some 2,000 episodes; to look at their files takes more than 10 ms then."""

DEBOUNCE_MILLISECONDS = 200
"""An editor's save is a handful of events within some milliseconds."""

_KEPT = frozenset({"user.md", "env.md", INDEX, JOURNAL})


class Scan(msgspec.Struct, frozen=True):
    """The stamps of the files that are memory, by name, at one moment.

    One that is not ``is_whole`` says nothing of the episodes' files: their list alone counts.
    """

    stamps: dict[str, Stamp] = {}
    is_whole: bool = True


def scan(directory: Path) -> Scan:
    """Look at the facts, the episodes, the index and the journal below ``directory``. Blocking.

    Raises:
        StoreError: it cannot be read.
    """
    stamps: dict[str, Stamp] = {}
    try:
        with os.scandir(real_directory(directory)) as entries:
            for entry in entries:
                if not _is_memory(entry.name):
                    continue
                try:
                    status = entry.stat()
                except OSError:
                    continue  # gone meanwhile, or a link to nowhere
                if stat.S_ISREG(status.st_mode):
                    stamps[entry.name] = _stamp(status)
    except (FileNotFoundError, NotADirectoryError):
        return Scan()
    except OSError as error:
        raise StoreError(f"cannot read {directory}: {describe(error)}") from error
    return Scan(stamps)


def scan_of(directory: Path, names: Iterable[str]) -> Scan:
    """Look at the files of these ``names`` alone, with what ``scan`` would find of them. Blocking.

    Raises:
        StoreError: the directory is a link out of the home directory.
    """
    path = str(real_directory(directory))
    found = ((name, _status(f"{path}/{name}")) for name in names if _is_memory(name))
    return Scan({name: _stamp(status) for name, status in found if status and stat.S_ISREG(status.st_mode)})


def changed_names(before: Scan, after: Scan) -> frozenset[str]:
    """Return the names of the files that came, went or are not what they were."""
    names = before.stamps.keys() | after.stamps.keys()
    return frozenset(name for name in names if before.stamps.get(name) != after.stamps.get(name))


def hot_stamps(directory: Path) -> tuple[Stamp | None, ...]:
    """Return the stamps of the directory and the files that change most: user.md, env.md, the index.

    Files come and go with the first; a text that is edited in place shows in a scan alone. Some
    microseconds, so that nobody needs a thread for it.
    """
    path = str(directory)
    return stamp_of(path), *fact_stamps(directory), stamp_of(f"{path}/{INDEX}")


def list_stamps(directory: Path | str) -> tuple[Stamp | None, Stamp | None]:
    """Return the stamps of the list of the episodes and of a change that is under way, as quickly."""
    return stamp_of(f"{directory}/{INDEX}"), stamp_of(f"{directory}/{INTENT}")


def is_episode_file(name: str) -> bool:
    """Tell whether a name that a scan has is that of an episode's text."""
    return name not in _KEPT


def is_vast(hot: tuple[Stamp | None, ...]) -> bool:
    """Tell from ``hot_stamps`` whether there are too many episodes for a question to wait for a scan."""
    listed = hot[-1]
    return listed is not None and listed[1] > VAST_LIST_BYTES


def fact_stamps(directory: Path) -> tuple[Stamp | None, Stamp | None]:
    """Return the stamps of user.md and env.md, as quickly."""
    return stamp_of(f"{directory}/user.md"), stamp_of(f"{directory}/env.md")


async def watch(
    directory: Path, on_hint: Callable[[], Awaitable[None]], notify: Callable[[str], None]
) -> None:
    """Call ``on_hint`` whenever something may have changed below ``directory``, until cancelled.

    Where nothing can be watched it says so once and returns: uses of the memory look for
    themselves.
    """
    if not await trio.to_thread.run_sync(directory.is_dir):
        return
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_set_when_cancelled, stop)
        try:
            # Loaded here: only a long-lived agent watches, and not before its first turn.
            from watchfiles import awatch

            # The directory, not its files: a save by renaming leaves a watched file behind.
            batches = awatch(directory, stop_event=stop, debounce=DEBOUNCE_MILLISECONDS, recursive=False)
            async with aclosing(batches):
                async for _ in batches:
                    await on_hint()
        except (OSError, RuntimeError) as error:
            notify(f"memory: {directory} cannot be watched ({error}); changes are seen at the next use")
        nursery.cancel_scope.cancel()


def stamp_of(path: str) -> Stamp | None:
    """Return what changes with the file at ``path``, a link followed; None when there is none."""
    status = _status(path)
    return None if status is None else _stamp(status)


async def _set_when_cancelled(stop: trio.Event) -> None:
    """Set ``stop`` on cancellation: the watcher's thread looks at it, and is waited for."""
    try:
        await trio.sleep_forever()
    finally:
        stop.set()


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - some for each turn
    except OSError:
        return None


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_memory(name: str) -> bool:
    return name in _KEPT or (name.endswith(".md") and is_episode_id(name.removesuffix(".md")))
