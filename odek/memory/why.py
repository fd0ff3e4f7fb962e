"""Why the model was given what it was given: a record of each turn, for a person who asks. Blocking.

One small file a session, below the memory's directory. Losing it loses explanations alone.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.memory.places import is_episode_id, real_directory
from odek.memory.recall import Considered
from odek.storage.files import ensure_directory, read_file, replace_file
from odek.storage.lines import append_lines
from odek.storage.listing import files_in

__all__ = ["DIRECTORY", "WhyLog", "WhyRecord"]

DIRECTORY = "why"

LIMIT_BYTES = 256 * 1024
"""Of a session's file; beyond it the older half goes. Some hundred turns."""

MAX_FILES = 200
"""Sessions that can be asked about; the oldest go. No measurement behind it."""


class WhyRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn: the question as it was compared, and what was considered.

    ``note`` says in a line why there was no comparison, "" if there was one.
    """

    time: str
    turn: int
    query: str
    considered: tuple[Considered, ...] = ()
    note: str = ""


class WhyLog:
    """The records below the memory's ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._memory = directory

    def append(self, session: str, record: WhyRecord) -> None:
        """Add the record of a turn.

        Raises:
            StoreError: it cannot be written.
        """
        path = self._path(session)
        ensure_directory(path.parent)
        line = msgspec.json.encode(record) + b"\n"
        is_new = not path.exists()
        size = append_lines(path, line, durable=False, alone=False)
        if size > LIMIT_BYTES:
            lines = read_file(path, limit_bytes=4 * LIMIT_BYTES).splitlines(keepends=True)
            replace_file(path, b"".join(lines[len(lines) // 2 :]), durable=False)
        if is_new:
            self._make_room()

    def read(self, session: str) -> tuple[WhyRecord, ...]:
        """Return the records of a session, oldest first; lines that are none are left out.

        Raises:
            StoreError: there is no record of it, or it cannot be read.
        """
        path = self._path(session)
        try:
            data = read_file(path, limit_bytes=4 * LIMIT_BYTES)
        except FileNotFoundError:
            raise StoreError(f"memory: nothing is on record about session {session}") from None
        records: list[WhyRecord] = []
        for line in data.splitlines():
            with suppress(msgspec.MsgspecError, UnicodeError):
                records.append(msgspec.json.decode(line, type=WhyRecord))
        return tuple(records)

    def forget(self, considered_id: str) -> None:
        """Take out of every record what was considered under an id; lines that are no record go with it.

        Raises:
            StoreError: not all of them could be changed.
        """
        for path, _ in self._files():
            data = read_file(path, limit_bytes=4 * LIMIT_BYTES)
            if considered_id.encode() not in data:
                continue
            kept: list[bytes] = []
            for line in data.splitlines():
                with suppress(msgspec.MsgspecError, UnicodeError):
                    record = msgspec.json.decode(line, type=WhyRecord)
                    rest = tuple(each for each in record.considered if each.id != considered_id)
                    kept.append(msgspec.json.encode(msgspec.structs.replace(record, considered=rest)) + b"\n")
            replace_file(path, b"".join(kept))

    def sessions(self) -> tuple[str, ...]:
        """Return the ids of the sessions on record, newest first; one that a full disk left empty is none.

        Raises:
            StoreError: their directory cannot be read.
        """
        return tuple(path.stem for path, size_bytes in reversed(self._files()) if size_bytes)

    def _files(self) -> list[tuple[Path, int]]:
        """Return the files with their sizes in bytes, oldest first.

        Raises:
            StoreError: their directory cannot be read.
        """
        found: list[tuple[int, Path, int]] = []
        for path in files_in(real_directory(self._memory) / DIRECTORY, ".jsonl"):
            with suppress(OSError):
                status = path.lstat()
                found.append((status.st_mtime_ns, path, status.st_size))
        return [(path, size_bytes) for _, path, size_bytes in sorted(found)]

    def _make_room(self) -> None:
        for path, _ in self._files()[:-MAX_FILES]:
            with suppress(OSError):
                path.unlink()

    def _path(self, session: str) -> Path:
        if not is_episode_id(session):
            raise StoreError(f"memory: {session[:80]!a} is no session id")
        return real_directory(self._memory) / DIRECTORY / f"{session}.jsonl"
