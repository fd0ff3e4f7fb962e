"""The command line of docker: a sandbox that is a container, with the programs of an image. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from odek.sandbox.mounts import Mount, View

__all__ = ["Container", "docker_argv", "passed_variables"]

SCRATCH_FOLDERS = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - private ones, made for each command

SCRATCH_OPTIONS = "rw,exec,nosuid,nodev,mode=1777"

_PASSED = ("CI", "LANG", "LANGUAGE", "NO_COLOR", "PAGER", "TERM", "TZ")
_PASSED_BEGINNINGS = ("LC_", "GIT_")

SCRIPT = """\
exec 3<&0 0</dev/null
{ cat >/dev/null 2>&1; kill -KILL -1; } <&3 3<&- >/dev/null 2>&1 &
exec 3<&-
if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; fi
exec sh -c "$1"
"""
"""Run in the container. Its input ends with the client of docker, however that ends; then all is killed."""


class Container(msgspec.Struct, frozen=True):
    """A container to be made: ``user`` is the ids of user and group that it runs with."""

    image: str
    name: str
    user: tuple[int, int]
    cwd: Path


def docker_argv(
    program: str,
    command: str,
    view: View,
    container: Container,
    *,
    variables: Iterable[str],
    network: bool,
) -> list[str]:
    """Return the command line that runs ``command`` in a container that is removed at its end.

    The input of the client must stay open as long as the command is to live. ``variables``
    are names; their values are those of the client's environment.
    """
    return [
        *(program, "run", "--rm", "--init", "--interactive", "--pull", "never", "--log-driver", "none"),
        *("--name", container.name, "--hostname", "sandbox"),
        *("--network", "bridge" if network else "none"),
        *("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only"),
        *("--user", ":".join(map(str, container.user)), "--workdir", str(container.cwd)),
        *(word for folder in SCRATCH_FOLDERS for word in ("--tmpfs", f"{folder}:{SCRATCH_OPTIONS}")),
        *(word for mount in view.mounts for word in _mount(mount)),
        *("--env", f"HOME={view.home}"),
        *(word for variable in variables for word in ("--env", variable)),
        *("--entrypoint", "/bin/sh", container.image, "-c", SCRIPT, "sh", command),
    ]


def passed_variables(environment: Mapping[str, str]) -> list[str]:
    """Return which variables go into a container: what says nothing about this machine."""
    return sorted(name for name in environment if name in _PASSED or name.startswith(_PASSED_BEGINNINGS))


def _mount(mount: Mount) -> Iterator[str]:
    path = str(mount.path)
    match mount.kind:
        case "read":
            yield from ("--mount", _fields(("type=bind", f"source={path}", f"target={path}", "readonly")))
        case "write":
            yield from ("--mount", _fields(("type=bind", f"source={path}", f"target={path}")))
        case "blank":
            yield from ("--mount", _fields(("type=bind", "source=/dev/null", f"target={path}", "readonly")))
        case "empty":
            yield from ("--tmpfs", f"{path}:{SCRATCH_OPTIONS}")
        case "closed":
            yield from ("--tmpfs", f"{path}:ro,mode=555")
        case "link":
            return  # of this machine's system; an image has its own


def _fields(fields: Sequence[str]) -> str:
    """Return ``fields`` as docker reads them: a line of comma-separated values."""
    return ",".join(
        '"' + field.replace('"', '""') + '"' if any(char in field for char in ',"\n\r') else field
        for field in fields
    )
