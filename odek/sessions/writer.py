"""The way of one session to its file. Blocking: the session calls it in a thread."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from odek.errors import StoreError
from odek.messages import Message
from odek.sessions.document import TASK_LIMIT_BYTES, Header, assemble
from odek.sessions.masking import Mask, masked, masked_value
from odek.sessions.turns import removable_groups
from odek.storage.files import ensure_directory, replace_file
from odek.storage.locks import HeldLock, hold
from odek.text import clip_bytes, without_surrogates

__all__ = ["FILE_LIMIT_BYTES", "SessionWriter"]

FILE_LIMIT_BYTES = 32 * 1024 * 1024
"""What an installation of the system before this one reads of a session at most."""

HEADER_RESERVE_BYTES = 64 * 1024
"""Room for the fields beside the messages: a clipped task, the buffer, a few names."""

TRIMMED_HISTORY = "trimmed_history"
"""The taint of a session from which a message with outside content was left out."""

_FENCE_MARK = b"untrusted_content"


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
        unknown: Mapping[str, Any] | None = None,
        limit_bytes: int = FILE_LIMIT_BYTES,
    ) -> None:
        """Own ``lock``.

        ``damaged`` is what the file holds now, to be kept aside before it is replaced, ``unknown``
        the fields of it that are written again as they are.
        """
        self._path = path
        self._lock = lock
        self._mask = mask
        self._damaged = damaged
        self._unknown = _writable(unknown or {}, mask)
        self._limit_bytes = limit_bytes - len(msgspec.json.encode(self._unknown))
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

    def leave_out(self, messages: Sequence[Message], groups: Sequence[range]) -> None:
        """Leave ``groups`` of indices of ``messages`` out of this and every later write."""
        self._encode(messages)
        self._left_out.update(index for group in groups for index in group)

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
        self._encode(messages)
        self._trim(messages)
        kept = [data for index, data in enumerate(self._encoded) if index not in self._left_out]
        data = assemble(self._mark(header), kept, self._unknown)
        self._keep_lock()
        if self._damaged is not None:
            self._keep_aside(self._damaged)
            self._damaged = None
        replace_file(self._path, data)

    def _encode(self, messages: Sequence[Message]) -> None:
        for message in messages[len(self._encoded) :]:
            self._encoded.append(msgspec.json.encode(masked(message, self._mask)))

    def _mark(self, header: Header) -> Header:
        """Mask the header, and keep the taint of what was left out."""
        sources = header.taint_sources
        gone = any(_FENCE_MARK in self._encoded[index] for index in self._left_out)
        if gone and TRIMMED_HISTORY not in sources:
            sources = (*sources, TRIMMED_HISTORY)
        return msgspec.structs.replace(
            header,
            task=clip_bytes(self._mask(header.task), TASK_LIMIT_BYTES),  # half a secret is not recognised
            buffer=tuple(map(self._mask, header.buffer)),
            taint_sources=sources,
            episode_untrusted=header.episode_untrusted or gone,
            untrusted_ingested=header.untrusted_ingested or gone,
        )

    def _keep_lock(self) -> None:
        """Take the lock again if somebody removed its file, and with it its effect."""
        if not self._lock.is_intact():
            ensure_directory(self._lock.path.parent)
            self._lock.release()
            self._lock = hold(self._lock.path, timeout_seconds=0)

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


def _writable(unknown: Mapping[str, Any], mask: Mask) -> dict[str, Any]:
    """Return the fields that can be written again, secrets hidden; what is nested without end cannot."""
    fields: dict[str, Any] = {}
    for name, value in unknown.items():
        with suppress(ValueError, OverflowError, RecursionError):
            field = masked_value({name: value}, lambda text: mask(without_surrogates(text)))
            msgspec.json.encode(field)
            fields |= field
    return fields
