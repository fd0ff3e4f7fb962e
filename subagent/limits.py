"""How much a child may use, and how much it does: one look at ``/proc`` for all of them."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from subagent.wire import MAX_LINE_BYTES, MAX_STREAM_BYTES

__all__ = ["Limits", "TreeSample", "excess", "sample_trees"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one child together with all that it starts; None is no bound.

    The wall clock runs from the request to start it. Memory is the sum of resident
    memory, so that pages shared by several processes count in each.
    Memory, CPU and the number of processes are looked at a few times a second, and only
    where there is a ``/proc``.
    """

    wall_seconds: float = 120.0
    memory_bytes: int | None = None
    cpu_seconds: float | None = None
    processes: int | None = None
    line_bytes: int = MAX_LINE_BYTES
    output_bytes: int = MAX_STREAM_BYTES


class TreeSample(msgspec.Struct, frozen=True):
    """What a process tree uses: CPU so far, resident memory and processes now."""

    cpu_seconds: float = 0.0
    memory_bytes: int = 0
    processes: int = 0


def excess(limits: Limits, sample: TreeSample) -> str | None:
    """Return which limit a tree is beyond, in words, or None."""
    if limits.memory_bytes is not None and sample.memory_bytes > limits.memory_bytes:
        return (
            f"used {_mebibytes(sample.memory_bytes)} of memory, of {_mebibytes(limits.memory_bytes)} allowed"
        )
    if limits.cpu_seconds is not None and sample.cpu_seconds > limits.cpu_seconds:
        return f"used {sample.cpu_seconds:.1f} s of CPU time, of {limits.cpu_seconds:g} s allowed"
    if limits.processes is not None and sample.processes > limits.processes:
        return f"ran {sample.processes} processes, of {limits.processes} allowed"
    return None


def sample_trees(roots: Sequence[int]) -> dict[int, TreeSample]:
    """Return what the descendants of each root use; what a root itself does is not counted.

    Blocking, some milliseconds. Empty without ``/proc``; a root that is gone has nothing.
    """
    ticks, page_bytes = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    children: dict[int, list[int]] = {}
    used: dict[int, tuple[int, int, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_bytes().rpartition(b") ")[2].split()
        except OSError:  # gone since the listing
            continue
        pid = int(path.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        own = int(fields[11]) + int(fields[12])
        reaped = int(fields[13]) + int(fields[14])
        used[pid] = own, reaped, int(fields[21])
    return {root: _add_up(root, children, used, ticks, page_bytes) for root in roots if root in used}


def _add_up(
    root: int,
    children: dict[int, list[int]],
    used: dict[int, tuple[int, int, int]],
    ticks: int,
    page_bytes: int,
) -> TreeSample:
    cpu_ticks, pages, count = used[root][1], 0, 0
    parents = [root]
    while parents:
        for pid in children.get(parents.pop(), ()):
            own, reaped, resident = used[pid]
            cpu_ticks += own + reaped
            pages += resident
            count += 1
            parents.append(pid)
    return TreeSample(cpu_ticks / ticks, pages * page_bytes, count)


def _mebibytes(size: int) -> str:
    return f"{size / 1024 / 1024:.0f} MiB"
