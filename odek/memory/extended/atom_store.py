"""The atoms on disk: a file each, so that one change touches one file. Blocks.

``chunks`` holds what is live, ``quarantine`` what waits for a person. Nothing else is
needed to have them: the index, and everything else that is derived, is made from these files.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from odek.errors import StoreError
from odek.memory.extended.atom import Atom, encode, is_atom_id, parse
from odek.memory.places import locate, real_directory
from odek.storage.files import (
    describe,
    ensure_directory,
    read_file,
    read_start,
    remove_file,
    replace_files,
)
from odek.storage.locks import exclusive

__all__ = ["CHUNKS", "EXTENDED", "INDEX", "LOCK_TIMEOUT_SECONDS", "QUARANTINE", "AtomStore", "Place"]

EXTENDED = "extended"
"""The directory of the atoms, below the memory's."""

Place: TypeAlias = Literal["chunks", "quarantine"]
CHUNKS: Place = "chunks"
QUARANTINE: Place = "quarantine"

INDEX = "index"
"""The directory of what finds them, made from the files."""

LOCK_TIMEOUT_SECONDS = 10.0
"""A change holds the lock for some milliseconds; whoever holds it this long is stuck."""

# An atom has 300 characters by default, 2,000 at most; a head has a few hundred bytes.
_FILE_LIMIT_BYTES = 64 * 1024

_SUFFIX = ".md"


class AtomStore:
    """The atoms below ``directory``, which is made with the first.

    ``poll`` is called while waiting for the lock and may raise to give up. Reading takes no lock.
    """

    def __init__(self, directory: Path, *, poll: Callable[[], None] | None = None) -> None:
        self.directory = directory
        self._poll = poll
        self._paths = {CHUNKS: str(directory / CHUNKS), QUARANTINE: str(directory / QUARANTINE)}

    @contextmanager
    def change(self) -> Iterator[None]:
        """Keep other processes from changing atoms for a block.

        Raises:
            StoreBusyError: another process holds the lock.
            StoreError: the directory cannot be used.
        """
        ensure_directory(self.directory)
        with exclusive(self.directory / ".lock", timeout_seconds=LOCK_TIMEOUT_SECONDS, poll=self._poll):
            yield

    def ids(self, place: Place = CHUNKS) -> list[str]:
        """Return the ids of the atoms in ``place``, sorted.

        Raises:
            StoreError: the directory cannot be read.
        """
        try:
            names = os.listdir(real_directory(self.directory / place))  # noqa: PTH208 - names alone: there may be 100,000
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"cannot read {self.directory / place}: {describe(error)}") from error
        found = (name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
        return sorted(name for name in found if is_atom_id(name))

    def read(self, atom_id: str, place: Place = CHUNKS) -> Atom | None:
        """Return an atom, None when there is none of this id.

        Raises:
            StoreError: its file cannot be read, or is none of ours.
        """
        if not is_atom_id(atom_id):
            return None
        path = self.path(atom_id, place)
        try:
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and not self._is_link(place):
                data = read_start(path, size_bytes=_FILE_LIMIT_BYTES + 1)
                if len(data) > _FILE_LIMIT_BYTES:
                    raise StoreError(f"{path} has more than the {_FILE_LIMIT_BYTES:,} bytes of an atom")
            else:
                found = locate(self.directory / place, atom_id + _SUFFIX)
                data = read_file(found, limit_bytes=_FILE_LIMIT_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"cannot read {path}: {describe(error)}") from error
        return parse(atom_id, data, modified_at=status.st_mtime)

    def has(self, atom_id: str) -> bool:
        """Tell whether there is a file of an atom, live or waiting."""
        return any(os.path.lexists(self.path(atom_id, place)) for place in (CHUNKS, QUARANTINE))

    def state(self, atom_id: str, place: Place = CHUNKS) -> tuple[int, ...]:
        """Return what differs when the file of an atom does, () for no file; cheaper than reading it."""
        try:
            status = os.lstat(self.path(atom_id, place))
        except OSError:
            return ()
        return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size

    def path(self, atom_id: str, place: Place = CHUNKS) -> str:
        """Return where the file of an atom is, unless a link leads elsewhere."""
        return f"{self._paths[place]}/{atom_id}{_SUFFIX}"

    def all(self, place: Place = CHUNKS) -> Iterator[Atom]:
        """Yield the atoms in ``place`` that can be read."""
        for atom_id in self.ids(place):
            try:
                atom = self.read(atom_id, place)
            except StoreError:
                continue  # told by ``unreadable``
            if atom is not None and atom.text:
                yield atom

    def unreadable(self) -> list[str]:
        """Return a line for each atom whose file cannot be read."""
        lines: list[str] = []
        for place in (CHUNKS, QUARANTINE):
            for atom_id in self.ids(place):
                try:
                    atom = self.read(atom_id, place)
                except StoreError as error:
                    lines.append(str(error))
                else:
                    if atom is not None and not atom.text:
                        lines.append(f"{self.path(atom_id, place)} holds no text")
        return lines

    def write(self, atoms: Iterable[Atom], place: Place = CHUNKS) -> None:
        """Write atoms, each in the place of the one with its id. Within ``change``.

        Raises:
            StoreError: the message says which; each of the others is written, or is as it was.
        """
        ensure_directory(self.directory / place)
        by_directory: dict[Path, list[tuple[str, bytes]]] = {}
        for atom in atoms:
            path = locate(self.directory / place, atom.id + _SUFFIX)
            by_directory.setdefault(path.parent, []).append((path.name, encode(atom)))
        for directory, files in by_directory.items():
            replace_files(directory, files)

    def remove(self, atom_ids: Sequence[str], place: Place = CHUNKS) -> list[str]:
        """Remove atoms and return the ids of those that were there. Within ``change``.

        Raises:
            StoreError: the message says which; the ones before it are removed.
        """
        directory = real_directory(self.directory / place)
        if not directory.exists():
            return []
        known = [name for name in atom_ids if is_atom_id(name)]
        return [name for name in known if remove_file(directory / (name + _SUFFIX))]

    def move(self, atom: Atom, place: Place) -> None:
        """Write ``atom`` to ``place`` and remove it from the other. Within ``change``.

        Killed in between, it is in both: live is what counts then.

        Raises:
            StoreError: it is where it was.
        """
        self.write([atom], place)
        self.remove([atom.id], QUARANTINE if place == CHUNKS else CHUNKS)

    def _is_link(self, place: Place) -> bool:
        return stat.S_ISLNK(os.lstat(self._paths[place]).st_mode)

    def size_bytes(self) -> int:
        """Return the size of everything below the directory."""
        total = 0
        for folder, _, names in os.walk(self.directory):
            for name in names:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_size  # noqa: PTH118 - 100,000 of them
                except OSError:
                    continue  # gone by now
        return total
