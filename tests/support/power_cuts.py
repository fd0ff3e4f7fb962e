"""What a disk may hold after a power cut, from the operations that a program made on it.

The model is a weak file system. The data of a file is safe after its fsync; until then the file may
hold nothing, a part, zeros, or all of it, or what was safe before. A name (made, moved or removed) is
safe after the fsync of its directory; until then any subset of the changes may have arrived.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import combinations, product
from pathlib import PurePath

import msgspec

__all__ = ["TRACED", "Disk", "Operation", "disks_after_cut", "parse_trace"]

TRACED = "openat,write,pwrite64,fsync,rename,renameat,renameat2,unlink,unlinkat,ftruncate,close"

TORN_PARTS = 6
"""A file that is not safe may have arrived up to each of so many places in it."""

Disk = tuple[tuple[str, bytes], ...]
"""The files by name, sorted."""


class Operation(msgspec.Struct, frozen=True):
    """``create``, ``write``, ``fsync``, ``rename``, ``unlink``, ``fsync_directory`` or ``acknowledge``."""

    kind: str
    name: str = ""
    other: str = ""
    data: bytes = b""
    at: int | None = None


class _Fd(msgspec.Struct, frozen=True):
    name: str
    is_directory: bool = False
    appends: bool = False


def parse_trace(trace: str, directory: str) -> list[Operation]:
    """Return the operations in ``directory`` from the output of ``strace -xx``; others are left out."""
    fds: dict[int, _Fd] = {}
    found: list[Operation] = []
    for line in trace.splitlines():
        match = re.match(r"(\w+)\((.*)\)\s+= (-?\d+)", line)
        if match is None or int(match[3]) < 0:
            continue
        call, arguments, result = match[1], match[2], int(match[3])
        strings = [
            bytes.fromhex(text.replace("\\x", "")) for text in re.findall(r'"((?:\\x..)*)"', arguments)
        ]
        number = re.match(r"(\d+)", arguments)
        fd = fds.get(int(number[1])) if number else None
        match call:
            case "openat":
                base = fd.name if fd is not None and fd.is_directory else ""
                path = PurePath(base, strings[0].decode())
                inside = str(path.parent) == directory
                if str(path) == directory:
                    fds[result] = _Fd(str(path), is_directory=True)
                elif inside:
                    fds[result] = _Fd(path.name, appends="O_APPEND" in arguments)
                    if "O_EXCL" in arguments:
                        found.append(Operation("create", path.name))
            case "close" if number:
                fds.pop(int(number[1]), None)
            case "write" if fd is not None:
                found.append(Operation("write", fd.name, data=strings[0][:result]))
            case "write" if strings and strings[0] == b"acknowledged":
                found.append(Operation("acknowledge"))
            case "pwrite64" if fd is not None:
                at = int(arguments.rsplit(",", 1)[1])
                found.append(Operation("write", fd.name, data=strings[0][:result], at=at))
            case "fsync" if fd is not None:
                found.append(Operation("fsync_directory") if fd.is_directory else Operation("fsync", fd.name))
            case "rename" | "renameat" | "renameat2":
                old, new = (PurePath(text.decode()).name for text in strings)
                found.append(Operation("rename", old, new))
            case "unlink" | "unlinkat":
                found.append(Operation("unlink", PurePath(strings[0].decode()).name))
    return found


class _File:
    """A file apart from its name: what was written, and what of it is safe."""

    def __init__(self, data: bytes) -> None:
        self.data = self.safe = data

    def write(self, data: bytes, at: int | None) -> None:
        start = len(self.data) if at is None else at
        self.data = self.data[:start].ljust(start, b"\0") + data + self.data[start + len(data) :]

    def variants(self) -> list[bytes]:
        """Return what a cut may leave of it."""
        if self.data == self.safe:
            return [self.data]
        new = self.data.removeprefix(self.safe)
        kept = self.safe if self.data.startswith(self.safe) else b""
        parts = [kept + new[: len(new) * part // TORN_PARTS] for part in range(TORN_PARTS)]
        return list(dict.fromkeys([self.safe, *parts, kept + b"\0" * len(new), self.data]))


def disks_after_cut(operations: Iterable[Operation], base: Disk) -> Iterator[tuple[int, Disk]]:
    """Yield each disk that a cut before or after any operation may leave, and how many were acknowledged."""
    names = {name: _File(data) for name, data in base}
    safe_names = dict(names)
    pending: list[tuple[str, str, _File | None]] = []
    acknowledged = 0
    yield from _disks(acknowledged, safe_names, pending)
    for operation in operations:
        match operation.kind:
            case "create":
                names[operation.name] = _File(b"")
                pending.append(("set", operation.name, names[operation.name]))
            case "write":
                if operation.name not in names:  # made by its first use, as a journal is
                    names[operation.name] = _File(b"")
                    pending.append(("set", operation.name, names[operation.name]))
                names[operation.name].write(operation.data, operation.at)
            case "fsync":
                names[operation.name].safe = names[operation.name].data
            case "rename":
                moved = names.pop(operation.name)
                names[operation.other] = moved
                pending.append((f"move {operation.name}", operation.other, moved))
            case "unlink":
                names.pop(operation.name, None)
                pending.append(("unset", operation.name, None))
            case "fsync_directory":
                safe_names, pending = dict(names), []
            case "acknowledge":
                acknowledged += 1
        yield from _disks(acknowledged, safe_names, pending)


def _disks(
    acknowledged: int, safe_names: dict[str, _File], pending: list[tuple[str, str, _File | None]]
) -> Iterator[tuple[int, Disk]]:
    for size in range(len(pending) + 1):
        for chosen in combinations(pending, size):
            names = dict(safe_names)
            for kind, name, file in chosen:
                if file is None:
                    names.pop(name, None)
                    continue
                if kind.startswith("move "):
                    names.pop(kind.removeprefix("move "), None)
                names[name] = file
            ordered = sorted(names.items())
            for contents in product(*(file.variants() for _, file in ordered)):
                yield acknowledged, tuple(zip((name for name, _ in ordered), contents, strict=True))
