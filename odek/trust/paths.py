"""What reading or writing a path means: inside the workspace, elsewhere, or guarded.

A path counts by what it resolves to, symlinks included. Two sets are guarded wherever
they lie: places that hold credentials (reading them) and places whose content is later
run or obeyed (writing them). The temporary directories count as the workspace does.

A path may be a pattern: ``*``, ``?`` and ``[`` match as in a shell, ``UNRESOLVED``
stands for a part that is not known before the command runs and matches anything.
"""

import os
import re
import stat
from functools import lru_cache
from itertools import islice
from pathlib import Path

import msgspec

from odek.patterns import late_pattern
from odek.trust import guards
from odek.trust.guards import UNRESOLVED
from odek.trust.risk import Risk

__all__ = [
    "UNRESOLVED",
    "Place",
    "Where",
    "has_other_name",
    "is_inside",
    "judge_delete",
    "judge_read",
    "judge_write",
    "leaves_for_temporary",
    "literal",
    "place",
    "reads_outside",
    "shown",
]


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
    """A path with its symlinks resolved as far as it is known. ``parts`` excludes the root.

    ``climbs`` says that it was written as a way up with ``..`` from the current directory.
    """

    text: str
    parts: tuple[str, ...]
    climbs: bool = False

    @property
    def known(self) -> bool:
        """Whether no component is a pattern or unresolved."""
        return not _PATTERN.search(self.text)


_PATTERN = late_pattern(r"[*?\[\x00]")
# Looked at where a command writes through a pattern; some milliseconds. No measurement behind this.
_MOST_MATCHES = 1_000
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - named to be judged, nothing is created there
_HARMLESS_DEVICE = late_pattern(
    r"/dev/(null|zero|full|u?random|tty|std(in|out|err)|fd/\d+|pts/\d+)$|/proc/self/fd/\d+$"
)
_DISK = late_pattern(
    r"/dev/(([shv]|xv)d[a-z*?\[\x00]|nvme\d|mmcblk\d|disk\d?|rdisk\d|dm-\d|md\d|loop\d|mapper/|mem$|kmem$|port$)"
)

# What lies among the keys of ssh for everybody to see.
_PUBLIC = late_pattern(r"[\w.@-]+\.pub|known_hosts(\.old)?")
# Inside a repository: git runs these, or programs that they name.
_GIT_CODE = late_pattern(
    r"/(\.git|\.git/modules/.*)/(hooks(/.*)?|config(\.worktree)?|info/attributes)$", re.IGNORECASE
)
# The root and the current directory of a process are doors to every other path.
_THROUGH_PROCESS = late_pattern(r"/proc/+([^/]+)(?:/+task/+[^/]+)?/+(root|cwd)(?=/|$)")
# A work tree that odek made for a task lies at `worktrees/NAME` below its home.
_WORKTREE_DEPTH = 2
_SYSTEM_ROOT = late_pattern(
    r"(bin|boot|dev|etc|lib|lib32|lib64|opt|proc|root|run|sbin|srv|sys|usr|var|System|Library|Applications)$"
)


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
    if "/proc/" in joined:
        joined = _beyond_processes(joined, base)
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
    climbs = ".." in text and not text.startswith("/")
    return Place(full, tuple(part for part in full.split("/") if part), climbs)


def _beyond_processes(joined: str, base: str) -> str:
    """Return a path that goes through the root or the directory of processes, as it goes on there."""
    while (match := _THROUGH_PROCESS.search(joined)) and os.path.normpath(joined[: match.end()]).startswith(
        "/proc/"
    ):
        start = "" if match[2] == "root" else base if match[1] == "self" else "/" + UNRESOLVED
        joined = f"{start}/{joined[match.end() :].lstrip('/')}"
    return joined


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


def judge_write(target: Place, where: Where, *, whole: bool = False) -> tuple[Risk, str]:
    """Return the class of writing to ``target``, and why; ``whole`` puts a directory with all in it there."""
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
    if _is_guarded_write(target, where, whole=whole):
        return Risk.SYSTEM_WRITE, f"writes to {shown(target, where)}, which is run or obeyed later"
    if _is_workspace(target, where):
        return Risk.LOCAL_WRITE, "writes in the workspace"
    if _is_temporary(target, where):
        return Risk.LOCAL_WRITE, "writes to a temporary directory"
    return Risk.SYSTEM_WRITE, f"writes outside the workspace: {shown(target, where)}"


def judge_delete(target: Place, where: Where, *, recursive: bool) -> tuple[Risk, str]:
    """Return the class of removing ``target``, with all below it when ``recursive``."""
    risk, reason = judge_write(target, where)
    if risk is Risk.DESTRUCTIVE or not recursive:
        return risk, reason.replace("writes", "removes")
    if UNRESOLVED in target.text:
        return Risk.DESTRUCTIVE, "removes a tree that is not known before it runs"
    workspace = _resolved_root(os.fspath(where.workspace))
    if target.text == workspace:
        return Risk.DESTRUCTIVE, "removes the whole workspace"
    if workspace.startswith(target.text.rstrip("/") + "/"):
        return Risk.DESTRUCTIVE, f"removes all that the workspace lies in: {shown(target, where)}"
    if target.text.rpartition("/")[0] == workspace and _is_everything(target.parts[-1]):
        return Risk.DESTRUCTIVE, "removes everything in the workspace"
    if ".git" in target.parts and target.parts[-1] in {".git", "objects", "refs", "*"}:
        return Risk.DESTRUCTIVE, "removes the history of a repository"
    if risk is Risk.LOCAL_WRITE and not any(target.text == _resolved_root(path) for path in _TEMPORARY):
        return Risk.LOCAL_WRITE, reason.replace("writes", "removes")
    return Risk.DESTRUCTIVE, f"removes a tree outside the workspace: {shown(target, where)}"


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
        return Risk.SYSTEM_WRITE, f"reads credentials or private records: {shown(target, where)}"
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
    """Whether ``target`` lies in a temporary directory for everybody.

    That is not so for a home that lies there too, nor for what surrounds a workspace there:
    the folder in it that holds the workspace, and what is reached from the workspace by ``..``.
    """
    homes = (where.home, where.odek_home)
    if any(is_inside(target, os.fspath(home)) for home in homes):
        return False
    workspace = _resolved_root(os.fspath(where.workspace))
    for root in map(_resolved_root, _TEMPORARY):
        if not (target.text == root or target.text.startswith(root + "/")):
            continue
        if not workspace.startswith(root + "/"):
            return True
        surrounding = workspace[len(root) + 1 :].partition("/")[0]
        return not (target.climbs or is_inside(target, f"{root}/{surrounding}"))
    return False


def has_other_name(target: Place) -> bool:
    """Whether ``target`` is a file that has a second name (hard link), which may lie anywhere."""
    if not target.known:
        return False
    try:
        status = os.lstat(target.text)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def linked_matches(target: Place) -> list[Place]:
    """Return where links lead, symbolic or hard, that the pattern in the last part of ``target`` matches.

    Of more matches than are quickly looked at it is not known where they lead. Patterns in the names of
    directories are not followed.
    """
    directory = target.text.rpartition("/")[0]
    if target.known or UNRESOLVED in target.text or _PATTERN.search(directory):
        return []
    from glob import iglob  # few commands write through a pattern

    found = list(islice(iglob(target.text), _MOST_MATCHES + 1))  # noqa: PTH207 - takes `**` as the shell does
    if len(found) > _MOST_MATCHES:
        return [Place(f"{directory}/{UNRESOLVED}", (*target.parts[:-1], UNRESOLVED))]
    places = [(match, literal(match, directory)) for match in found]
    return [place for match, place in places if place.text != match or has_other_name(place)]


def leaves_for_temporary(target: Place, where: Where) -> bool:
    """Whether ``target`` is reached by ``..`` out of a workspace that lies in a temporary directory."""
    inside = is_inside(target, os.fspath(where.workspace))
    return target.climbs and not inside and any(is_inside(target, root) for root in _TEMPORARY)


def _is_odeks_own(target: Place, where: Where) -> bool:
    """Whether ``target`` is odek's: below its home, and not in the work tree there that is in use."""
    below = _below(target, os.fspath(where.odek_home))
    if below is None:
        return False
    workspace = Place(_resolved_root(os.fspath(where.workspace)), ())
    own = _below(workspace, os.fspath(where.odek_home))
    if own is None or len(own) < _WORKTREE_DEPTH or own[0] != "worktrees":
        return True
    return below[:_WORKTREE_DEPTH] != own[:_WORKTREE_DEPTH]


def _is_guarded_write(target: Place, where: Where, *, whole: bool = False) -> bool:
    if _GIT_CODE.search(target.text) or _is_odeks_own(target, where):
        return True
    below = _below(target, os.fspath(where.workspace))
    root = _resolved_root(os.fspath(where.workspace))
    if below is not None and guards.is_obeyed(below, root, whole=whole):
        return True
    home = _below(target, os.fspath(where.home))
    if home is None or not home or not home[0].startswith("."):
        return False
    # A dot directory of the home is settings that programs obey, unless the work lies inside it.
    inside = _below(Place(_resolved_root(os.fspath(where.workspace)), ()), os.fspath(where.home))
    return not (inside and inside[0] == home[0] and _is_workspace(target, where))


def _is_credential(target: Place, where: Where, *, recursive: bool) -> bool:
    if target.parts and guards.is_credential_name(target.parts[-1]):
        return True
    if is_inside(target, os.fspath(where.odek_home)):
        return _is_odeks_own(target, where)
    home = _below(target, os.fspath(where.home))
    if home is not None and home[:1] == (".ssh",) and _PUBLIC.fullmatch("/".join(home[1:])):
        return False
    if home is not None:
        return guards.may_reach_credential(home, below_home=True, recursive=recursive)
    # The home itself may lie below what is read.
    if recursive and is_inside(Place(_resolved_root(os.fspath(where.home)), ()), target.text):
        return True
    return guards.may_reach_credential(
        target.parts, below_home=False, recursive=recursive
    ) and not _is_workspace(target, where)


def _below(target: Place, directory: str) -> tuple[str, ...] | None:
    """Return the components of ``target`` below ``directory``, None when it is elsewhere."""
    if not is_inside(target, directory):
        return None
    root = _resolved_root(directory)
    return tuple(part for part in target.text[len(root) :].split("/") if part)


def _is_everything(name: str) -> bool:
    """Whether a pattern has nothing in it that restricts what it matches."""
    return bool(_PATTERN.search(name)) and not re.search(r"\w", re.sub(r"\[[^\]]*\]", "", name))


def shown(target: Place, where: Where) -> str:
    """Return a place as a person reads it: home as ``~``, what is not known as an ellipsis."""
    home, text = _resolved_root(os.fspath(where.home)), target.text.replace(UNRESOLVED, "…")
    return "~" + text[len(home) :] if text == home or text.startswith(home + "/") else text
