"""What the files of a generation were when their writer was done. Blocks.

tantivy trusts its files: it computes on what a flipped byte made of them, or panics. So a
writer leaves a seal beside them, last of all, and nothing is read that the seal does not
vouch for: by the size and the time of change, which cost a ``stat``, and where the time
differs, as in a copy, by a checksum. A writer that died before its seal leaves a
generation that is not as it was sealed, and is not read either.
"""

import os
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.storage.files import describe, read_file, replace_file

__all__ = ["SEAL", "Seal", "make_seal", "verified"]

SEAL = "seal"

# tantivy's list of segments: their ids, with hyphens in them, begin the names of their files.
_COMMITTED = "meta.json"
_ID_CHARACTERS = 32

# Each file has some 60 bytes in it, each segment seven files, and there are some tens of segments.
_SEAL_BYTES = 1_000_000
_CHUNK_BYTES = 1_000_000


class _File(msgspec.Struct, frozen=True, array_like=True):
    size_bytes: int
    changed_ns: int
    checksum: int


Seal = dict[str, _File]
"""The files of a generation by name."""


def make_seal(directory: Path, before: Seal) -> Seal:
    """Seal what ``directory`` is as committed; what ``before`` vouched for is not read again.

    A merge of segments may be on its way beside that: its files are of no segment that is committed.
    The seal is not synced: if it is lost with the power, the index is made anew.

    Raises:
        StoreError: it cannot be written, or a merge was done meanwhile.
        OSError: a file cannot be read, or such a merge has removed it.
    """
    seal: Seal = {}
    listed = (directory / _COMMITTED).read_bytes()
    committed = listed.decode("utf-8", "replace").replace("-", "")
    for path in directory.iterdir():
        segment = path.name[:_ID_CHARACTERS]
        if path.name != _COMMITTED and (len(segment) < _ID_CHARACTERS or segment not in committed):
            continue
        status = path.lstat()
        known = before.get(path.name)
        if known is None or (known.size_bytes, known.changed_ns) != (status.st_size, status.st_ctime_ns):
            known = _File(status.st_size, status.st_ctime_ns, _checksum(path))
        seal[path.name] = known
    if (directory / _COMMITTED).read_bytes() != listed:
        raise StoreError(f"{directory} has changed while it was sealed")
    replace_file(directory / SEAL, msgspec.json.encode(seal), durable=False)
    return seal


def verified(directory: Path) -> Seal:
    """Return the seal of ``directory``, whose files are as it says. Files that it does not name do not count.

    Raises:
        StoreError: they are not, or there is no seal; names the file.
    """
    path = directory / SEAL
    try:
        seal = msgspec.json.decode(read_file(path, limit_bytes=_SEAL_BYTES), type=Seal)
        for name, known in seal.items():
            path = directory / name
            status = os.stat(path)  # noqa: PTH116 - of every file at every opening
            if status.st_size != known.size_bytes or (
                status.st_ctime_ns != known.changed_ns and _checksum(path) != known.checksum
            ):
                raise StoreError(f"{path} is not as it was written")
    except FileNotFoundError:
        raise StoreError(f"{path} is missing") from None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {describe(error)}") from error
    except msgspec.MsgspecError:
        raise StoreError(f"{path} is not as it was written") from None
    return seal


def _checksum(path: Path) -> int:
    import zlib

    checksum = 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK_BYTES):
            checksum = zlib.crc32(chunk, checksum)
    return checksum
