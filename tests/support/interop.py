"""Servers that others wrote, run as processes from an environment of their own.

`make` builds that environment as ``.venv-interop``; where it could not, because some
package has no wheel for the platform, the tests that need it are skipped and say so.
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["interop_python", "open_server"]

_ENVIRONMENT = Path(__file__).parents[2] / ".venv-interop"


def interop_python(*modules: str) -> str:
    """Return the interpreter of the environment, or skip the test if it lacks one of ``modules``."""
    python = _ENVIRONMENT / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no {_ENVIRONMENT.name}: run `make {_ENVIRONMENT.name}/.installed`")
    probe = f"import importlib.util as u; raise SystemExit(not all(map(u.find_spec, {modules!r})))"
    if subprocess.run([python, "-c", probe], check=False, capture_output=True).returncode:
        pytest.skip(f"{_ENVIRONMENT.name} has no {' or '.join(modules)} for this platform")
    return str(python)


@contextmanager
def open_server(argv: Sequence[str]) -> Iterator[str]:
    """Run a server until the block is left; yield the first http address that it prints.

    What it prints later stays in the pipe: this is for servers that say little.
    """
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        printed = ""
        for line in process.stdout:
            printed += line
            if found := re.search(r"(?:running|listening) on (http://[\d.]+:\d+)", line):
                yield found[1]
                return
        raise AssertionError(f"the server ended before it listened:\n{printed}")
    finally:
        process.kill()
        process.communicate()
