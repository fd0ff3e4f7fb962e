"""The one way by which the memory changes, for facts and episodes alike.

Under one lock: what is on disk is read, the change is decided on, written, and recorded.
A change of one file is atomic by itself. A change of several is first written down whole
as an *intent*, which is the moment from which on it counts: whoever reads sees it as done,
and whoever writes next after a crash carries it out. Everything here blocks.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.memory.journal import Journal, Record, digest
from odek.memory.modes import tighten
from odek.memory.places import INDEX, INTENT, LOCK, is_episode_id, locate, look, read_bounded, real_directory
from odek.storage.files import (
    abandoned_temporaries,
    describe,
    ensure_directory,
    remove_file,
    replace_file,
    sweep_temporaries,
    sync_directory,
)
from odek.storage.locks import exclusive

__all__ = ["FILE_LIMIT_BYTES", "Committer", "Intent", "Transaction", "read_intent"]

LOCK_TIMEOUT_SECONDS = 10.0
"""A change holds the lock for some milliseconds; whoever holds it this long is stuck."""

FILE_LIMIT_BYTES = 64 * 1024 * 1024
"""Largest index: more than a hundred thousand episodes."""

# The bytes of the index come in base64, and twice that is beside them at most.
INTENT_LIMIT_BYTES = 4 * FILE_LIMIT_BYTES


class FileChange(msgspec.Struct, frozen=True):
    """A file before and after: ``before`` is the hash of its bytes, "" for none; ``data`` None removes it."""

    name: str
    before: str
    data: bytes | None = None

    @property
    def after(self) -> str:
        """The hash of what will be there."""
        return "" if self.data is None else digest(self.data)


class Intent(msgspec.Struct, frozen=True):
    """A change of several files, in the order in which they are written."""

    changes: tuple[FileChange, ...]
    records: tuple[Record, ...] = ()

    def data_of(self, name: str) -> bytes | None:
        """Return what the file ``name`` will hold, None if it is not written."""
        return next((change.data for change in self.changes if change.name == name), None)

    def removes(self, name: str) -> bool:
        """Tell whether the file ``name`` goes."""
        return any(change.name == name and change.data is None for change in self.changes)


class Transaction:
    """What a change will do; nothing of it is on disk before the block ends well."""

    def __init__(self) -> None:
        self._bodies: dict[str, bytes] = {}
        self._index: dict[str, bytes] = {}
        self._deleted: dict[str, None] = {}
        self.records: list[Record] = []

    def put(self, name: str, data: bytes) -> None:
        """Write a file; the index is written behind all others."""
        (self._index if name == INDEX else self._bodies)[name] = data
        self._deleted.pop(name, None)

    def delete(self, name: str) -> None:
        """Remove a file, after everything that no longer names it is written."""
        self._bodies.pop(name, None)
        self._deleted[name] = None

    @property
    def planned(self) -> list[tuple[str, bytes | None]]:
        """The files to write and remove, in order."""
        return [*self._bodies.items(), *self._index.items(), *((name, None) for name in self._deleted)]


class Committer:
    """Changes the memory below ``directory``, which is made when something is stored.

    ``poll`` is called while waiting for the lock and may raise to give up. ``notify``
    gets a line for whatever was repaired or could not be recorded.
    """

    def __init__(
        self,
        directory: Path,
        *,
        poll: Callable[[], None] | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self.directory = directory
        self.journal = Journal(directory)
        self._poll = poll
        self._notify = notify or _ignore

    @contextmanager
    def change(self) -> Iterator[Transaction]:
        """Hold the lock for a block, and make what it planned durable when it ends well.

        Raises:
            StoreBusyError: another process holds the lock.
            StoreError: nothing was changed, or the message says that the rest will follow.
        """
        real = real_directory(self.directory)
        ensure_directory(real)
        with exclusive(real / LOCK, timeout_seconds=LOCK_TIMEOUT_SECONDS, poll=self._poll):
            self._finish_interrupted()
            transaction = Transaction()
            yield transaction
            self._apply(transaction)
            if transaction.records:
                self._record(transaction.records)

    def recover(self) -> list[str]:
        """Finish what a crash interrupted, sweep what it left over, make private what is not.

        Says what was done, a line each.

        Without anything to do nothing is locked or written.

        Raises:
            StoreError: it cannot be mended now.
        """
        real = real_directory(self.directory)
        if not real.is_dir():
            return []
        said = tighten(self.directory)
        if read_intent(self.directory) is not None or (real / INTENT).is_symlink():
            with exclusive(real / LOCK, timeout_seconds=LOCK_TIMEOUT_SECONDS, poll=self._poll):
                said += self._interrupted()
        if abandoned_temporaries(real):
            swept = sweep_temporaries(real)
            said += (
                [f"memory: {len(swept)} temporary files of interrupted writes were removed"] if swept else []
            )
        return said

    def _finish_interrupted(self) -> None:
        for line in self._interrupted():
            self._notify(line)

    def _interrupted(self) -> list[str]:
        """Carry out an intent that is there; the lock is held."""
        path = real_directory(self.directory) / INTENT
        if look(path) is None:
            return []
        intent = read_intent(self.directory)
        if intent is None:
            remove_file(path)
            return [
                f"memory: {path} was unreadable and is removed; `odek memory check` tells what is missing"
            ]
        kept = self._carry_out(intent)
        self._record(intent.records)
        remove_file(path)
        return [
            "memory: a change that was interrupted is now complete",
            *(f"memory: {name} was changed by others meanwhile and is left as it is" for name in kept),
        ]

    def _apply(self, transaction: Transaction) -> None:
        planned = transaction.planned
        if len(planned) == 1 and (data := planned[0][1]) is not None:
            replace_file(locate(self.directory, planned[0][0]), data)
            return
        changes = tuple(FileChange(name, self._hash(name), data) for name, data in planned)
        changes = tuple(change for change in changes if change.before != change.after)
        if changes:
            self._apply_several(Intent(changes, tuple(transaction.records)))

    def _apply_several(self, intent: Intent) -> None:
        path = real_directory(self.directory) / INTENT
        replace_file(path, msgspec.json.encode(intent))
        try:
            self._carry_out(intent)
        except StoreError as error:
            if self._is_untouched(intent):
                remove_file(path)
                raise
            raise StoreError(
                f"{error}; the rest of the change follows when the memory is used next"
            ) from error
        remove_file(path)

    def _carry_out(self, intent: Intent) -> list[str]:
        """Bring every file to its state after; return those that are in neither state."""
        kept: list[str] = []
        deleted = False
        for change in intent.changes:
            found = self._hash(change.name)
            if found == change.after:
                continue
            if found != change.before:
                kept.append(change.name)
            elif change.data is not None:
                replace_file(locate(self.directory, change.name), change.data)
            else:
                self._unlink(change.name)
                deleted = True
        if deleted:
            self._sync()
        return kept

    def _unlink(self, name: str) -> None:
        path = real_directory(self.directory) / name  # the link, if it is one; never what it leads to
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot remove {path}: {describe(error)}") from error

    def _sync(self) -> None:
        real = real_directory(self.directory)
        try:
            sync_directory(real)
        except OSError as error:
            raise StoreError(f"cannot write {real}: {describe(error)}") from error

    def _is_untouched(self, intent: Intent) -> bool:
        try:
            return all(self._hash(change.name) == change.before for change in intent.changes)
        except StoreError:
            return False

    def _hash(self, name: str) -> str:
        try:
            return digest(read_bounded(self.directory, name, limit_bytes=FILE_LIMIT_BYTES))
        except FileNotFoundError:
            return ""

    def _record(self, records: Sequence[Record]) -> None:
        """Append to the journal; the change is made, so that a failure here is only said."""
        try:
            self.journal.append(records)
        except StoreError as error:
            self._notify(f"memory: the change is stored, but not recorded in the journal: {error}")


def read_intent(directory: Path) -> Intent | None:
    """Return the change of several files that is under way or was interrupted, None without one."""
    try:
        data = read_bounded(directory, INTENT, limit_bytes=INTENT_LIMIT_BYTES)
        intent = msgspec.json.decode(data, type=Intent)
    except (FileNotFoundError, StoreError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return intent if all(_is_ours(change.name) for change in intent.changes) else None


def _is_ours(name: str) -> bool:
    """Tell whether an intent may name this file: the index, a copy of it, or an episode."""
    if name == INDEX or (name.startswith(f"{INDEX}.") and name.endswith(".damaged") and "/" not in name):
        return True
    return name.endswith(".md") and is_episode_id(name.removesuffix(".md"))


def _ignore(line: str) -> None:
    pass
