"""What a sandbox shows of this machine, and what may be changed in there. Reads the disk, changes nothing."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from odek.errors import ConfigError
from odek.sandbox.repository import Repository, find_repository

__all__ = ["Mount", "View", "kernel_mounts", "system_mounts", "view_of"]

LINKED_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Links into /usr where that is merged, folders of their own elsewhere."""

SYSTEM_FOLDERS = ("/usr", "/etc", "/opt", "/nix", "/gnu")
"""Programs, libraries and their settings. /var, /run, /srv, /sys and other homes are not there."""

SECRET_PLACES = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/security/opasswd",
    "/etc/krb5.keytab",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/letsencrypt",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/NetworkManager/system-connections",
    "/etc/kubernetes",
    "/etc/rancher",
)
"""What only root may read anyway: odek may be run as root."""

RESOLVER = "/etc/resolv.conf"
"""Often a link to /run, which is not there; without it no name is found."""


KERNEL_CONTROLS = ("bus", "fs", "irq", "mtrr", "sys", "sysrq-trigger")
KERNEL_SECRETS = ("acpi", "asound", "kcore", "keys", "latency_stats", "sched_debug", "scsi", "timer_list")
"""Below /proc. Root owns them and may write to them without any capability, in a sandbox too."""


class Mount(msgspec.Struct, frozen=True):
    """One place: shown to read or to write, empty, or a link to ``target``.

    "empty" is a folder that takes files and forgets them, "closed" one that takes none, and
    "blank" a file that cannot be read.
    """

    kind: Literal["read", "write", "empty", "closed", "blank", "link"]
    path: Path
    target: str = ""


class View(msgspec.Struct, frozen=True):
    """What is shown of the person's own files, in the order in which it is laid over the rest.

    ``mounts`` hold from outer to inner. ``must_stay_absent`` are files of the repository that
    cannot be shut by a mount, and would have git obey whoever makes them; ``made`` folders that
    have to be there for their mount.
    """

    workspace: Path
    home: Path
    mounts: tuple[Mount, ...]
    must_stay_absent: tuple[Path, ...] = ()
    made: tuple[Path, ...] = ()


def system_mounts(*, network: bool) -> tuple[Mount, ...]:
    """Return the mounts of programs and libraries, to read."""
    mounts: list[Mount] = []
    for name in LINKED_FOLDERS:
        folder = Path(name)
        if folder.is_symlink():
            mounts.append(Mount("link", folder, str(folder.readlink())))
        elif folder.is_dir():
            mounts.append(Mount("read", folder))
    mounts += [Mount("read", folder) for folder in map(Path, SYSTEM_FOLDERS) if folder.is_dir()]
    mounts += [_shut(path) for path in map(Path, SECRET_PLACES) if path.exists()]
    resolver = Path(RESOLVER)
    if network and resolver.is_symlink() and resolver.exists():
        mounts.append(Mount("read", resolver.resolve()))
    return tuple(mounts)


def kernel_mounts() -> tuple[Mount, ...]:
    """Return the mounts over a fresh /proc: what governs the machine is not for a sandbox to change."""
    controls = [path for name in KERNEL_CONTROLS if (path := Path("/proc", name)).exists()]
    secrets = [path for name in KERNEL_SECRETS if (path := Path("/proc", name)).exists()]
    return (*(Mount("read", path) for path in controls), *map(_shut, secrets))


def view_of(
    workspace: Path,
    *,
    home: Path,
    odek_home: Path,
    programs: Sequence[Path] = (),
    readable: Sequence[Path] = (),
    read_only: bool = False,
) -> View:
    """Return what a sandbox for ``workspace`` shows of the person's files.

    Args:
        workspace: The directory of the work, to write unless it is ``read_only``.
        home: The person's home: an empty folder in there.
        odek_home: Where odek keeps its own; never shown.
        programs: Files and folders that the sandbox itself needs, to read.
        readable: What the person shows beside that, to read.
        read_only: Whether the workspace is only to be read.

    Raises:
        ConfigError: the workspace holds all of the home, or a ``readable`` path is not there.
    """
    workspace, home, odek_home = workspace.resolve(), home.resolve(), odek_home.resolve()
    if home.is_relative_to(workspace):
        raise ConfigError(
            f"sandbox: the workspace {workspace} holds your home, which a sandbox keeps out; "
            "start odek in a directory of the work"
        )
    for path in readable:
        if not path.exists():
            raise ConfigError(f"sandbox_readable: {path} does not exist; remove it from the setting")
    shown = [path.resolve() for path in (*programs, *readable)]
    repository = find_repository(workspace)
    if repository is not None and home.is_relative_to(repository.top):
        repository = None  # a home under version control
    mounts = [
        *([Mount("empty", home)] if home != Path("/") else []),
        *(Mount("read", path) for path in _outermost(shown) if not path.is_relative_to(workspace)),
    ]
    if repository is not None and repository.top != workspace:
        mounts.append(Mount("read", repository.top))
    if odek_home.exists() and any(
        odek_home.is_relative_to(mount.path) for mount in mounts if mount.kind == "read"
    ):
        mounts.append(Mount("closed", odek_home))
    mounts.append(Mount("read" if read_only else "write", workspace))
    if repository is not None:
        mounts += repository_mounts(repository, read_only=read_only)
    if odek_home.is_relative_to(workspace) and odek_home.exists():
        mounts.append(Mount("closed", odek_home))
    if repository is None or read_only:
        return View(workspace, home, tuple(mounts))
    made = () if repository.hooks is None else (repository.hooks,)
    return View(workspace, home, tuple(mounts), repository.must_stay_absent, made)


def repository_mounts(repository: Repository, *, read_only: bool) -> Iterator[Mount]:
    """Yield the mounts of what git keeps: to write, without what git obeys.

    Each is a mount of its own also where it is shown already, because what is mounted can
    neither be renamed nor be replaced.
    """
    yield Mount("read", repository.common) if repository.is_linked else Mount("write", repository.common)
    if read_only:
        return
    for path in repository.written:
        yield Mount("write", path)
    for path in repository.obeyed:
        yield Mount("read", path)
    if repository.hooks is not None:
        yield Mount("read", repository.hooks)


def _shut(path: Path) -> Mount:
    return Mount("closed" if path.is_dir() else "blank", path)


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """Return ``paths`` without those below others, in order of their names."""
    kept: list[Path] = []
    for path in sorted(set(paths)):
        if not any(path.is_relative_to(other) for other in kept):
            kept.append(path)
    return kept
