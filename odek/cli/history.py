"""What was typed into the repl, kept for the next time."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from odek.errors import StoreError
from odek.storage.files import ensure_directory, read_file, replace_file
from odek.storage.lines import append_lines

__all__ = ["ReplHistory"]

_MOST_ENTRIES: Final = 1000  # as shells keep by default
_LARGEST_BYTES: Final = 1 << 20  # beyond it the file is cut back when it is read
_UNREADABLE_BYTES: Final = 64 << 20  # not written by this program
_LONGEST_ENTRY_BYTES: Final = 16 << 10  # a pasted file is no history


class ReplHistory:
    """Entries in the file ``path``, one JSON string a line, readable by its owner only.

    Any number of processes may append. ``mask`` takes secrets out before an entry is written.
    """

    def __init__(self, path: Path, mask: Callable[[str], str]) -> None:
        self._path = path
        self._mask = mask

    def load(self) -> list[str]:
        """Return the newest entries, oldest first; a missing or unreadable file has none. Blocking."""
        try:
            data = read_file(self._path, limit_bytes=_UNREADABLE_BYTES)
        except (OSError, StoreError):
            return []
        entries = [entry for line in data.splitlines() if (entry := _decode(line))][-_MOST_ENTRIES:]
        if len(data) > _LARGEST_BYTES:
            with suppress(StoreError):  # it is tried again next time
                self._cut_back(entries)
        return entries

    def append(self, entry: str) -> None:
        """Add ``entry``. Blocking, for the length of one small write.

        Raises:
            StoreError: the file cannot be written.
        """
        line = msgspec.json.encode(self._mask(entry.encode("utf-8", "replace").decode())) + b"\n"
        if len(line) > _LONGEST_ENTRY_BYTES:
            return
        ensure_directory(self._path.parent)
        append_lines(self._path, line, durable=False, alone=False)

    def _cut_back(self, entries: list[str]) -> None:
        """Keep the newest half megabyte; an entry that another process adds meanwhile may be lost."""
        kept: list[bytes] = []
        size = 0
        for entry in reversed(entries):
            line = msgspec.json.encode(entry) + b"\n"
            size += len(line)
            if size > _LARGEST_BYTES // 2:
                break
            kept.append(line)
        replace_file(self._path, b"".join(reversed(kept)), durable=False)


def _decode(line: bytes) -> str:
    try:
        return msgspec.json.decode(line, type=str)
    except msgspec.DecodeError:
        return ""  # a torn or foreign line is not worth a word
