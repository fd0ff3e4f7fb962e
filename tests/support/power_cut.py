"""Which states a disk may be in after a power cut, by the operations that a program made.

The model is that of a weak file system: the data of a file is safe after it was synced, a
name after its directory was. Names that are not safe survive in any combination; a file
whose data is not safe may be empty, cut, full of zeros, or whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from typing import NamedTuple

__all__ = ["Operation", "disk_states"]


class Operation(NamedTuple):
    """A step: create, write, sync, rename to ``target``, unlink, sync_directory or acknowledge."""

    kind: str
    name: str = ""
    data: bytes = b""
    target: str = ""


class _Inode:
    """The data of one file, and what of it is safe."""

    def __init__(self, data: bytes = b"", safe: bytes | None = None) -> None:
        self.data = data
        self.safe = safe

    def survivors(self) -> set[bytes]:
        if self.safe == self.data:
            return {self.data}
        cut = {b"", self.data[: len(self.data) // 2], bytes(len(self.data)), self.data}
        return cut if self.safe is None else cut | {self.safe}


def disk_states(
    operations: Sequence[Operation], base: Mapping[str, bytes]
) -> Iterator[tuple[bool, dict[str, bytes]]]:
    """Yield (whether success was reported, the files) for every cut and everything that may survive it."""
    for cut in range(len(operations) + 1):
        yield from _states_after(operations[:cut], base)


def _states_after(
    operations: Sequence[Operation], base: Mapping[str, bytes]
) -> Iterator[tuple[bool, dict[str, bytes]]]:
    live = {name: _Inode(data, data) for name, data in base.items()}
    safe = dict(live)
    pending: list[tuple[str, _Inode | None, str]] = []  # name, what it means now, the name that went for it
    acknowledged = False
    for kind, name, data, target in operations:
        match kind:
            case "create":
                live[name] = _Inode()
                pending.append((name, live[name], ""))
            case "write":
                live[name].data += data
            case "sync":
                live[name].safe = live[name].data
            case "rename":
                live[target] = live.pop(name)
                pending.append((target, live[target], name))
            case "unlink":
                pending.append((name, None, ""))
                del live[name]
            case "sync_directory":
                safe, pending = dict(live), []
            case "acknowledge":
                acknowledged = True
    subsets = chain.from_iterable(combinations(pending, size) for size in range(len(pending) + 1))
    for surviving in subsets:
        names = dict(safe)
        for name, inode, gone in surviving:
            names.pop(gone, None)
            if inode is None:
                names.pop(name, None)
            else:
                names[name] = inode
        for contents in product(*(sorted(inode.survivors()) for inode in names.values())):
            yield acknowledged, dict(zip(names, contents, strict=True))
