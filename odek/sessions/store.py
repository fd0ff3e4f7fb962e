"""The directory of sessions: creating, opening, and what a person does with them."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.sessions import heads
from odek.sessions.document import Document, Header, now
from odek.sessions.masking import Mask
from odek.sessions.names import lock_path, new_id, session_path
from odek.sessions.session import Session
from odek.sessions.writer import SessionWriter
from odek.storage.files import ensure_directory, read_file
from odek.storage.locks import HeldLock, hold

__all__ = ["SessionStore"]

READ_LIMIT_BYTES = 64 * 1024 * 1024
"""Twice what is written: a session that was edited by hand may have grown."""


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
        header = Header(id=session, created_at=now(), model=model, task=task, sandbox=sandbox)
        writer = SessionWriter(session_path(self._directory, session), self._own(session), self._mask)
        return Session(header, (), writer, buffer_lines=self._buffer_lines)

    def open(self, reference: str = "") -> Session:
        """Open the session named by its id or a beginning of it, or "" for the newest one.

        Raises:
            StoreBusyError: another process has it open; says which.
            StoreError: there is no such session, more than one, or it cannot be read.
        """
        session = heads.resolve(self._directory, reference or None)
        path = session_path(self._directory, session)
        lock = self._own(session)
        try:
            document = msgspec.json.decode(read_file(path, limit_bytes=READ_LIMIT_BYTES), type=Document)
        except FileNotFoundError:
            lock.release()
            raise StoreError(f"there is no session {session} in {self._directory}") from None
        except BaseException:
            lock.release()
            raise
        header = Header(
            **{name: getattr(document, name) for name in Header.__struct_fields__} | {"id": session}
        )
        writer = SessionWriter(path, lock, self._mask)
        return Session(header, document.messages, writer, buffer_lines=self._buffer_lines)

    def _own(self, session: str) -> HeldLock:
        path = lock_path(self._directory, session)
        ensure_directory(path.parent)
        return hold(path, timeout_seconds=0)
