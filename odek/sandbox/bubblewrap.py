"""The command line of bubblewrap: a sandbox of namespaces, without privileges. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from odek.sandbox.mounts import Mount, View

__all__ = ["SCRATCH_FOLDERS", "bubblewrap_argv", "inside_environment"]

SCRATCH_FOLDERS = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - private ones, made for each command

_UNSHARED = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")

LOST_VARIABLES = frozenset(
    {
        "DBUS_SESSION_BUS_ADDRESS",
        "DISPLAY",
        "GPG_AGENT_INFO",
        "SSH_AGENT_PID",
        "SSH_AUTH_SOCK",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "XDG_RUNTIME_DIR",
    }
)
"""They name sockets that are not there."""


def bubblewrap_argv(
    program: str,
    inside: Sequence[str],
    view: View,
    *,
    system: Sequence[Mount],
    kernel: Sequence[Mount],
    network: bool,
) -> list[str]:
    """Return the command line that runs ``inside`` as process 1 of a sandbox.

    It is without capabilities, in namespaces of its own (process, user, IPC, host name and, unless
    ``network``, network), without a terminal, and dies with its parent.
    """
    closed = [mount for mount in (*system, *kernel, *view.mounts) if mount.kind == "closed"]
    return [
        program,
        *_UNSHARED,
        *([] if network else ["--unshare-net"]),
        *("--hostname", "sandbox"),
        *("--cap-drop", "ALL"),
        "--new-session",
        "--die-with-parent",
        "--as-pid-1",
        *(word for mount in system for word in _mount(mount)),
        *("--proc", "/proc", "--dev", "/dev"),
        *(word for mount in kernel for word in _mount(mount)),
        *(word for folder in SCRATCH_FOLDERS for word in ("--tmpfs", folder)),
        *(word for mount in view.mounts for word in _mount(mount)),
        # Last of all: what is mounted inside of them needs a place to be made.
        *(word for mount in closed for word in ("--remount-ro", str(mount.path))),
        *("--remount-ro", "/"),
        "--",
        *inside,
    ]


def _mount(mount: Mount) -> Iterator[str]:
    path = str(mount.path)
    match mount.kind:
        case "read":
            yield from ("--ro-bind", path, path)
        case "write":
            yield from ("--bind", path, path)
        case "empty" | "closed":
            yield from ("--tmpfs", path)
        case "blank":
            yield from ("--ro-bind", "/dev/null", path)
        case "link":
            yield from ("--symlink", mount.target, path)


def inside_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what commands in there see: without what is not there."""
    kept = {name: value for name, value in environment.items() if name not in LOST_VARIABLES}
    return {**kept, "TMPDIR": SCRATCH_FOLDERS[0]}
