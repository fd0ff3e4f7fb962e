"""The way of one session to its file. Blocking: the session calls it in a thread."""

import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.messages import CONTEXT_NAME, Message, SystemMessage, ToolMessage, UserMessage
from odek.sessions.document import Header, assemble
from odek.sessions.masking import Mask, masked
from odek.storage.files import replace_file
from odek.storage.locks import HeldLock

__all__ = ["FILE_LIMIT_BYTES", "SessionWriter"]

FILE_LIMIT_BYTES = 32 * 1024 * 1024
"""What an installation of the system before this one reads of a session at most."""

FENCE_MARK = b"untrusted_content"
TRIMMED_HISTORY = "trimmed_history"


class SessionWriter:
    """Writes one session's file, and holds its lock until the last write is done.

    A message is masked and encoded once; later writes join the bytes. When the file would
    become too large, its oldest turns are left out, and stay in memory.
    """

    def __init__(
        self,
        path: Path,
        lock: HeldLock,
        mask: Mask,
        *,
        damaged: bytes | None = None,
        limit_bytes: int = FILE_LIMIT_BYTES,
    ) -> None:
        """Own ``lock``. ``damaged`` is what the file holds now, to be kept aside before it is replaced."""
        self._path = path
        self._lock = lock
        self._mask = mask
        self._damaged = damaged
        self._limit_bytes = limit_bytes
        self._encoded: list[bytes] = []
        self._left_out: set[int] = set()
        self._guard = threading.Lock()
        self._closing = False

    def write(self, header: Header, messages: Sequence[Message]) -> None:
        """Put the conversation on disk; ``messages`` begins with those of the write before.

        Raises:
            StoreError: the file is as it was. The next write has everything again.
        """
        try:
            with self._guard:
                if self._closing:
                    raise StoreError(f"{self._path}: the session is closed")
                self._write(header, messages)
        finally:
            self._release_when_closing()

    def close(self) -> None:
        """Give the lock back, now or when the write that is under way is done; it never waits."""
        self._closing = True
        self._release_when_closing()

    def _release_when_closing(self) -> None:
        if self._closing and self._guard.acquire(blocking=False):
            try:
                self._lock.release()
            finally:
                self._guard.release()

    def _write(self, header: Header, messages: Sequence[Message]) -> None:
        for message in messages[len(self._encoded) :]:
            self._encoded.append(msgspec.json.encode(masked(message, self._mask)))
        self._trim(messages)
        kept = [data for index, data in enumerate(self._encoded) if index not in self._left_out]
        header = self._mark(header)
        data = assemble(header, kept)
        if self._damaged is not None:
            self._keep_aside(self._damaged)
            self._damaged = None
        replace_file(self._path, data)

    def _mark(self, header: Header) -> Header:
        """Mask the header, and keep the taint of what was left out."""
        sources = header.taint_sources
        gone = any(FENCE_MARK in self._encoded[index] for index in self._left_out)
        if gone and TRIMMED_HISTORY not in sources:
            sources = (*sources, TRIMMED_HISTORY)
        return msgspec.structs.replace(
            header,
            task=self._mask(header.task),
            buffer=tuple(map(self._mask, header.buffer)),
            taint_sources=sources,
            episode_untrusted=header.episode_untrusted or gone,
            untrusted_ingested=header.untrusted_ingested or gone,
        )

    def _keep_aside(self, original: bytes) -> None:
        """Write the damaged file under the first free name beside it."""
        number = 1
        while (aside := self._path.with_name(f"{self._path.name}.damaged-{number}")).exists():
            number += 1
        replace_file(aside, original)

    def _trim(self, messages: Sequence[Message]) -> None:
        """Leave out the oldest groups until the file is small enough."""
        size = sum(len(data) + 2 for index, data in enumerate(self._encoded) if index not in self._left_out)
        room = self._limit_bytes - HEADER_RESERVE_BYTES
        if size <= room:
            return
        for group in removable_groups(messages):
            if size <= room:
                return
            for index in group:
                if index not in self._left_out:
                    size -= len(self._encoded[index]) + 2
                    self._left_out.add(index)
        if size > room:
            raise StoreError(
                f"cannot write {self._path}: the newest message alone is beyond the "
                f"{self._limit_bytes:,} bytes that a session may have"
            )


HEADER_RESERVE_BYTES = 64 * 1024
"""Room for the fields beside the messages: a clipped task, the buffer, a few names."""


def removable_groups(messages: Sequence[Message]) -> list[list[int]]:
    """Return groups of indices in the order in which they may be left out.

    First the whole turns but the newest, oldest first; then, within the newest, the answers
    that called tools, each with its results. The system message, the newest question and
    the newest answer are in none.
    """
    turns = _turns(messages)
    if not turns:
        return []
    groups: list[list[int]] = []
    for index in turns[-1]:
        message = messages[index]
        if isinstance(message, UserMessage | SystemMessage):
            continue
        if isinstance(message, ToolMessage) and groups:
            groups[-1].append(index)
        else:
            groups.append([index])
    return [*turns[:-1], *groups[:-1]]


def _turns(messages: Sequence[Message]) -> list[list[int]]:
    """Split the indices behind the system message before each question and the context in front of it."""
    turns: list[list[int]] = []
    asked = True
    for index, message in enumerate(messages):
        is_context = isinstance(message, SystemMessage) and message.name == CONTEXT_NAME
        if index == 0 and isinstance(message, SystemMessage) and not is_context:
            continue
        opens = is_context or isinstance(message, UserMessage)
        if not turns or (opens and asked):
            turns.append([])
        # Context and the question behind it are of one turn; anything else closes the question.
        asked = not is_context
        turns[-1].append(index)
    return turns
