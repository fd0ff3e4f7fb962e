"""Which version of each text the index holds: so that only what changed is read again. Blocks.

It may lag behind the index, never run ahead of it: what it does not know is indexed once
more, which does no harm.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.storage.files import read_file, replace_file

__all__ = ["Catalogue"]

FILE = "texts.json"

# A text takes some 150 bytes; this is for more of them than anybody has.
_LIMIT_BYTES = 256 * 1024 * 1024

_Stamp = tuple[int, int, int]


class Catalogue:
    """The versions of the indexed texts by id, in a file beside the index. Its writer excludes others."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._stamp: _Stamp | None = None
        self._versions: dict[str, str] = {}

    @property
    def versions(self) -> Mapping[str, str]:
        """What was read or written last, without a look at the file."""
        return self._versions

    @property
    def is_outdated(self) -> bool:
        """Whether the file is not as it was when it was read or written last."""
        return self._look() != self._stamp

    def read(self) -> Mapping[str, str]:
        """Return the versions as they are on disk; none when the file is gone or damaged."""
        stamp = self._look()
        if stamp is None or stamp != self._stamp:
            self._stamp, self._versions = stamp, {}
            if stamp is not None:
                try:
                    data = read_file(self._path, limit_bytes=_LIMIT_BYTES)
                    self._versions = msgspec.json.decode(data, type=dict[str, str])
                except (FileNotFoundError, StoreError, msgspec.MsgspecError, UnicodeError):
                    self._versions = {}
        return self._versions

    def note(self, changes: Mapping[str, str | None]) -> None:
        """Write down new versions; None for what is no longer indexed.

        Raises:
            StoreError: they are not written down.
        """
        merged = {**self.read(), **changes}
        self.replace({name: version for name, version in merged.items() if version is not None})

    def replace(self, versions: Mapping[str, str]) -> None:
        """Write down ``versions`` in the place of all others.

        Raises:
            StoreError: the old ones stay.
        """
        # Not durable: lost in a power cut, it makes for reading again and nothing worse.
        replace_file(self._path, msgspec.json.encode(versions), durable=False)
        self._stamp, self._versions = self._look(), dict(versions)

    def _look(self) -> _Stamp | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size
