"""The command lines of the sandboxes: every wall is asked for, in an order that holds."""

import csv
import subprocess
from pathlib import Path

import pytest

from odek.sandbox.bubblewrap import bubblewrap_argv, inside_environment
from odek.sandbox.docker import SCRIPT, Container, docker_argv, passed_variables
from odek.sandbox.mounts import Mount, View

VIEW = View(
    workspace=Path("/home/a/work"),
    home=Path("/home/a"),
    mounts=(
        Mount("empty", Path("/home/a")),
        Mount("read", Path("/home/a/tools")),
        Mount("closed", Path("/home/a/tools/.odek")),
        Mount("write", Path("/home/a/work")),
        Mount("read", Path("/home/a/work/.git/config")),
    ),
)
SYSTEM = (
    Mount("link", Path("/bin"), "usr/bin"),
    Mount("read", Path("/usr")),
    Mount("blank", Path("/etc/shadow")),
    Mount("closed", Path("/etc/ssh")),
)
KERNEL = (Mount("read", Path("/proc/sys")),)


def bubblewrap(*, network: bool = False) -> list[str]:
    """Return a command line of bubblewrap."""
    return bubblewrap_argv(
        "/usr/bin/bwrap", ["first", "7"], VIEW, system=SYSTEM, kernel=KERNEL, network=network
    )


def docker(view: View = VIEW, *, network: bool = False) -> list[str]:
    """Return a command line of docker."""
    return docker_argv(
        "/usr/bin/docker",
        "echo 'hi' | cat",
        view,
        Container("image:1", "odek-1", (1000, 1001), Path("/home/a/work")),
        variables=["LANG"],
        network=network,
    )


def at(argv: list[str], *words: str) -> int:
    """Return where ``words`` stand one after another."""
    return next(n for n in range(len(argv)) if tuple(argv[n : n + len(words)]) == words)


def test_bubblewrap_takes_every_namespace_and_every_right() -> None:
    """The process dies with its parent, has no terminal and no capability, and is process 1."""
    argv = bubblewrap()

    wanted = ["user", "pid", "ipc", "uts", "net", "cgroup-try"]
    assert {f"--unshare-{name}" for name in wanted} <= set(argv)
    assert {"--die-with-parent", "--new-session", "--as-pid-1"} <= set(argv)
    assert at(argv, "--cap-drop", "ALL")
    assert argv[-3:] == ["--", "first", "7"]
    assert "--unshare-net" not in bubblewrap(network=True)


def test_bubblewrap_lays_the_inner_over_the_outer() -> None:
    """The order of the mounts is kept; what is shut is so last of all, when all that lies in it is there."""
    argv = bubblewrap()

    order = [
        at(argv, "--symlink", "usr/bin", "/bin"),
        at(argv, "--ro-bind", "/usr", "/usr"),
        at(argv, "--ro-bind", "/dev/null", "/etc/shadow"),
        at(argv, "--proc", "/proc"),
        at(argv, "--ro-bind", "/proc/sys", "/proc/sys"),
        at(argv, "--tmpfs", "/tmp"),
        at(argv, "--tmpfs", "/home/a"),
        at(argv, "--ro-bind", "/home/a/tools", "/home/a/tools"),
        at(argv, "--tmpfs", "/home/a/tools/.odek"),
        at(argv, "--bind", "/home/a/work", "/home/a/work"),
        at(argv, "--ro-bind", "/home/a/work/.git/config", "/home/a/work/.git/config"),
        at(argv, "--remount-ro", "/etc/ssh"),
        at(argv, "--remount-ro", "/home/a/tools/.odek"),
        at(argv, "--remount-ro", "/"),
    ]
    assert order == sorted(order)


def test_what_names_a_socket_outside_is_not_handed_in() -> None:
    """Other variables are, and temporary files go where there is room for them."""
    environment = {"SSH_AUTH_SOCK": "/run/x", "DISPLAY": ":0", "TMPDIR": "/home/a/tmp", "LANG": "C"}

    assert inside_environment(environment) == {"LANG": "C", "TMPDIR": "/tmp"}


def test_docker_takes_every_right_and_removes_what_it_made() -> None:
    """No network, no capability, nothing to write but the workspace; no download, and no log."""
    argv = docker()

    assert {"--rm", "--init", "--interactive", "--read-only"} <= set(argv)
    for words in (
        ("--network", "none"),
        ("--pull", "never"),
        ("--log-driver", "none"),
        ("--cap-drop", "ALL"),
        ("--security-opt", "no-new-privileges"),
        ("--user", "1000:1001"),
        ("--workdir", "/home/a/work"),
        ("--env", "LANG"),
        ("--env", "HOME=/home/a"),
    ):
        assert at(argv, *words)
    assert argv[-6:] == ["/bin/sh", "image:1", "-c", SCRIPT, "sh", "echo 'hi' | cat"]
    assert at(docker(network=True), "--network", "bridge")


def test_docker_mounts_what_the_view_says() -> None:
    """At the same places, to read or to write, and whatever their names are."""
    path = Path('/w/a,b "c"')
    argv = docker(
        View(path, Path("/w"), (Mount("write", path), Mount("read", path / "x"), Mount("empty", Path("/w"))))
    )
    mounts = [next(csv.reader([argv[n + 1]])) for n, word in enumerate(argv) if word == "--mount"]

    assert mounts == [
        ["type=bind", f"source={path}", f"target={path}"],
        ["type=bind", f"source={path}/x", f"target={path}/x", "readonly"],
    ]
    assert at(argv, "--tmpfs", "/w:rw,exec,nosuid,nodev,mode=1777")


def test_a_container_is_told_nothing_of_this_machine() -> None:
    """Its own paths count, and its own home; language and what git was told go in."""
    environment = {
        "PATH": "/x",
        "HOME": "/h",
        "AWS_KEY": "s",
        "LC_ALL": "C",
        "GIT_CONFIG_COUNT": "1",
        "TERM": "dumb",
    }

    assert passed_variables(environment) == ["GIT_CONFIG_COUNT", "LC_ALL", "TERM"]


@pytest.mark.parametrize(
    ("command", "status", "output"),
    [("echo out; echo err >&2; exit 3", 3, b"out\nerr\n"), ("cat; echo $0", 0, b"bash\n")],
)
def test_the_script_of_a_container_runs_the_command(command: str, status: int, output: bytes) -> None:
    """It hands its status on, and gives it no input, however long its own stays open."""
    process = subprocess.Popen(
        # Where kill reaches the container's processes alone; here that would be everybody.
        ["sh", "-c", SCRIPT.replace("kill -KILL -1", ":"), "sh", command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.read() == output
    assert process.wait() == status
    process.stdin.close()
    process.stdout.close()
