"""Files replaced atomically and durably: the only code that renames or fsyncs.

A reader sees the old file or the new one, whatever happens in between; when a call
returns, the new one survives a power cut. Everything here blocks.
"""

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odek.errors import StoreError

__all__ = [
    "describe",
    "ensure_directory",
    "open_directory",
    "read_file",
    "remove_file",
    "replace_file",
    "sweep_temporaries",
    "sync_directory",
]

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700

_TEMPORARY = re.compile(r"\..+\.(\d+)-[0-9a-f]{16}\.tmp")

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than is allowed here",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "not permitted",
    errno.EMFILE: "this process has too many files open",
    errno.ENFILE: "the system has too many files open",
    errno.EIO: "the disk reports an input/output error",
    errno.ELOOP: "it is a symbolic link",
    errno.ENOENT: "it does not exist",
    errno.ENOTDIR: "a part of the path is no directory",
    errno.EISDIR: "it is a directory",
}


def describe(error: OSError) -> str:
    """Return the reason of ``error`` in words."""
    return _REASONS.get(error.errno or 0) or (error.strerror or type(error).__name__).lower()


def ensure_directory(path: Path) -> None:
    """Create ``path`` and its missing parents, for the owner alone whatever the umask.

    A directory that is there is left as it is.

    Raises:
        StoreError: it cannot be created, or something else is in its place.
    """
    try:
        for missing in [p for p in (*reversed(path.parents), path) if not p.exists()]:
            missing.mkdir(PRIVATE_DIRECTORY, exist_ok=True)
            missing.chmod(PRIVATE_DIRECTORY)  # mkdir subtracts the umask
            sync_directory(missing.parent)
        if not path.is_dir():
            raise StoreError(f"{path} is no directory")
    except OSError as error:
        raise StoreError(f"cannot create {path}: {describe(error)}") from error


def read_file(path: Path, *, limit_bytes: int, follow_links: bool = False) -> bytes:
    """Return the bytes of a regular file; never waits on a pipe or device.

    Raises:
        FileNotFoundError: there is no such file.
        StoreError: it is no regular file, is larger than ``limit_bytes``, or cannot be read.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        descriptor = os.open(path, flags if follow_links else flags | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise StoreError(f"{path} is no regular file")
            data = file.read(limit_bytes + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"cannot read {path}: {describe(error)}") from error
    if len(data) > limit_bytes:
        raise StoreError(f"{path} has more than the {limit_bytes:,} bytes that are read of it")
    return data


def replace_file(path: Path, data: bytes, *, mode: int = PRIVATE_FILE, durable: bool = True) -> None:
    """Put ``data`` in the place of ``path``, all or nothing.

    The file gets exactly ``mode``, whatever the umask. A link in its place is replaced,
    not followed. With ``durable`` the file and its name are on disk on return.

    Raises:
        StoreError: the old file is still there, unchanged, and nothing is left over.
            Only after a failed sync of the directory the new one may be there already.
    """
    # The start of the name: the whole of a long one would leave no room for the rest.
    temporary = path.with_name(f".{path.name[:50]}.{os.getpid()}-{secrets.token_hex(8)}.tmp")
    try:
        with open_directory(path.parent) as directory:
            try:
                _write_new(temporary.name, data, mode, directory, durable=durable)
                os.rename(temporary.name, path.name, src_dir_fd=directory, dst_dir_fd=directory)  # noqa: TID251 - here
            except BaseException:
                _unlink_quietly(temporary.name, directory)
                raise
            if durable:
                os.fsync(directory)  # noqa: TID251 - makes the rename last
    except OSError as error:
        raise StoreError(f"cannot write {path}: {describe(error)}") from error


def remove_file(path: Path) -> bool:
    """Remove ``path`` durably; False when it was not there.

    Raises:
        StoreError: it cannot be removed.
    """
    try:
        with open_directory(path.parent) as directory:
            try:
                os.unlink(path.name, dir_fd=directory)
            except FileNotFoundError:
                return False
            os.fsync(directory)  # noqa: TID251 - makes the removal last
    except OSError as error:
        raise StoreError(f"cannot remove {path}: {describe(error)}") from error
    return True


def sync_directory(path: Path) -> None:
    """Make the names in ``path`` last.

    Raises:
        OSError: as the system reports it.
    """
    with open_directory(path) as directory:
        os.fsync(directory)  # noqa: TID251 - the purpose


def sweep_temporaries(directory: Path) -> list[str]:
    """Remove what writers that are dead left behind in ``directory``; return the names.

    Raises:
        StoreError: the directory cannot be read.
    """
    swept = []
    try:
        names = [entry.name for entry in os.scandir(directory)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {directory}: {describe(error)}") from error
    for name in names:
        match = _TEMPORARY.fullmatch(name)
        if match and not _is_alive(int(match[1])):
            with open_directory(directory) as descriptor:
                _unlink_quietly(name, descriptor)
            swept.append(name)
    return swept


@contextmanager
def open_directory(path: Path) -> Iterator[int]:
    """Yield a descriptor of the directory ``path``."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write_new(name: str, data: bytes, mode: int, directory: int, *, durable: bool) -> None:
    """Create ``name`` with ``data``. A failed fsync is never tried again: the pages may be marked clean."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, PRIVATE_FILE, dir_fd=directory)
    try:
        os.fchmod(descriptor, mode)  # not subject to the umask, as the mode of open is
        rest = memoryview(data)
        while rest:  # a full disk or a signal may cut a write short
            rest = rest[os.write(descriptor, rest) :]
        if durable:
            os.fsync(descriptor)  # noqa: TID251 - the data before the name
    finally:
        os.close(descriptor)


def _unlink_quietly(name: str, directory: int) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:
        return  # not there; or the file system is beyond help, which the first error says


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
