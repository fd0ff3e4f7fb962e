"""People's working files: taken as they are, replaced only while they still are that."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

import msgspec

from odek.errors import StoreError, TargetChangedError, ToolError
from odek.storage.descent import descend
from odek.storage.files import describe, replace_file
from odek.storage.in_place import overwrite_file
from odek.tools.paths import Target, confirm, locate, locate_existing, os_error
from odek.tools.regular import kind_of, open_regular_in

__all__ = ["EDITED_BYTES", "Snapshot", "replace", "take"]

EDITED_BYTES = 16 * 1024 * 1024
"""A larger file is not edited: its change could neither be shown nor judged."""

_KEPT_ATTRIBUTES = ("user.", "system.posix_acl_access", "security.selinux")
"""What people set. Not capabilities: they were given to the old content."""


class Snapshot(msgspec.Struct, frozen=True):
    """A file as it was found. ``data`` is None where there was none."""

    target: Target
    data: bytes | None


def take(argument: str, workspace: Path, *, is_there: bool = False) -> Snapshot:
    """Return the file that ``argument`` names; one that ``is_there`` may be named only nearly. Blocking.

    Raises:
        ToolError: something else than a file of bearable size is there, or it may not be written.
    """
    target = (locate_existing if is_there else locate)(argument, workspace)
    data = _read(target)
    if data is None:
        _check_parent(target)
    elif not _permitted(target.resolved, os.W_OK):
        raise ToolError(f"{target.shown} is read-only; change its mode first if it should be written")
    return Snapshot(target, data)


def replace(snapshot: Snapshot, data: bytes) -> None:
    """Put ``data`` where ``snapshot`` was taken, in one step, keeping mode, owner and attributes. Blocking.

    Missing directories are made. A file that is a mount point is written where it is. Another
    name (hard link) of the file keeps the old content: what it may be the name of was not
    approved. All of it happens in one open directory, reached without following a link. Between
    the last look and the replacement lie microseconds in which another program's change can be
    lost.

    Raises:
        TargetChangedError: the file or the way to it is no longer as it was taken.
        ToolError: the system refuses; the old file is whole.
    """
    target, is_new = snapshot.target, snapshot.data is None
    try:
        confirm(target)  # before a directory is made
        with descend(target.resolved.parent, changing=True, make=is_new) as directory:
            _confirm(snapshot, directory)
            if is_new:
                _create(directory, target, data)
            else:
                _replace(directory, target, data, _status(directory, target), snapshot.data)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise TargetChangedError(f"the way to {target.shown} changed while its edit waited") from None
        raise os_error(error, target.shown) from None


def _read(target: Target) -> bytes | None:
    """Return the bytes of a file, None where there is none.

    Raises:
        ToolError: it cannot be read, or is not to be edited.
    """
    try:
        with descend(target.resolved.parent) as directory:
            return _read_in(directory, target)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise os_error(error, target.shown) from None


def _read_in(directory: int, target: Target) -> bytes | None:
    try:
        file = open_regular_in(directory, target.resolved.name, target.shown)
    except FileNotFoundError:
        return None
    with file:
        data = file.read(EDITED_BYTES + 1)
        if len(data) > EDITED_BYTES:
            size = os.fstat(file.fileno()).st_size
            raise ToolError(
                f"{target.shown} has {size:,} bytes; files beyond {EDITED_BYTES:,} are not edited"
            )
    return data


def _status(directory: int, target: Target) -> os.stat_result:
    return os.stat(target.resolved.name, dir_fd=directory, follow_symlinks=False)


def _check_parent(target: Target) -> None:
    """Make sure that the missing directories of ``target`` can be made at all."""
    parent = target.resolved.parent
    while parent != parent.parent:
        try:
            mode = parent.lstat().st_mode
        except FileNotFoundError:
            parent = parent.parent
            continue
        except OSError as error:
            raise os_error(error, target.shown) from None
        if not stat.S_ISDIR(mode):
            raise ToolError(f"{target.shown} cannot be: its parent {parent.name} is {kind_of(mode)}")
        if not _permitted(parent, os.W_OK | os.X_OK):
            raise ToolError(f"{target.shown}: the directory {parent} may not be written")
        return


def _permitted(path: Path, wanted: int) -> bool:
    """Ask for the user that would write, where the system can tell it from the one that logged in."""
    return os.access(path, wanted, effective_ids=os.access in os.supports_effective_ids)


def _confirm(snapshot: Snapshot, directory: int) -> None:
    """Make sure that the path still leads to ``directory``, and the file in it is as it was taken."""
    target = snapshot.target
    confirm(target)
    if not os.path.samestat(os.fstat(directory), target.resolved.parent.lstat()):
        raise TargetChangedError(f"the directory of {target.shown} was replaced while its edit waited")
    if _read_in(directory, target) != snapshot.data:
        raise TargetChangedError(f"{target.shown} changed while its edit waited; read it again, then edit it")


def _create(directory: int, target: Target, data: bytes) -> None:
    """Make a new file: its mode by the umask, and never over one that another program just made."""
    name = target.resolved.name
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, 0o666, dir_fd=directory)
    except FileExistsError:
        raise TargetChangedError(f"{target.shown} was made by another program in the meantime") from None
    try:
        status = os.fstat(descriptor)
        os.close(descriptor)
        _replace(directory, target, data, status)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)
        raise


def _replace(
    directory: int, target: Target, data: bytes, status: os.stat_result, before: bytes | None = None
) -> None:
    """Replace a file, whose ``status`` is given, keeping mode, attributes and, if permitted, owner."""
    path = target.resolved
    attributes = _attributes(directory, path.name)
    try:
        try:
            replace_file(
                path, data, mode=stat.S_IMODE(status.st_mode), directory=directory, attributes=attributes
            )
        except StoreError as error:
            mounted = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EBUSY
            if before is None or not mounted:
                raise
            overwrite_file(path, data, before=before, directory=directory)
    except StoreError as error:
        reason = describe(error.__cause__) if isinstance(error.__cause__, OSError) else str(error)
        raise ToolError(f"{target.shown} was not written: {reason}") from None
    now = _status(directory, target)
    if (now.st_uid, now.st_gid) != (status.st_uid, status.st_gid):
        with suppress(OSError):  # only the superuser may give files away
            os.chown(path.name, status.st_uid, status.st_gid, dir_fd=directory, follow_symlinks=False)


def _attributes(directory: int, name: str) -> list[tuple[str, bytes]]:
    """Return the extended attributes that a new content keeps, none where there are no such things."""
    if not hasattr(os, "listxattr"):
        return []
    with suppress(OSError):
        descriptor = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory
        )
        try:
            names = [each for each in os.listxattr(descriptor) if each.startswith(_KEPT_ATTRIBUTES)]
            return [(each, os.getxattr(descriptor, each)) for each in names]
        finally:
            os.close(descriptor)
    return []
