"""Surroundings that nobody set up with care: the command works, or says in one line what is missing."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.cli import STARTS_IN_ASCII, Odek

ASKED = "write a.txt: hello, then run cat a.txt"
UNKNOWN_USER = ("unshare", "--user", "--map-user=12345", "--map-group=12345")


def by_unknown_user(odek: Odek, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a task as a user without an entry and without HOME."""
    known = {name: value for name, value in odek.environment.items() if name not in {"HOME", "ODEK_HOME"}}
    return subprocess.run(
        [*UNKNOWN_USER, sys.executable, "-m", "odek", "run", "run echo here"],
        env={**known, **environ},
        cwd=odek.workspace,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


@pytest.fixture
def odek(tmp_path: Path) -> Odek:
    """The command in a place of its own."""
    return Odek(tmp_path)


@pytest.mark.parametrize(
    "environment",
    [
        {"TERM": "dumb", "COLUMNS": "20", "LANG": "C"},
        pytest.param({"TERM": "", "COLUMNS": "0", "LC_ALL": "no_SUCH.encoding"}, marks=STARTS_IN_ASCII),
        {"COLUMNS": "wide", "PYTHONIOENCODING": "ascii"},
        {"TMPDIR": "/nonexistent/tmp"},
        {"HOME": "/nonexistent/home"},
    ],
    ids=str,
)
async def test_odd_variables_are_no_hindrance(odek: Odek, environment: Mapping[str, str]) -> None:
    """A task is done, whatever they say of the terminal, the language or the directories."""
    done = await odek.run("run", ASKED, environment=environment)

    assert done.status == 0
    assert (odek.workspace / "a.txt").read_text() == "hello\n"


@pytest.mark.parametrize("umask", [0o777, 0o000], ids=oct)
async def test_a_umask_neither_opens_nor_closes_what_is_kept(odek: Odek, umask: int) -> None:
    """Sessions and facts are the person's alone, and can be read again."""
    before = os.umask(umask)
    try:
        first = await odek.run("run", "remember that I like tea")
        second = await odek.run("run", "what do you know about tea")
    finally:
        os.umask(before)

    assert (first.status, second.status) == (0, 0)
    assert "I like tea" in second.stdout
    modes = {path.stat().st_mode & 0o777 for path in odek.home.rglob("*")}
    assert modes == {0o600, 0o700}


@pytest.mark.skipif(
    subprocess.run([*UNKNOWN_USER, "true"], capture_output=True, check=False).returncode != 0,
    reason="no namespace for a user without an entry",
)
def test_a_user_without_a_home_needs_one_for_odek_alone(odek: Odek) -> None:
    """As in a container: without ODEK_HOME one line says what to set, and with it all is well."""
    refused = by_unknown_user(odek)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr == "odek: no home directory is known; set HOME or ODEK_HOME\n"

    done = by_unknown_user(odek, ODEK_HOME=str(odek.home))
    assert (done.returncode, "here" in done.stdout) == (0, True)
    assert (odek.home / "sessions").is_dir()
