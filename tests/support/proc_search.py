"""Looking for a text in all that the kernel shows of a process."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["files_with", "holds_in_memory", "shown_with"]

READ_BYTES = 4 * 1024 * 1024
"""Of one file of a process: none that is text has as much."""

NO_TEXT = frozenset({"mem", "pagemap", "clear_refs"})

MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r\S+ \S+ \S+ \S+ *(.*)")

REGION_BYTES = 64 * 1024 * 1024
OVERLAP_BYTES = 4096


def shown_with(pid: int, needle: bytes) -> list[str]:
    """Return what shows ``needle``: any file or link of the process that may be read, but its memory."""
    return [str(path) for path, content in _shown(Path(f"/proc/{pid}")) if needle in content]


def _shown(folder: Path) -> Iterator[tuple[Path, bytes]]:
    with suppress(OSError):  # it is gone, or not for us
        for path in folder.iterdir():
            if path.name in NO_TEXT:
                continue
            with suppress(OSError):
                mode = path.lstat().st_mode
                if stat.S_ISLNK(mode):
                    yield path, os.fsencode(path.readlink())
                elif stat.S_ISREG(mode):
                    yield path, _start_of(path)
                elif path.name in {"fd", "fdinfo", "task", "map_files"} or folder.name == "task":
                    yield from _shown(path)


def _start_of(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, READ_BYTES)
    finally:
        os.close(descriptor)


def holds_in_memory(pid: int, needle: bytes) -> bool | None:
    """Return whether the memory of a process has ``needle``; None if we may not look."""
    try:
        regions = MAPPING.findall(Path(f"/proc/{pid}/maps").read_text(errors="replace"))
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    seen = 0
    try:
        for start, end, name in regions:
            if not name.startswith(("[v", "/dev/")):
                for chunk in _region(memory, int(start, 16), int(end, 16)):
                    seen += len(chunk)
                    if needle in chunk:
                        return True
    finally:
        os.close(memory)
    return False if seen else None


def _region(memory: int, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        size = min(end - start, REGION_BYTES)
        with suppress(OSError):  # a page that cannot be read
            yield os.pread(memory, size + OVERLAP_BYTES, start)
        start += size


def files_with(folder: Path, needle: bytes) -> list[Path]:
    """Return the files below ``folder`` with ``needle`` in their content or name."""
    found = []
    for path in folder.rglob("*"):
        with suppress(OSError):
            mode = path.lstat().st_mode
            content = path.read_bytes() if stat.S_ISREG(mode) else b""
            if needle in content or needle in os.fsencode(path.name):
                found.append(path)
    return found
