"""The directory of sessions: creating, opening, and what a person does with them."""

import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from odek.errors import StoreBusyError, StoreError
from odek.sessions.document import Header
from odek.sessions.masking import Mask
from odek.sessions.names import LOCKS, audit_path, lock_path, new_id, session_path
from odek.sessions.session import Session
from odek.sessions.turns import turns_of
from odek.sessions.writer import SessionWriter
from odek.storage.files import ensure_directory, read_file, remove_file
from odek.storage.listing import files_in
from odek.storage.locks import HeldLock, hold
from odek.timestamps import current_timestamp

if TYPE_CHECKING:
    from odek.sessions.heads import Head
    from odek.sessions.reading import Reading

__all__ = ["READ_LIMIT_BYTES", "Deleted", "NotDeleted", "SessionStore", "Trimmed"]

READ_LIMIT_BYTES = 64 * 1024 * 1024
"""Twice what is written: a session that was edited by hand may have grown."""

OWN_SECONDS = 0.05
"""Who looks whether a session is open holds its lock for some microseconds: no reason to say that it is."""

_DAY_SECONDS = 86_400


class Deleted(msgspec.Struct, frozen=True):
    """A session that is gone; ``files`` counts what was removed, copies of damaged states included."""

    id: str
    task: str
    files: int


class NotDeleted(msgspec.Struct, frozen=True):
    """A session that should be gone and is not; ``is_busy`` if that is because a process has it open."""

    id: str
    reason: str
    is_busy: bool


class Trimmed(msgspec.Struct, frozen=True):
    """A session with fewer turns."""

    id: str
    removed: int
    kept: int


def _unmasked(text: str) -> str:
    return text


class SessionStore:
    """The sessions below one directory. Its methods block for a few file operations."""

    def __init__(self, directory: Path, *, mask: Mask = _unmasked, buffer_lines: int = 20) -> None:
        """Use ``directory``, created when first needed. ``mask`` hides secrets in what is written."""
        self._directory = directory
        self._mask = mask
        self._buffer_lines = buffer_lines

    def create(self, model: str, task: str, *, sandbox: bool = False) -> Session:
        """Begin a session; its first save creates the file.

        Raises:
            StoreError: the directory cannot be used.
        """
        session = new_id(datetime.now(UTC).strftime("%Y%m%d"))
        header = Header(id=session, created_at=current_timestamp(), model=model, task=task, sandbox=sandbox)
        writer = SessionWriter(session_path(self._directory, session), self._own(session), self._mask)
        return Session(header, (), writer, buffer_lines=self._buffer_lines)

    def open(self, reference: str = "") -> Session:
        """Open the session named by its id or a beginning of it, or "" for the newest one.

        Raises:
            StoreBusyError: another process has it open; says which.
            StoreCorruptError: nothing of it can be read; it is left as it is.
            StoreError: there is no such session, or more than one.
        """
        reading, writer = self._open(self._resolve(reference))
        return Session(
            reading.header,
            reading.messages,
            writer,
            repairs=reading.notices,
            buffer_lines=self._buffer_lines,
        )

    def read(self, reference: str = "") -> "Reading":
        """Return the session named, as `open` would find it, without owning it.

        Raises:
            StoreError: as `open`, but another process may have it open.
        """
        return self._read(self._resolve(reference))[0]

    def head(self, reference: str) -> "Head":
        """Return what the beginning of a session's file says.

        Raises:
            StoreError: there is no such session, or more than one.
        """
        from odek.sessions.heads import read_head

        session = self._resolve(reference)
        head = read_head(self._directory, session)
        if head is None:
            raise self._missing(session)
        return head

    def delete(self, reference: str) -> Deleted:
        """Delete a session with all copies of it, and its record.

        Raises:
            StoreBusyError: a process has it open; says which.
            StoreError: there is no such session, or more than one, or it cannot be removed.
        """
        session = self._resolve(reference)
        gone = self._delete(session)
        if gone is None:
            raise self._missing(session)
        return gone

    def trim(self, reference: str, turns: int) -> Trimmed:
        """Keep the system message and the newest ``turns`` turns of a session.

        Raises:
            StoreBusyError: a process has it open; says which.
            StoreError: as `open`, or it cannot be written.
        """
        reading, writer = self._open(self._resolve(reference))
        try:
            found = turns_of(reading.messages)
            gone = found[: max(len(found) - turns, 0)]
            kept = len(found) - len(gone)
            if gone:
                writer.leave_out(reading.messages, gone)
                header = msgspec.structs.replace(reading.header, updated_at=current_timestamp(), turns=kept)
                writer.write(header, reading.messages)
        finally:
            writer.close()
        return Trimmed(reading.header.id, len(gone), kept)

    def delete_older(self, days: int) -> Iterator[Deleted | NotDeleted]:
        """Delete the sessions unchanged for ``days``, and yield each when it is dealt with.

        One that cannot be removed keeps no other.
        """
        from odek.sessions.heads import kept_originals
        from odek.sessions.order import by_file_time

        oldest_ns = time.time_ns() - days * _DAY_SECONDS * 10**9
        kept = kept_originals(self._directory)
        for session, changed_ns in by_file_time(self._directory):
            if changed_ns < oldest_ns:
                try:
                    gone = self._delete(session, kept.get(session, ()), changed_ns=changed_ns)
                except StoreError as error:
                    yield NotDeleted(session, str(error), isinstance(error, StoreBusyError))
                else:
                    if gone is not None:
                        yield gone

    def stale_locks(self, *, remove: bool) -> Iterator[Path]:
        """Yield the locks that belong to no session and no process, and ``remove`` them.

        They are left by processes that were killed before their first save.

        Raises:
            StoreError: their directory cannot be read, or one of them not removed.
        """
        for path in files_in(self._directory / LOCKS, ".lock"):
            if session_path(self._directory, path.stem).exists():
                continue
            try:
                lock = hold(path, timeout_seconds=0)
            except StoreBusyError:
                continue
            # Looked at again under the lock: its owner may have saved in between.
            stale = not session_path(self._directory, path.stem).exists()
            lock.release(remove=remove and stale)
            if stale:
                yield path

    def _delete(
        self, session: str, kept: Iterable[str] | None = None, *, changed_ns: int | None = None
    ) -> Deleted | None:
        """Delete a session; None when it is gone already, or has changed since ``changed_ns``.

        ``kept`` names the copies of its damaged states, where somebody has looked for them.

        Raises:
            StoreBusyError: a process has it open; says which.
            StoreError: it cannot be removed.
        """
        from odek.sessions.heads import kept_originals, read_head
        from odek.trust.audit import AuditTrail

        lock = self._own(session)
        path = session_path(self._directory, session)
        removed = False
        try:
            head = read_head(self._directory, session)
            if head is None:  # another process was faster
                removed = True
                return None
            # Looked at again under the lock: its owner may have gone on with it and ended meanwhile.
            if changed_ns is not None and path.lstat().st_mtime_ns != changed_ns:
                return None
            if kept is None:
                kept = kept_originals(self._directory).get(session, ())
            # The session itself last: stopped half-way, it can be named and deleted again.
            AuditTrail(audit_path(self._directory, session)).remove()
            files = sum(map(remove_file, [*(path.with_name(name) for name in kept), path]))
            removed = True
        finally:
            lock.release(remove=removed)
        return Deleted(session, head.task, files)

    def _missing(self, session: str) -> StoreError:
        return StoreError(f"there is no session {session} in {self._directory}")

    def _resolve(self, reference: str) -> str:
        """Return the id that ``reference`` means."""
        from odek.sessions.order import resolve  # a new session does without

        return resolve(self._directory, reference)

    def _open(self, session: str) -> "tuple[Reading, SessionWriter]":
        from odek.sessions.reading import unknown_fields  # a new session does without

        lock = self._own(session)
        try:
            reading, data = self._read(session)
            unknown = unknown_fields(data)
        except BaseException:
            lock.release()
            raise
        path, damaged = session_path(self._directory, session), data if reading.damaged else None
        return reading, SessionWriter(path, lock, self._mask, damaged=damaged, unknown=unknown)

    def _read(self, session: str) -> "tuple[Reading, bytes]":
        path = session_path(self._directory, session)
        try:
            data = read_file(path, limit_bytes=READ_LIMIT_BYTES)
        except FileNotFoundError:
            raise self._missing(session) from None
        from odek.sessions.reading import read_session  # a new session does without

        return read_session(data, session, path), data

    def _own(self, session: str) -> HeldLock:
        path = lock_path(self._directory, session)
        ensure_directory(path.parent)
        try:
            return hold(path, timeout_seconds=OWN_SECONDS)
        except StoreBusyError as error:
            holder = "another process" if error.pid is None else f"another odek (pid {error.pid})"
            raise StoreBusyError(f"session {session} is open in {holder}", pid=error.pid) from None
