"""Files replaced atomically and durably: with the rest of ``storage``, the only code that renames or fsyncs.

A reader sees the old file or the new one, whatever happens in between; when a call
returns, the new one survives a power cut. Everything here blocks.
"""

import errno
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from odek.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "PRIVATE_DIRECTORY",
    "PRIVATE_FILE",
    "abandoned_temporaries",
    "describe",
    "ensure_directory",
    "open_directory",
    "read_end",
    "read_file",
    "read_rest",
    "read_start",
    "remove_file",
    "replace_file",
    "replace_files",
    "sweep_temporaries",
    "sync_directory",
]

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700

ABANDONED_SECONDS = 3600
"""A temporary file this old is nobody's, even if its writer's pid is in use again; a write takes seconds."""

_FILES_AT_ONCE = 64
"""Open at a time while several are replaced; a process may have some hundreds. No measurement behind it."""

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


def ensure_directory(path: "Path", *, durable: bool = True) -> None:
    """Create ``path`` and its missing parents, for the owner alone whatever the umask.

    A directory that is there is left as it is. ``durable`` False does not wait for the disk: it
    is for what nobody misses after a power cut, below a directory that is there already.

    Raises:
        StoreError: it cannot be created, or something else is in its place.
    """
    try:
        if path.is_dir():
            return
        for missing in [p for p in (*reversed(path.parents), path) if not p.exists()]:
            missing.mkdir(PRIVATE_DIRECTORY, exist_ok=True)
            missing.chmod(PRIVATE_DIRECTORY)  # mkdir subtracts the umask
            if durable:
                sync_directory(missing.parent)
        if not path.is_dir():
            raise StoreError(f"{path} is no directory")
    except OSError as error:
        raise StoreError(f"cannot create {path}: {describe(error)}") from error


def read_file(path: "Path", *, limit_bytes: int, follow_links: bool = False) -> bytes:
    """Return the bytes of a regular file; never waits on a pipe or device.

    Raises:
        FileNotFoundError: there is no such file.
        StoreError: it is no regular file, is larger than ``limit_bytes``, or cannot be read.
    """
    data = _read(path, limit_bytes + 1, follow_links=follow_links)
    if len(data) > limit_bytes:
        raise StoreError(
            f"{path} has more than the {limit_bytes:,} bytes that are read of it: shorten it, or move it away"
        )
    return data


def read_start(path: "Path | str", *, size_bytes: int) -> bytes:
    """Return the first ``size_bytes`` of a regular file, or all of it if it has less.

    Raises:
        FileNotFoundError: there is no such file.
        StoreError: it is no regular file, or cannot be read.
    """
    return _read(path, size_bytes, follow_links=False)


def read_end(path: "Path | str", *, size_bytes: int) -> bytes:
    """Return the last ``size_bytes`` of a regular file, or all of it if it has less.

    Raises:
        FileNotFoundError: there is no such file.
        StoreError: it is no regular file, or cannot be read.
    """
    return _read(path, size_bytes, follow_links=False, start_bytes=-size_bytes)


def read_rest(path: "Path", *, start_bytes: int, limit_bytes: int) -> bytes:
    """Return what a regular file has from ``start_bytes`` on, nothing if it has no more than these.

    Raises:
        FileNotFoundError: there is no such file.
        StoreError: it is no regular file, has more than ``limit_bytes`` there, or cannot be read.
    """
    data = _read(path, limit_bytes + 1, follow_links=False, start_bytes=start_bytes)
    if len(data) > limit_bytes:
        raise StoreError(f"{path} has more than the {limit_bytes:,} bytes that are read of it: move it away")
    return data


def _read(path: "Path | str", size_bytes: int, *, follow_links: bool, start_bytes: int = 0) -> bytes:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        descriptor = os.open(path, flags if follow_links else flags | os.O_NOFOLLOW)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise StoreError(f"{path} is no regular file: move it away")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                if start_bytes:  # a negative one counts from the end
                    file.seek(start_bytes if start_bytes > 0 else max(status.st_size + start_bytes, 0))
                return file.read(size_bytes)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"cannot read {path}: {describe(error)}") from error


def replace_file(
    path: "Path",
    data: bytes | memoryview,
    *,
    mode: int = PRIVATE_FILE,
    durable: bool = True,
    directory: int | None = None,
    attributes: "Sequence[tuple[str, bytes]]" = (),
) -> None:
    """Put ``data`` in the place of ``path``, all or nothing.

    The file gets exactly ``mode``, whatever the umask, and the extended ``attributes`` as far as
    the system allows. A link in its place is replaced, not followed. With ``durable`` the file
    and its name are on disk on return. ``directory`` is a descriptor of the one that ``path``
    lies in, where the path may lead elsewhere by now.

    Raises:
        StoreError: the old file is still there, unchanged, and nothing is left over.
            Only after a failed sync of the directory the new one may be there already.
    """
    temporary = _temporary_name(path)
    try:
        if directory is not None:
            _replace_in(directory, temporary, path.name, data, mode, attributes, durable=durable)
            return
        with open_directory(path.parent) as opened:
            _replace_in(opened, temporary, path.name, data, mode, attributes, durable=durable)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {describe(error)}") from error


def replace_files(directory: "Path", files: "Sequence[tuple[str, bytes]]") -> None:
    """Put data in the place of each (name, data) in ``directory``, durably, for the owner alone.

    Each file is replaced all or nothing. All are written before the disk is waited for, which makes
    many at once several times as fast as one by one.

    Raises:
        StoreError: says which; of its group of some dozens none is replaced if one cannot be
            written. Those before them are.
    """
    for start in range(0, len(files), _FILES_AT_ONCE):
        _replace_together(directory, files[start : start + _FILES_AT_ONCE])


def remove_file(path: "Path") -> bool:
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


def sync_directory(path: "Path") -> None:
    """Make the names in ``path`` last.

    Raises:
        OSError: as the system reports it.
    """
    with open_directory(path) as directory:
        os.fsync(directory)  # noqa: TID251 - the purpose


def abandoned_temporaries(directory: "Path") -> "list[Path]":
    """Return the temporary files in ``directory`` whose writers are dead.

    Raises:
        StoreError: the directory cannot be read.
    """
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(".tmp"))  # noqa: PTH208 - fast
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {directory}: {describe(error)}") from error
    return [directory / name for name in names if _is_abandoned(directory / name)]


def sweep_temporaries(directory: "Path") -> "list[Path]":
    """Remove what writers that are dead left behind in ``directory``; return what is gone.

    A live writer in another pid namespace would lose its temporary file, and report that
    its write failed; its old file stays.

    Raises:
        StoreError: the directory cannot be read, or one of the files not be removed.
    """
    return [path for path in abandoned_temporaries(directory) if remove_file(path)]


@contextmanager
def open_directory(path: "Path") -> Iterator[int]:
    """Yield a descriptor of the directory ``path``."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _replace_in(
    directory: int,
    temporary: str,
    name: str,
    data: bytes | memoryview,
    mode: int,
    attributes: "Sequence[tuple[str, bytes]]",
    *,
    durable: bool,
) -> None:
    try:
        _write_new(temporary, data, mode, directory, attributes, durable=durable)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)  # noqa: TID251 - here
    except BaseException:
        _unlink_quietly(temporary, directory)
        raise
    if durable:
        os.fsync(directory)  # noqa: TID251 - makes the rename last


def _replace_together(path: "Path", files: "Sequence[tuple[str, bytes]]") -> None:
    """Replace files of one directory; ``at`` is the one that is being worked on, for the message."""
    at, temporaries = path, [_temporary_name(path / name) for name, _ in files]
    try:
        with ExitStack() as stack:
            directory = stack.enter_context(open_directory(path))
            stack.callback(_unlink_all_quietly, temporaries, directory)
            descriptors: list[int] = []
            for (name, data), temporary in zip(files, temporaries, strict=True):
                at = path / name
                descriptors.append(_create(temporary, PRIVATE_FILE, directory))
                stack.callback(os.close, descriptors[-1])
                _write_all(descriptors[-1], data)
            for (name, _), descriptor in zip(files, descriptors, strict=True):
                at = path / name
                os.fsync(descriptor)  # noqa: TID251 - the data before the name
            for (name, _), temporary in zip(files, list(temporaries), strict=True):
                at = path / name
                os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)  # noqa: TID251 - here
                temporaries.remove(temporary)
            os.fsync(directory)  # noqa: TID251 - makes the renames last
    except OSError as error:
        raise StoreError(f"cannot write {at}: {describe(error)}") from error


def _write_new(
    name: str,
    data: bytes | memoryview,
    mode: int,
    directory: int,
    attributes: "Sequence[tuple[str, bytes]]",
    *,
    durable: bool,
) -> None:
    """Create ``name`` with ``data``. A failed fsync is never tried again: the pages may be marked clean."""
    descriptor = _create(name, mode, directory)
    try:
        _write_all(descriptor, data)
        for attribute, value in attributes:
            with suppress(OSError):  # not every file system keeps them, nor may everyone set each
                os.setxattr(descriptor, attribute, value)
        if durable:
            os.fsync(descriptor)  # noqa: TID251 - the data before the name
    finally:
        os.close(descriptor)


def _create(name: str, mode: int, directory: int) -> int:
    """Return a descriptor of a new file for writing, with exactly ``mode``."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, PRIVATE_FILE, dir_fd=directory)
    try:
        os.fchmod(descriptor, mode)  # not subject to the umask, as the mode of open is
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _write_all(descriptor: int, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:  # a full disk or a signal may cut a write short
        rest = rest[os.write(descriptor, rest) :]


def _temporary_name(path: "Path") -> str:
    # The start of the name: the whole of a long one would leave no room for the rest.
    return f".{path.name[:50]}.{os.getpid()}-{os.urandom(8).hex()}.tmp"


def _unlink_all_quietly(names: "Sequence[str]", directory: int) -> None:
    for name in names:
        _unlink_quietly(name, directory)


def _unlink_quietly(name: str, directory: int) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:
        return  # not there; or the file system is beyond help, which the first error says


def _is_abandoned(path: "Path") -> bool:
    """Tell whether ``path`` is a temporary file of ours whose writer is gone."""
    import re

    made = re.fullmatch(r"\..+\.([0-9]{1,9})-[0-9a-f]{16}\.tmp", path.name, re.DOTALL)
    if made is None:
        return False
    try:
        age_seconds = time.time() - path.lstat().st_mtime
    except OSError:  # renamed or swept meanwhile
        return False
    return age_seconds > ABANDONED_SECONDS or not _is_alive(int(made[1]))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
