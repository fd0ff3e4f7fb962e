"""A child whose program is its task: run as a script, or as the entry of forked children.

The payload is Python code. It may use ``ready()``, ``progress(value)``, ``finish(value)``,
``failed(text)`` and ``write(bytes)``, which writes to standard output as it is, and the
modules named below.
"""

import json
import os
import signal
import sys
import time

__all__ = ["main"]


def write(data: bytes) -> None:
    """Write to standard output, whole."""
    while data:
        data = data[os.write(1, data) :]


def message(**fields: object) -> None:
    """Write one line of JSON."""
    write(json.dumps(fields).encode() + b"\n")


def main() -> None:
    """Read the task and become its program."""
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(0, 65_536)
        if not chunk:
            return
        line += chunk
    names = {
        "os": os,
        "signal": signal,
        "sys": sys,
        "time": time,
        "write": write,
        "ready": lambda: message(type="ready", pid=os.getpid()),
        "progress": lambda value: message(type="progress", payload=value),
        "finish": lambda value: message(type="finished", payload=value),
        "failed": lambda text: message(type="failed", error=text),
    }
    exec(compile(json.loads(line)["payload"], "task", "exec"), names)  # noqa: S102 - the tests' own code


if __name__ == "__main__":
    main()
