"""What reading or writing a path means: inside the workspace, elsewhere, or guarded.

A path counts by what it resolves to, symlinks included. Two sets are guarded wherever
they lie: places that hold credentials (reading them) and places whose content is later
run or obeyed (writing them). The temporary directories count as the workspace does.

A path may be a pattern: ``*``, ``?`` and ``[`` match as in a shell, ``UNRESOLVED``
stands for a part that is not known before the command runs and matches anything.
"""

import os
import re
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

import msgspec

from odek.trust.risk import Risk

__all__ = [
    "UNRESOLVED",
    "Place",
    "Where",
    "is_inside",
    "judge_delete",
    "judge_read",
    "judge_write",
    "literal",
    "place",
    "reads_outside",
]

UNRESOLVED = "\x00"
"""A part of a word that only the running shell knows; NUL occurs in no real word."""


class Where(msgspec.Struct, frozen=True):
    """Where a call would run. All paths are absolute; none needs to exist.

    ``cwd`` lies inside ``workspace`` at the start of a command. ``odek_home`` is the
    directory of configuration, memory and sessions.
    """

    workspace: Path
    cwd: Path
    home: Path
    odek_home: Path


class Place(msgspec.Struct, frozen=True):
    """A path with its symlinks resolved as far as it is known. ``parts`` excludes the root."""

    text: str
    parts: tuple[str, ...]

    @property
    def known(self) -> bool:
        """Whether no component is a pattern or unresolved."""
        return not _PATTERN.search(self.text)


_PATTERN = re.compile(r"[*?\[\x00]")
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - named to be judged, nothing is created there
_HARMLESS_DEVICE = re.compile(
    r"/dev/(null|zero|full|u?random|tty|std(in|out|err)|fd/\d+|pts/\d+)$|/proc/self/fd/\d+$"
)
_DISK = re.compile(
    r"/dev/(([shv]|xv)d[a-z*?\[\x00]|nvme\d|mmcblk\d|disk\d?|rdisk\d|dm-\d|md\d|loop\d|mapper/|mem$|kmem$|port$)"
)

_CREDENTIAL_NAME = re.compile(
    r"(id_(rsa|dsa|ecdsa|ed25519)(_sk)?|ssh_host_\w+_key|secrets\.env|.*\.(kdbx|keychain-db|p12|pfx|jks))$",
    re.IGNORECASE,
)

# Inside a repository: git runs these, or programs that they name.
_GIT_CODE = re.compile(
    r"/(\.git|\.git/(modules|worktrees)/.*)/(hooks(/.*)?|config(\.worktree)?|info/attributes)$|/\.git$",
    re.IGNORECASE,
)
_SYSTEM_ROOT = re.compile(
    r"(bin|boot|dev|etc|lib|lib32|lib64|opt|proc|root|run|sbin|srv|sys|usr|var|System|Library|Applications)$"
)


@lru_cache(maxsize=1)
def _credentials() -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return the components of guarded paths, those below the home directory first."""
    source = Path(__file__).with_name("guarded_paths.txt").read_text(encoding="utf-8")
    lines = [line for line in source.splitlines() if line and not line.startswith("#")]
    home = [tuple(line[2:].split("/")) for line in lines if line.startswith("~/")]
    return home, [tuple(line[1:].split("/")) for line in lines if line.startswith("/")]


@lru_cache(maxsize=512)
def _resolved_root(path: str) -> str:
    return _real(path)


def _real(path: str) -> str:
    """Resolve links as far as this process may; what it may not look into stands as it is written."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # a link that may not be read, as in /proc; a NUL
        return os.path.normpath(path)


def place(text: str, base: str, *, follow: bool = True) -> Place:
    """Resolve ``text`` against ``base``, both absolute or ``base`` alone.

    Components before the first pattern are resolved on disk; ``follow=False`` leaves the
    last component as it is, as removing and renaming do.
    """
    joined = text if text.startswith("/") else f"{base}/{text}"
    joined = _normalised_head(joined) if UNRESOLVED in joined else os.path.normpath(joined)
    match = _PATTERN.search(joined)
    if match is None:
        head, tail = (joined, "") if follow else os.path.split(joined)
    else:
        cut = joined.rfind("/", 0, match.start())
        head, tail = joined[:cut] or "/", joined[cut + 1 :]
    resolved = _real(head)
    full = f"{resolved}/{tail}" if tail else resolved
    full = "/" + full.lstrip("/")
    return Place(full, tuple(part for part in full.split("/") if part))


def literal(text: str, base: str) -> Place:
    """Resolve a path whose characters all stand for themselves."""
    full = _real(text if text.startswith("/") else f"{base}/{text}")
    safe = _PATTERN.sub("_", full)
    return Place(safe, tuple(part for part in safe.split("/") if part))


def _normalised_head(joined: str) -> str:
    """Normalise what comes before the unresolved part, so that no ``..`` eats it."""
    slash = joined.rfind("/", 0, joined.find(UNRESOLVED))
    return os.path.normpath(joined[:slash] or "/").rstrip("/") + joined[slash:]


def is_inside(target: Place, directory: str) -> bool:
    """Whether ``target`` is ``directory`` or below it, ``directory`` resolved first."""
    root = _resolved_root(directory)
    return target.text == root or target.text.startswith(root if root == "/" else root + "/")


def judge_write(target: Place, where: Where) -> tuple[Risk, str]:
    """Return the class of writing to ``target``, and why."""
    text = target.text
    if _HARMLESS_DEVICE.match(text):
        return Risk.SAFE, "writes to a device that keeps nothing"
    if _DISK.match(text):
        return Risk.DESTRUCTIVE, f"overwrites the device {text}"
    if text.startswith(("/dev/tcp/", "/dev/udp/")):
        return Risk.NETWORK_EGRESS, "opens a network connection"
    if text in {"/proc/sysrq-trigger", "/proc/sys/kernel/sysrq"}:
        return Risk.DESTRUCTIVE, "commands the kernel directly"
    if UNRESOLVED in text:
        return Risk.SYSTEM_WRITE, "writes to a path that is not known before it runs"
    if _is_guarded_write(target, where):
        return Risk.SYSTEM_WRITE, f"writes to {_short(text, where)}, which is run or obeyed later"
    if _is_workspace(target, where):
        return Risk.LOCAL_WRITE, "writes in the workspace"
    if _is_temporary(target, where):
        return Risk.LOCAL_WRITE, "writes to a temporary directory"
    return Risk.SYSTEM_WRITE, f"writes outside the workspace: {_short(text, where)}"


def judge_delete(target: Place, where: Where, *, recursive: bool) -> tuple[Risk, str]:
    """Return the class of removing ``target``, with all below it when ``recursive``."""
    risk, reason = judge_write(target, where)
    if risk is Risk.DESTRUCTIVE or not recursive:
        return risk, reason.replace("writes", "removes")
    if UNRESOLVED in target.text:
        return Risk.DESTRUCTIVE, "removes a tree that is not known before it runs"
    workspace = _resolved_root(os.fspath(where.workspace))
    if target.text == workspace or workspace.startswith(target.text.rstrip("/") + "/"):
        return Risk.DESTRUCTIVE, "removes the whole workspace"
    if target.text.rpartition("/")[0] == workspace and _is_everything(target.parts[-1]):
        return Risk.DESTRUCTIVE, "removes everything in the workspace"
    if ".git" in target.parts and target.parts[-1] in {".git", "objects", "refs", "*"}:
        return Risk.DESTRUCTIVE, "removes the history of a repository"
    if risk is Risk.LOCAL_WRITE and not any(target.text == _resolved_root(path) for path in _TEMPORARY):
        return Risk.LOCAL_WRITE, reason.replace("writes", "removes")
    return Risk.DESTRUCTIVE, f"removes a tree outside the workspace: {_short(target.text, where)}"


def judge_read(target: Place, where: Where, *, recursive: bool = False) -> tuple[Risk, str]:
    """Return the class of reading ``target``, and why.

    Credentials are ``system_write``, the lowest class above what runs unasked that also
    outranks the network: what they open is the whole account. Reading elsewhere is safe.
    """
    text = target.text
    if text.startswith(("/dev/tcp/", "/dev/udp/")):
        return Risk.NETWORK_EGRESS, "opens a network connection"
    if _DISK.match(text):
        return Risk.SYSTEM_WRITE, f"reads the device {text}"
    if _is_credential(target, where, recursive=recursive):
        return Risk.SYSTEM_WRITE, f"reads credentials or private records: {_short(text, where)}"
    return Risk.SAFE, "reads"


def reads_outside(target: Place, where: Where) -> bool:
    """Whether reading ``target`` brings in what does not belong to the workspace."""
    return not (_is_workspace(target, where) or _HARMLESS_DEVICE.match(target.text))


def _is_workspace(target: Place, where: Where) -> bool:
    workspace = os.fspath(where.workspace)
    if not is_inside(target, workspace):
        return False
    if target.parts and _SYSTEM_ROOT.match(target.parts[0]):
        root = "/" + target.parts[0]
        return _resolved_root(workspace).startswith(root + "/")
    return True


def _is_temporary(target: Place, where: Where) -> bool:
    """Whether ``target`` lies in a temporary directory, and not in a home that lies there too."""
    homes = (where.home, where.odek_home)
    return any(is_inside(target, path) for path in _TEMPORARY) and not any(
        is_inside(target, os.fspath(home)) for home in homes
    )


def _is_own_worktree(target: Place, where: Where) -> bool:
    """Whether ``target`` lies in the worktree in which the work is: all else of odek's home is guarded."""
    directory = f"{os.fspath(where.odek_home)}/worktrees"
    work = _below(Place(_resolved_root(os.fspath(where.workspace)), ()), directory)
    return work is not None and len(work) > 0 and is_inside(target, f"{directory}/{work[0]}")


def _is_guarded_write(target: Place, where: Where) -> bool:
    if _GIT_CODE.search(target.text):
        return True
    if _is_own_worktree(target, where):
        return False
    if is_inside(target, os.fspath(where.odek_home)):
        return True
    home = _below(target, os.fspath(where.home))
    if home is None or not home or not home[0].startswith("."):
        return False
    # A dot directory of the home is settings that programs obey, unless the work lies inside it.
    inside = _below(Place(_resolved_root(os.fspath(where.workspace)), ()), os.fspath(where.home))
    return not (inside and inside[0] == home[0] and _is_workspace(target, where))


def _is_credential(target: Place, where: Where, *, recursive: bool) -> bool:
    if _CREDENTIAL_NAME.match(target.parts[-1] if target.parts else ""):
        return True
    if _is_own_worktree(target, where):
        return False
    if is_inside(target, os.fspath(where.odek_home)):
        return True
    home_credentials, root_credentials = _credentials()
    home = _below(target, os.fspath(where.home))
    if home is not None:
        return _may_reach(home, home_credentials, recursive=recursive)
    return _may_reach(target.parts, root_credentials, recursive=recursive) and not _is_workspace(
        target, where
    )


def _may_reach(parts: tuple[str, ...], guarded: list[tuple[str, ...]], *, recursive: bool) -> bool:
    """Whether ``parts`` may name a guarded path, something below it, or (recursive) above it."""
    for entry in guarded:
        depth = min(len(parts), len(entry))
        if len(parts) < len(entry) and not recursive:
            continue
        if all(_may_match(parts[index], entry[index]) for index in range(depth)):
            return True
    return False


def _may_match(part: str, name: str) -> bool:
    if name in {part, "*"}:
        return True
    pattern = part.casefold().replace(UNRESOLVED, "*")
    return fnmatchcase(name.casefold(), pattern)


def _below(target: Place, directory: str) -> tuple[str, ...] | None:
    """Return the components of ``target`` below ``directory``, None when it is elsewhere."""
    if not is_inside(target, directory):
        return None
    root = _resolved_root(directory)
    return tuple(part for part in target.text[len(root) :].split("/") if part)


def _is_everything(name: str) -> bool:
    """Whether a pattern has nothing in it that restricts what it matches."""
    return bool(_PATTERN.search(name)) and not re.search(r"\w", re.sub(r"\[[^\]]*\]", "", name))


def _short(text: str, where: Where) -> str:
    home = _resolved_root(os.fspath(where.home))
    return "~" + text[len(home) :] if text.startswith(home + "/") else text.replace(UNRESOLVED, "…")
