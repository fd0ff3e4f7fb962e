"""The sessions as the index of the memory has them: what was said and done in them. Blocks."""

import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from odek.errors import StoreBusyError, StoreError
from odek.index.document import Document, Kind
from odek.memory.extract import conversation, head_and_tail
from odek.memory.index_texts import Look, Versions, document_id, subject_of
from odek.memory.journal import digest
from odek.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage, is_context
from odek.sessions.document import Header
from odek.sessions.names import is_id, lock_path, session_id, session_path
from odek.sessions.reading import Reading, read_session
from odek.sessions.store import READ_LIMIT_BYTES
from odek.storage.files import describe, read_file
from odek.storage.locks import hold
from odek.text import clip_middle
from odek.timestamps import moment_of

__all__ = ["SessionTexts", "changed_at", "said_and_done"]

SAID_BYTES = 4 * 1024
"""Of a message of the person or the agent; of a longer one the head and the tail."""

RESULT_BYTES = 1024
"""Of what a tool returned, and of what it was called with: enough to know it by. No measurement."""

SESSION_BYTES = 128 * 1024
SESSION_HEAD_BYTES = 32 * 1024
"""Of a session, and of that its beginning; the rest is its end. About a hundred turns."""


class SessionTexts:
    """The sessions below ``directory``: each a text by itself, and what was said in it for its episode."""

    kind: Kind = "session"

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def mark(self, look: Look) -> str:
        """Return what changes with any of the sessions."""
        return digest(msgspec.json.encode(look.sessions))

    def changed_since(self, mark: str, look: Look) -> None:
        """Return None: all are compared, since nothing lists them but their directory."""

    def versions(self, known: Mapping[str, str], look: Look, only: Collection[str] | None = None) -> Versions:
        """Return the versions, newest first. One that somebody goes on with is taken up when it rests."""
        found: dict[str, str] = {}
        is_final = True
        for session, stamp in (look.sessions if only is None else self.stamps(only)).items():
            name = document_id(self.kind, session)
            before = known.get(name)
            if stamp == before or not self.is_open(session):
                found[name] = stamp
                continue
            is_final = False
            if before is not None:
                found[name] = before
        return Versions(found, is_final)

    def read(self, document_id: str) -> Document | None:
        """Return what was said and done in a session; None when it cannot be read."""
        reading = self.reading(subject_of(document_id))
        if reading is None:
            return None
        lines = [line for _, line in said_and_done(reading.messages)]
        text = "\n".join(head_and_tail(lines, SESSION_HEAD_BYTES, SESSION_BYTES))
        if not text:
            return None
        header = reading.header
        return Document(
            id=document_id,
            kind=self.kind,
            text=text,
            trusted=not header.episode_untrusted,
            created_at=changed_at(header),
        )

    def briefs(self) -> Sequence[Document]:
        """Return none: the episodes must be found first, and the sessions themselves can be searched."""
        return ()

    def stamps(self, only: Collection[str] | None = None) -> dict[str, str]:
        """Return for each session what changes with its file, newest first; or for ``only`` these.

        Raises:
            StoreError: the directory cannot be read.
        """
        if only is not None:
            looks = ((session, self._stamp_of(session)) for session in only)
            return {session: stamp for session, stamp in looks if stamp is not None}
        found: list[tuple[int, str, str]] = []
        try:
            with os.scandir(self._directory) as entries:
                for entry in entries:
                    session = session_id(entry.name)
                    if session is None:
                        continue
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # deleted meanwhile
                    if stat.S_ISREG(status.st_mode):
                        found.append((status.st_mtime_ns, session, _stamp(status)))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StoreError(f"cannot read {self._directory}: {describe(error)}") from error
        return {session: stamp for _, session, stamp in sorted(found, reverse=True)}

    def _stamp_of(self, session: str) -> str | None:
        if not is_id(session):
            return None
        path = session_path(self._directory, session)
        try:
            status = path.lstat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"cannot read {path}: {describe(error)}") from error
        return _stamp(status) if stat.S_ISREG(status.st_mode) else None

    def is_open(self, session_id: str) -> bool:
        """Tell whether a process goes on with a session now."""
        path = lock_path(self._directory, session_id)
        if not path.exists():
            return False
        try:
            hold(path, timeout_seconds=0).release()
        except StoreBusyError:
            return True
        except StoreError:
            return False  # whoever cannot lock cannot have it open
        return False

    def said(self, session_id: str) -> list[str]:
        """Return the messages of the person and the agent; none for a session that is not to be trusted."""
        reading = self.reading(session_id)
        if reading is None or reading.damaged:
            return []
        header = reading.header
        if header.episode_untrusted or header.taint_sources:
            return []
        return conversation(reading.messages)

    def reading(self, session_id: str) -> Reading | None:
        """Return a session as its file has it; None when it cannot be read."""
        path = session_path(self._directory, session_id)
        try:
            return read_session(read_file(path, limit_bytes=READ_LIMIT_BYTES), session_id, path)
        except (FileNotFoundError, StoreError):
            return None


def said_and_done(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    """Yield (turn, line) of messages and calls; not of the instructions, nor of what memory added.

    Turns count the person's messages from 1.
    """
    turn = 0
    for index, message in enumerate(messages):
        turn += isinstance(message, UserMessage)
        if is_context(message) or (index == 0 and isinstance(message, SystemMessage)):
            continue
        limit = RESULT_BYTES if isinstance(message, ToolMessage) else SAID_BYTES
        if message.content:
            yield max(turn, 1), _line(message.content, limit)
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                yield max(turn, 1), _line(f"{call.name} {call.arguments}", RESULT_BYTES)


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_ino:x}.{status.st_size:x}.{status.st_ctime_ns:x}"


def _line(text: str, limit_bytes: int) -> str:
    # Clipped first: what a tool returned may have megabytes.
    return " ".join(clip_middle(text, limit_bytes).split())


def changed_at(header: Header) -> int:
    """Return when a session changed last by its own word, in seconds since 1970; 0 if it does not say."""
    moment = moment_of(header.updated_at or header.created_at)
    return int(moment.timestamp()) if moment is not None else 0
