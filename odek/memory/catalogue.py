"""Which version of each text the index holds: so that only what changed is read again. Blocks.

A file of lines beside the index, to which each change is added, so that noting one text costs
the same among any number. It may lag behind the index, never run ahead of it: what it does
not know is indexed once more, which does no harm.

Its last line may hold marks: what the texts of a kind were as a whole when the index was last found
to be equal to them. Whoever finds them so again need not look at the lines before it; and who knows
what changed since compares that alone. No texts have the mark of earlier ones.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from odek.errors import StoreError
from odek.storage.files import read_end, read_rest, replace_file
from odek.storage.lines import append_lines

__all__ = ["Catalogue"]

FILE = "texts.jsonl"

# A text takes some 150 bytes; this is for more of them than anybody has.
_LIMIT_BYTES = 256 * 1024 * 1024

# Two marks take some 250 bytes.
_LAST_LINE_BYTES = 4_096

# Lines beyond twice the number of texts, before the file is written anew: a few hours of changes.
_SPARE_LINES = 500

_Stamp: TypeAlias = tuple[int, int, int]
_Line: TypeAlias = tuple[str, str | None] | dict[str, str]

_LINE: msgspec.json.Decoder[_Line] = msgspec.json.Decoder(_Line)


class Catalogue:
    """The versions of the indexed texts by id, and the marks of their kinds. Its writer excludes others."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._stamp: _Stamp | None = None
        self._versions: dict[str, str] = {}
        self._marks: dict[str, str] = {}
        self._lines = 0
        self._marked: tuple[_Stamp | None, dict[str, str]] = (None, {})

    @property
    def is_outdated(self) -> bool:
        """Whether the file is not as it was when it was read or written last."""
        return self._look() != self._stamp

    def marks(self) -> Mapping[str, str]:
        """Return the marks as they are on disk, by kind; reads the last line alone, and that once."""
        stamp = self._look()
        if stamp == self._stamp:
            return self._marks
        if stamp != self._marked[0]:
            self._marked = (stamp, self._last_line())
        return self._marked[1]

    def read(self) -> Mapping[str, str]:
        """Return the versions as they are on disk; none when the file is gone or damaged."""
        stamp = self._look()
        if stamp is None:
            self._forget()
        elif stamp != self._stamp:
            before = self._stamp
            if before is None or before[0] != stamp[0] or before[2] > stamp[2]:
                self._forget()
            self._read_rest(self._stamp[2] if self._stamp is not None else 0, stamp)
        return self._versions

    def note(self, changes: Mapping[str, str | None]) -> None:
        """Write down new versions of texts; None for what is no longer indexed.

        Raises:
            StoreError: they are not written down.
        """
        self.read()
        marks = self._marks
        self._add([*changes.items(), *([marks] if marks else [])])
        if self._lines > 2 * len(self._versions) + _SPARE_LINES:
            self.replace(self._versions, marks)

    def settle(self, marks: Mapping[str, str]) -> None:
        """Write down what the texts of some kinds are as a whole, now that the index is equal to them.

        Raises:
            StoreError: it is not written down.
        """
        self.read()
        merged = {**self._marks, **marks}
        if merged != self._marks:
            self._add([merged])

    def replace(self, versions: Mapping[str, str], marks: Mapping[str, str] | None = None) -> None:
        """Write down ``versions`` in the place of all others.

        Raises:
            StoreError: the old ones stay.
        """
        lines: list[_Line] = [*versions.items(), *([dict(marks)] if marks else [])]
        # Not durable: lost in a power cut, it makes for reading again and nothing worse.
        replace_file(self._path, _encoded(lines), durable=False)
        self._forget()
        self._stamp = self._look()
        self._take(lines)

    def _add(self, lines: list[_Line]) -> None:
        append_lines(self._path, _encoded(lines), durable=False)
        self._stamp = self._look()
        self._take(lines)

    def _take(self, lines: list[_Line]) -> None:
        for line in lines:
            if isinstance(line, dict):
                self._marks = line
                continue
            name, version = line
            if version is None:
                self._versions.pop(name, None)
            else:
                self._versions[name] = version
        self._lines += len(lines)
        if lines and not isinstance(lines[-1], dict):
            self._marks = {}  # something was written since

    def _read_rest(self, start: int, stamp: _Stamp) -> None:
        """Take in what was added behind ``start``; the file had this ``stamp`` before."""
        try:
            data = read_rest(self._path, start_bytes=start, limit_bytes=_LIMIT_BYTES)
        except (FileNotFoundError, StoreError):
            self._forget()
            return
        whole = data[: data.rfind(b"\n") + 1]  # somebody may be writing the rest
        self._take(_decoded(whole))
        self._stamp = (stamp[0], stamp[1], start + len(whole))

    def _last_line(self) -> dict[str, str]:
        try:
            data = read_end(self._path, size_bytes=_LAST_LINE_BYTES)
        except (FileNotFoundError, StoreError):
            return {}
        lines = _decoded(data.rstrip(b"\n").rpartition(b"\n")[2]) if data.endswith(b"\n") else []
        return lines[-1] if lines and isinstance(lines[-1], dict) else {}

    def _forget(self) -> None:
        self._stamp, self._versions, self._marks, self._lines = None, {}, {}, 0

    def _look(self) -> _Stamp | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size


def _encoded(lines: list[_Line]) -> bytes:
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def _decoded(data: bytes) -> list[_Line]:
    """Return the lines that can be read: what a lost one noted is indexed once more."""
    try:
        return _LINE.decode_lines(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return [line for each in data.splitlines() if (line := _decoded_line(each)) is not None]


def _decoded_line(data: bytes) -> _Line | None:
    try:
        return _LINE.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
