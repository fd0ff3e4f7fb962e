"""How often something was done without, for all processes of a home: what ``stats`` tells of failures."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.storage.files import ensure_directory, read_file, replace_file
from odek.storage.locks import exclusive
from odek.timestamps import timestamp

__all__ = ["Counted", "Tally"]

LOCK_TIMEOUT_SECONDS = 2.0
"""The lock is held for one small write."""

_FILE = "counters.json"
_FILE_LIMIT_BYTES = 64 * 1024


class Counted(msgspec.Struct, frozen=True):
    """How often it happened, and when last, RFC 3339 in UTC."""

    count: int
    last: str


class Tally:
    """Adds what a process counts to a file that all processes share. Blocking.

    Args:
        directory: The atoms'.
        counters: What this process counts; it is not changed here.
        now: Tells the time.
    """

    def __init__(self, directory: Path, counters: Counter[str], now: Callable[[], datetime]) -> None:
        self._directory = directory
        self._counters = counters
        self._written: Counter[str] = Counter()
        self._now = now

    @property
    def is_behind(self) -> bool:
        """Whether something was counted since the last ``save``."""
        return self._counters != self._written

    def read(self) -> dict[str, Counted]:
        """Return what all processes have counted; a file that cannot be read counts as empty."""
        try:
            data = read_file(self._directory / _FILE, limit_bytes=_FILE_LIMIT_BYTES)
            return msgspec.json.decode(data, type=dict[str, Counted])
        except (FileNotFoundError, StoreError, msgspec.MsgspecError):
            return {}

    def save(self) -> None:
        """Add what was counted since the last time.

        Raises:
            StoreError: it is not added; the next call tries again.
        """
        counters = Counter(self._counters)
        new = counters - self._written
        if not new:
            return
        with self._locked():
            known = self.read()
            last = timestamp(self._now())
            for name, count in new.items():
                before = known[name].count if name in known else 0
                known[name] = Counted(before + count, last)
            # Not durable: what a power cut takes back is a number of failures.
            replace_file(self._directory / _FILE, msgspec.json.encode(known), durable=False)
        self._written = counters

    def _locked(self) -> AbstractContextManager[None]:
        ensure_directory(self._directory)
        return exclusive(self._directory / ".counters.lock", timeout_seconds=LOCK_TIMEOUT_SECONDS)
