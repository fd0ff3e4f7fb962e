"""A real sandbox of docker, where a daemon answers and there is a busybox to make an image of."""

import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import trio

from odek.config.settings import Config
from odek.errors import ConfigError
from odek.sandbox.boxes import Shown
from odek.sandbox.choice import open_sandbox
from tests.support.sandboxes import run_in
from tests.support.waiting import wait_until

OWNER = """
    import os, sys, trio
    from pathlib import Path
    from odek.sandbox.boxes import Docker, Planted, Shown

    async def main(program, image, workspace, command):
        home = Path(workspace).parent / "home"
        shown = Shown(workspace=Path(workspace), home=home, odek_home=home)
        launcher = Docker(program, image, shown, Planted(print))
        async with launcher.open(command, cwd=Path(workspace), env=dict(os.environ)) as tree:
            await tree.wait_exited()

    trio.run(main, *sys.argv[1:])
"""


def docker(*arguments: str, stdin: bytes = b"") -> str:
    """Run a command of docker and return what it says."""
    command = ["docker", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=True).stdout.decode()


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    """An image of nothing but busybox, removed at the end."""
    busybox = shutil.which("busybox")
    if busybox is None or shutil.which("docker") is None:
        pytest.skip("needs docker and busybox")
    if subprocess.run(["docker", "version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no daemon of docker answers")
    if b"not a dynamic" not in subprocess.run(["ldd", busybox], capture_output=True, check=False).stderr:
        pytest.skip("the busybox here is not static")
    name = f"odek-test:{uuid4().hex[:8]}"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for folder in ("bin", "dev", "etc", "proc", "run", "tmp", "var", "var/tmp"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        archive.add(Path(busybox).resolve(), "bin/busybox")
        for applet in ("sh", "cat", "echo", "hostname", "id", "ls", "nc", "sleep", "touch", "setsid", "kill"):
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
    docker("import", "-", name, stdin=buffer.getvalue())
    yield name
    docker("rmi", "--force", name)


def containers(image: str) -> list[str]:
    """Return the containers that there are of an image."""
    return docker("ps", "--all", "--quiet", "--filter", f"ancestor={image}").split()


async def test_commands_run_in_a_container(image: str, tmp_path: Path) -> None:
    """The workspace can be changed, nothing else; there is no network; the person's ids are kept."""
    work = tmp_path / "work"
    work.mkdir()
    shown = Shown(workspace=work, home=tmp_path, odek_home=tmp_path / "home")
    config = Config(sandbox=True, sandbox_backend="docker", sandbox_image=image)
    command = "hostname; id -u; echo hi > made; touch /x; ls -A ~; nc -w 1 127.0.0.1 9; exit 7"

    async with open_sandbox(config, shown, dict(os.environ), print) as sandbox:
        done = await run_in(sandbox, work, command, **os.environ)

    assert done.status == 7
    assert done.output.split()[:2] == ["sandbox", str(os.getuid())]
    assert "/x: Read-only file system" in done.output
    assert "\nwork\n" in done.output
    assert (work / "made").read_text() == "hi\n"
    assert containers(image) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_container_ends_with_its_killed_owner(
    image: str, tmp_path: Path, number: signal.Signals
) -> None:
    """Whatever runs in it and is deaf to everything; two seconds later the container is removed too."""
    work = tmp_path / "work"
    work.mkdir()
    command = "trap '' TERM; setsid sleep 300 & touch up; sleep 300; sleep 300"
    owner = await trio.lowlevel.open_process(
        [
            sys.executable,
            "-c",
            textwrap.dedent(OWNER),
            shutil.which("docker") or "",
            image,
            str(work),
            command,
        ],
        cwd=Path(__file__).parents[2],
    )
    try:
        await wait_until((work / "up").exists)
        assert len(containers(image)) == 1
    finally:
        owner.send_signal(number)
        await owner.wait()
    await wait_until(lambda: containers(image) == [], seconds=2)


async def test_a_missing_image_is_told(image: str, tmp_path: Path) -> None:
    """Nothing is downloaded for it."""
    work = tmp_path / "work"
    work.mkdir()
    shown = Shown(workspace=work, home=tmp_path, odek_home=tmp_path / "home")
    config = Config(sandbox=True, sandbox_backend="docker", sandbox_image=f"{image}-gone")

    with pytest.raises(ConfigError, match="docker does not work"):
        async with open_sandbox(config, shown, dict(os.environ), print):
            pass
