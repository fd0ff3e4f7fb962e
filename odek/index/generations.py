"""The generations of an index: which one answers, and how another takes its place. Blocks.

Below a directory lie generations, and ``current``, a small file that names the one that
answers and what it was made by. A write changes it in place, atomically. A new one is
made aside and then named. Readers take no lock: the stamps of ``current`` and of the
seal tell them when to read again.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec

from odek.errors import StoreBusyError, StoreError
from odek.index.damage import IndexDamagedError
from odek.index.lexical import LexicalIndex
from odek.storage.files import PRIVATE_DIRECTORY, describe, read_file, replace_file
from odek.storage.locks import HeldLock, exclusive, hold

__all__ = ["Generations"]

LOCK_SECONDS = 10.0
"""A write waits so long for another's. One takes some 20 ms, mostly of the disk, which syncs 15 files; every
seventh merges segments, which takes a second among 5,000 texts."""

_CURRENT_BYTES = 4_096

# Of opening, when a rebuild or a write comes in between each time.
_TRIES = 3

_Stamp: TypeAlias = tuple[int, int, int]


class _Current(msgspec.Struct, frozen=True):
    generation: str
    fingerprint: str


class Generations:
    """The generations below ``directory``; those of another ``fingerprint`` do not answer.

    Use from one thread at a time. ``damage`` says in a line what was wrong with the files the last time.
    """

    def __init__(self, directory: Path, fingerprint: str) -> None:
        self._directory = directory
        self._current = directory / "current"
        self._fingerprint = fingerprint
        self._lexical: LexicalIndex | None = None
        self._seen_current: _Stamp | None = None
        self._seen_seal: _Stamp | None = None
        self._is_unsettled = False
        self._merging: tuple[LexicalIndex, HeldLock] | None = None
        self.damage = ""

    @property
    def is_missing(self) -> bool:
        """Whether there is none that answers, and none that will when a write is done."""
        return self.refresh() is None and not self._is_unsettled

    @property
    def changed_at_ns(self) -> int:
        """When the one that answers was last written, by the disk's clock; 0 without one."""
        return self._seen_seal[1] if self.refresh() is not None and self._seen_seal is not None else 0

    @property
    def fresh(self) -> LexicalIndex | None:
        """The one that is open, if it shows all that was written: nothing is to be opened or read again."""
        lexical = self._lexical
        if (
            lexical is not None
            and _stamp(self._current) == self._seen_current
            and _stamp(lexical.seal_path) == self._seen_seal
        ):
            return lexical
        return None

    def refresh(self, *, is_writer: bool = False) -> LexicalIndex | None:
        """Return the generation that answers, with all that others have written by now.

        ``is_writer`` tells that the caller holds the lock, so that nobody else is writing.
        """
        if self._is_unsettled or _stamp(self._current) != self._seen_current:
            self._open(is_writer=is_writer)
        elif self._lexical is not None and _stamp(self._lexical.seal_path) != self._seen_seal:
            self._reload(self._lexical, is_writer=is_writer)
        return self._lexical

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Exclude other writers for a block, and go on to do so while a merge is under way after it.

        Raises:
            StoreError: the lock is not to be had.
        """
        self.finish_merge()
        lock = hold(self._directory / "write.lock", timeout_seconds=LOCK_SECONDS)
        try:
            yield
        finally:
            if self._lexical is not None and self._lexical.is_merging:
                self._merging = self._lexical, lock
            else:
                lock.release()

    @contextmanager
    def writing(self) -> Iterator[LexicalIndex | None]:
        """Yield the generation that answers for a change of it, with other writers excluded.

        Raises:
            StoreError: the lock is not to be had; or as the block raises, and what is on disk answers.
        """
        with self.lock():
            lexical = self.refresh(is_writer=True)
            if lexical is None:
                yield None
                return
            with self._changing(lexical):
                yield lexical

    @property
    def is_merging(self) -> bool:
        """Whether a merge is under way since the last write of this one."""
        return self._merging is not None

    def finish_merge(self) -> None:
        """Wait for the merge that the last write left under way, and let others write.

        Raises:
            StoreError: it is not done, and what is on disk answers.
        """
        if self._merging is None:
            return
        lexical, lock = self._merging
        try:
            with self._changing(lexical):
                lexical.finish_merge()
        finally:
            self._merging = None
            lock.release()

    @contextmanager
    def _changing(self, lexical: LexicalIndex) -> Iterator[None]:
        try:
            yield
        except IndexDamagedError:
            self._lexical, self._is_unsettled = None, True
            raise
        self._seen_seal = _stamp(lexical.seal_path)

    def give_up(self, error: IndexDamagedError) -> None:
        """Let nothing answer until ``current`` names another generation."""
        self._lexical, self.damage = None, str(error)

    @contextmanager
    def replacing(self) -> Iterator[LexicalIndex]:
        """Yield a new generation aside; it is removed again unless it is published in the block.

        Raises:
            StoreError: it cannot be made.
        """
        directory = self._directory / f"g-{os.urandom(8).hex()}"
        try:
            directory.mkdir(mode=PRIVATE_DIRECTORY)
        except OSError as error:
            raise StoreError(f"cannot write {directory}: {describe(error)}") from error
        try:
            yield LexicalIndex(directory, create=True)
        finally:
            named = self._read_current()
            if named is None or named.generation != directory.name:
                shutil.rmtree(directory, ignore_errors=True)

    def publish(self, lexical: LexicalIndex) -> None:
        """Let a new generation answer, everywhere. The caller has the lock.

        Raises:
            StoreError: it cannot be named; the old one answers.
        """
        named = _Current(lexical.directory.name, self._fingerprint)
        replace_file(self._current, msgspec.json.encode(named))

    def sweep(self) -> None:
        """Remove the generations that do not answer, those of builders that died among them.

        Who reads one of them has its files open; who opens one finds the new name. The caller is
        the only builder.
        """
        named = self._read_current()
        for path in self._directory.glob("g-*"):
            if named is not None and path.name != named.generation:
                shutil.rmtree(path, ignore_errors=True)

    def _open(self, *, is_writer: bool) -> None:
        self._lexical, self._is_unsettled = None, False
        for _ in range(_TRIES):
            self._seen_current, self.damage = _stamp(self._current), ""
            named = self._read_current()
            if named is None or named.fingerprint != self._fingerprint:
                return
            directory = self._directory / named.generation
            self._seen_seal = _stamp(directory / "seal")
            try:
                self._lexical = LexicalIndex(directory)
            except IndexDamagedError as error:
                self.damage = str(error)
            else:
                return
            if not is_writer and self._is_being_written():
                self._is_unsettled, self.damage = True, ""
                return

    def _reload(self, lexical: LexicalIndex, *, is_writer: bool) -> None:
        failure: IndexDamagedError | None = None
        for _ in range(_TRIES):
            seal = _stamp(lexical.seal_path)
            try:
                lexical.reload()
            except IndexDamagedError as error:
                failure = error
            else:
                self._seen_seal = seal
                return
            if not is_writer and self._is_being_written():
                return  # what is open answers until that is done
        if failure is not None:
            self.give_up(failure)

    def _is_being_written(self) -> bool:
        """Tell whether a writer is between its commit and its seal, perhaps."""
        try:
            with exclusive(self._directory / "write.lock", timeout_seconds=0):
                return False
        except StoreBusyError:
            return True
        except StoreError:
            return False

    def _read_current(self) -> _Current | None:
        try:
            named = msgspec.json.decode(read_file(self._current, limit_bytes=_CURRENT_BYTES), type=_Current)
        except FileNotFoundError:
            return None
        except (StoreError, msgspec.MsgspecError) as error:
            self.damage = f"{self._current} cannot be read: {error}"
            return None
        return named if named.generation.startswith("g-") and "/" not in named.generation else None


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - twice for every question
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
