"""How long until subagents work? Forked from the warm template against started afresh.

Each sample is a process of its own that opens an agent as ``odek run`` does and whose
model, a server on the loopback that answers at once, has it delegate 1, 4 or 8 tasks.
Times run from the start of the call of ``delegate_tasks``:

- ``first_request_ms``: until the first request of a child arrives at the server, over
  all children; ``last_child_ms``: until that of the last child of its call;
- ``collected_ms``: until the call has its result.

The memory of each child is read in runs of their own: of a forked one while it waits for
a task ("ready"), and of all while the server lets them wait for their first answer. The
template is ready beforehand and children wait, as it is when a model has written down what
to delegate; what the template takes is reported too. The ways are taken in turn, so that a
busy moment hits both.

    python benchmarks/bench_fanout.py [--rounds N]

prints one JSON object, and a table on standard error. Bytecode is compiled beforehand,
as an installation does.
"""

import argparse
import compileall
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from odek.processes import running_processes

ROOT = Path(__file__).parents[1]
WAYS = ("warm", "fresh")
COUNTS = (1, 4, 8)
MEMORY_ROUNDS = 3

TARGET_WARM_MS = 30.0
TARGET_RATIO = 15.0
TARGET_COLLECTED_MS = 500.0
TARGET_PRIVATE_MIB = 8.0


class Server:
    """The model: a process that answers at once."""

    def __init__(self, stdin: IO[str], stdout: IO[str]) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self.url = stdout.readline().strip()

    def next_child(self) -> float:
        """Return when the next child asked, once one has."""
        while (asked := json.loads(self._stdout.readline()))["who"] != "child":
            pass
        return float(asked["at"])

    def release(self) -> None:
        """Let it answer those whom it lets wait."""
        self._stdin.write("go\n")
        self._stdin.flush()


class Samples:
    """What was measured of one way at one number of children; times in seconds, memory in KiB."""

    def __init__(self) -> None:
        self.template: list[float] = []
        self.first: list[float] = []
        self.last: list[float] = []
        self.collected: list[float] = []
        self.ready: list[dict[str, int]] = []
        self.asking: list[dict[str, int]] = []

    def report(self) -> dict[str, Any]:
        """Return medians and ranges: times in ms, memory in MiB."""
        return {
            "first_request_ms": spread(self.first),
            "last_child_ms": spread(self.last),
            "collected_ms": spread(self.collected),
            "ready_mib": sizes(self.ready),
            "asking_mib": sizes(self.asking),
        }


def spread(seconds: list[float]) -> dict[str, float]:
    """Return the least, the median and the most, in ms."""
    figures = {"min": min(seconds), "median": statistics.median(seconds), "max": max(seconds)}
    return {name: round(value * 1000, 1) for name, value in figures.items()}


def sizes(found: list[dict[str, int]]) -> dict[str, float]:
    """Return the medians in MiB; none if nothing was found."""
    kinds = found[0] if found else ()
    return {kind: round(statistics.median(each[kind] for each in found) / 1024, 1) for kind in kinds}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    for folder in ("odek", "subagent"):
        compileall.compile_dir(ROOT / folder, quiet=2)
    with tempfile.TemporaryDirectory() as scratch:
        report = measure(rounds, Path(scratch))
    print(json.dumps(report, indent=2))
    print(table(report), file=sys.stderr)


def measure(rounds: int, scratch: Path) -> dict[str, Any]:
    """Return the report."""
    samples = {(way, count): Samples() for way in WAYS for count in COUNTS}
    with open_server() as server:
        for number in range(rounds + MEMORY_ROUNDS):
            for (way, count), kept in samples.items():
                place = scratch / f"{number}-{way}-{count}"
                (place / "work").mkdir(parents=True)
                if number < rounds:
                    run_once(server, place, way, count, kept)
                else:
                    weigh_once(server, place, way, count, kept)
    one_warm, one_fresh = (statistics.median(samples[way, 1].first) * 1000 for way in WAYS)
    collected = statistics.median(samples["warm", 8].collected) * 1000
    private = max(each["private"] for each in samples["warm", 8].ready) / 1024
    return {
        "question": "how long until subagents work?",
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
        "rounds": rounds,
        "template_ready_ms": spread([s for (way, _), kept in samples.items() for s in kept.template]),
        **{way: {str(count): samples[way, count].report() for count in COUNTS} for way in WAYS},
        "fresh_over_warm": round(one_fresh / one_warm, 1),
        "targets": {
            f"warm median to the first request <= {TARGET_WARM_MS:g} ms": one_warm <= TARGET_WARM_MS,
            f"fresh / warm >= {TARGET_RATIO:g}": one_fresh / one_warm >= TARGET_RATIO,
            f"8 collected in <= {TARGET_COLLECTED_MS:g} ms": collected <= TARGET_COLLECTED_MS,
            f"private memory of each of 8 <= {TARGET_PRIVATE_MIB:g} MiB": private <= TARGET_PRIVATE_MIB,
        },
    }


@contextmanager
def open_server() -> Generator[Server]:
    """Run the model server for a block."""
    command = [sys.executable, str(ROOT / "benchmarks/answering_server.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise SystemExit("the server has no pipes")
        yield Server(process.stdin, process.stdout)


def start(server: Server, place: Path, way: str, count: int, *more: str) -> "subprocess.Popen[str]":
    """Start the measured process in a home and a workspace of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ODEK_")}
    for name in ("DEEPSEEK_API_KEY", "OPENAI_API_KEY", "PYTHONDONTWRITEBYTECODE"):
        kept.pop(name, None)
    program = str(ROOT / "benchmarks/delegating_run.py")
    return subprocess.Popen(
        [sys.executable, program, server.url, str(place / "home"), way, str(count), *more],
        cwd=place / "work",
        env=kept | {"ODEK_HOME": str(place / "home"), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run_once(server: Server, place: Path, way: str, count: int, kept: Samples) -> None:
    """Delegate ``count`` tasks and note what it took."""
    with start(server, place, way, count) as process:
        output, _ = process.communicate(timeout=60)
    if process.returncode != 0:
        raise SystemExit(f"a run ended with {process.returncode}")
    at = json.loads(output)
    asked = [server.next_child() - at["started"] for _ in range(count)]
    if way == "warm":
        kept.template.append(at["template_seconds"])
    kept.first += asked
    kept.last.append(max(asked))
    kept.collected.append(at["collected"] - at["started"])


def weigh_once(server: Server, place: Path, way: str, count: int, kept: Samples) -> None:
    """Note the memory of ``count`` children that wait, for their task and for their first answer."""
    with start(server, place, way, count, "hold") as process:
        if process.stdin is None or process.stdout is None:
            raise SystemExit("a run has no pipes")
        process.stdout.readline()
        kept.ready += map(memory, waiting_children())
        process.stdin.write("go\n")
        process.stdin.flush()
        for _ in range(count):
            server.next_child()
        children = [each for each in running_processes(place / "home") if each.parent == process.pid]
        kept.asking += map(memory, [child.pid for child in children])
        server.release()
        process.communicate(timeout=60)


def waiting_children() -> list[int]:
    """Return the processes that wait for a task."""
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.read_bytes().startswith(b"odek subagent: waiting\0")
    ]


def memory(pid: int) -> dict[str, int]:
    """Return private, shared and proportional memory of a process in KiB."""
    sizes: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]:
        name, size = line.split()[:2]
        sizes[name.rstrip(":")] = int(size)
    return {
        "private": sizes["Private_Clean"] + sizes["Private_Dirty"],
        "shared": sizes["Shared_Clean"] + sizes["Shared_Dirty"],
        "proportional": sizes["Pss"],
    }


def table(report: dict[str, Any]) -> str:
    """Return the medians as a table."""
    lines = ["way    children  first request  last child    collected  private: ready    asking  shared"]
    for way in WAYS:
        for count, found in report[way].items():
            times = [found[name]["median"] for name in ("first_request_ms", "last_child_ms", "collected_ms")]
            first, last, collected = (f"{value:.1f} ms" for value in times)
            asking, ready = found["asking_mib"], found["ready_mib"].get("private", "-")
            lines.append(
                f"{way:6} {count:>8}  {first:>13}  {last:>10}  {collected:>11}"
                f"  {ready:>10} MiB  {asking['private']:>4} MiB  {asking['shared']:>4} MiB"
            )
    lines.append(f"fresh / warm, one child to its first request: {report['fresh_over_warm']}")
    lines += [f"{'met' if met else 'MISSED'}: {name}" for name, met in report["targets"].items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
