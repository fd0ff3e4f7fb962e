"""Runs of a program under ``strace``: its calls recorded, and faults put into them."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Call", "missing_strace", "record", "run_module"]

ROOT = Path(__file__).parents[2]
TRACED = "openat,write,pwrite64,fsync,fchmod,rename,renameat,renameat2,close,newfstatat,fstat,lstat,unlinkat"
_LINE = re.compile(r"(\w+)\((.*)\) += (-?\d+)")


class Call(NamedTuple):
    """One system call: ``number`` counts those of the same name in the process, from 1."""

    name: str
    number: int
    arguments: str
    result: int


def missing_strace() -> str:
    """Return why programs cannot be traced here, or ""."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    done = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return "" if done.returncode == 0 else "tracing is not permitted here"


def run_module(
    module: str, *arguments: str, strace: Sequence[str] = (), trace: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a module under strace with the options given; equal runs make equal calls."""
    environ = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["strace", "-qq", "-o", str(trace or os.devnull), "-e", f"trace={TRACED}", *strace]
    return subprocess.run(
        [*options, sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environ,
        timeout=60,
    )


def record(module: str, *arguments: str, folder: Path, begin: str, end: str) -> list[Call]:
    """Return the calls between the writes of ``begin`` and ``end`` to stdout; paths follow descriptors."""
    trace = folder / "trace"
    done = run_module(module, *arguments, strace=["-y", "-s", "64"], trace=trace)
    assert done.returncode == 0, done.stderr
    counts: Counter[str] = Counter()
    calls: list[Call] = []
    inside = False
    for line in trace.read_text().splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        name, text, result = match.groups()
        counts[name] += 1
        if name == "write" and f'"{end}' in text:
            return calls
        if inside:
            calls.append(Call(name, counts[name], text, int(result)))
        inside = inside or (name == "write" and f'"{begin}' in text)
    raise AssertionError(f"{end!r} was not written")
