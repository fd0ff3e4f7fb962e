"""How long until odek is there? Commands that need no agent, and a run up to its first request.

Everything is measured in fresh processes, taken in turn so that a busy moment hits
all of them alike, and compared within the run:

- ``version``, ``--help`` and ``session list`` against ``python -c pass``;
- ``run`` until its first request arrives at a loopback server, against importing the
  libraries that it cannot do without.

    python benchmarks/bench_startup.py [--rounds N]

prints one JSON object. Bytecode is compiled beforehand, as an installation does.
"""

import argparse
import compileall
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]

ANSWER = (
    b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
RESPONSE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n" % len(ANSWER)
) + ANSWER


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    for folder in ("odek", "subagent"):
        compileall.compile_dir(ROOT / folder, quiet=2)
    with tempfile.TemporaryDirectory() as scratch:
        report = measure(rounds, Path(scratch))
    print(json.dumps(report, indent=2))


def measure(rounds: int, scratch: Path) -> dict[str, object]:
    """Return the report of ``rounds`` rounds."""
    odek = [str(Path(sys.executable).with_name("odek"))]
    libraries = f"trio, {'httpx' if find_spec('httpx') else 'httpx2'}, msgspec"
    commands = {
        "pass": [sys.executable, "-c", "pass"],
        "libraries": [sys.executable, "-c", f"import {libraries}"],
        "version": [*odek, "version"],
        "help": [*odek, "--help"],
        "session list": [*odek, "session", "list"],
    }
    times: dict[str, list[float]] = {name: [] for name in [*commands, "first request"]}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(wall_ms(command, scratch))
        times["first request"].append(first_request_ms(odek, scratch))
    best = {name: min(values) for name, values in times.items()}
    return {
        "question": "how long until odek is there?",
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
        "libraries": libraries,
        "rounds": rounds,
        "milliseconds": {
            name: {"min": round(min(values), 1), "median": round(statistics.median(values), 1)}
            for name, values in times.items()
        },
        "ratio_of_minimum": {
            "version / pass": round(best["version"] / best["pass"], 2),
            "help / pass": round(best["help"] / best["pass"], 2),
            "session list / pass": round(best["session list"] / best["pass"], 2),
            "first request / libraries": round(best["first request"] / best["libraries"], 2),
        },
    }


def environment(scratch: Path) -> dict[str, str]:
    """Return the environment of the measured processes: a home of its own, and no key."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ODEK_")}
    for name in ("DEEPSEEK_API_KEY", "OPENAI_API_KEY", "PYTHONDONTWRITEBYTECODE"):
        kept.pop(name, None)
    return kept | {"ODEK_HOME": str(scratch / "home")}


def wall_ms(command: list[str], scratch: Path) -> float:
    """Return the time of one process from start to end."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment(scratch), cwd=scratch)
    return (time.perf_counter() - started) * 1000


def first_request_ms(odek: list[str], scratch: Path) -> float:
    """Return the time from starting ``odek run`` to the first byte of its request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        command = [*odek, "run", "--base-url", url, "--model", "m", "hi"]
        started = time.perf_counter()
        with subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(scratch),
            cwd=scratch,
        ) as process:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(30)
                received = connection.recv(65536)
                elapsed = (time.perf_counter() - started) * 1000
                head, _, body = received.partition(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                )
                while len(body) < length:
                    body += connection.recv(65536)
                connection.sendall(RESPONSE)
            if process.wait(timeout=30) != 0:
                raise SystemExit(f"odek run ended with {process.returncode}")
    return elapsed


if __name__ == "__main__":
    main()
