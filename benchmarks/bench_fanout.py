"""How long until a subagent runs? Forked from the warm template against started afresh.

For 1, 4 and 8 children at once, taken in turn within one run: the time from the request
to the first byte that the child writes, which it does from within ``trio.run`` with the
libraries of an agent imported; the time until all results are collected; and the memory
of each child when it is ready, private and shared. The template is ready beforehand, as
it is when a delegation comes; what that takes is reported too.

    python benchmarks/bench_fanout.py [--rounds N]

prints one JSON object. Bytecode is compiled beforehand, as an installation does.
"""

import argparse
import compileall
import json
import os
import platform
import statistics
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import trio

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from subagent.child import Report, serve  # noqa: E402 - found through the line above
from subagent.limits import Limits  # noqa: E402
from subagent.reports import ChildReady, ChildStarted, ChildTask, SupervisorEvent, TaskSucceeded  # noqa: E402
from subagent.spawner import FreshSpawner, Launch, Spawner  # noqa: E402
from subagent.supervisor import Supervisor  # noqa: E402
from subagent.warm import open_warm_spawner  # noqa: E402
from subagent.wire import Task  # noqa: E402

COUNTS = (1, 4, 8)

LIBRARIES = ("trio", "msgspec", "httpx2")
"""What an agent cannot do without."""

TARGET_WARM_MS = 30.0
TARGET_RATIO = 15.0
TARGET_PRIVATE_MIB = 8.0

PREPARING = (
    f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'benchmarks')!r}]; "
    f"import {', '.join(LIBRARIES)}; from bench_fanout import child; child()"
)


async def answer(task: Task, report: Report) -> Any:  # noqa: ARG001 - the shape that `serve` wants
    """Say how much memory this child has, and end."""
    return memory()


def child() -> None:
    """Be a child; the entry of both ways."""
    trio.run(serve, answer)


def memory() -> dict[str, int]:
    """Return private, shared and proportional memory of this process in KiB."""
    sizes: dict[str, int] = {}
    with suppress(OSError):
        for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]:
            name, size = line.split()[:2]
            sizes[name.rstrip(":")] = int(size)
    return {
        "private": sizes.get("Private_Clean", 0) + sizes.get("Private_Dirty", 0),
        "shared": sizes.get("Shared_Clean", 0) + sizes.get("Shared_Dirty", 0),
        "proportional": sizes.get("Pss", 0),
    }


class Samples:
    """What was measured of one way at one number of children."""

    def __init__(self) -> None:
        self.started: list[float] = []
        self.ready: list[float] = []
        self.collected: list[float] = []
        self.memory: list[dict[str, int]] = []

    def report(self) -> dict[str, object]:
        """Return medians and ranges: times in ms, memory in MiB."""
        return {
            "running_ms": spread(self.started),
            "first_byte_ms": spread(self.ready),
            "collected_ms": spread(self.collected),
            "memory_mib": {
                kind: round(statistics.median(each[kind] for each in self.memory) / 1024, 1)
                for kind in ("private", "shared", "proportional")
            },
        }


def spread(seconds: list[float]) -> dict[str, float]:
    """Return the least, the median and the most, in ms."""
    figures = {"min": min(seconds), "median": statistics.median(seconds), "max": max(seconds)}
    return {name: round(value * 1000, 1) for name, value in figures.items()}


async def run_once(spawner: Spawner, count: int, cwd: Path, samples: Samples) -> None:
    """Run ``count`` children at once and note what they took."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    launch = Launch(cwd=cwd, env=environment, title="odek subagent: benchmark")
    tasks = [ChildTask(id=str(n), launch=launch) for n in range(count)]
    began = trio.current_time()

    def note(event: SupervisorEvent) -> None:
        match event:
            case ChildStarted():
                samples.started.append(trio.current_time() - began)
            case ChildReady(seconds=seconds):
                samples.ready.append(seconds)
            case _:
                return

    supervisor = Supervisor(spawner, max_concurrency=count, limits=Limits(wall_seconds=60))
    outcomes = await supervisor.run(tasks, note)
    samples.collected.append(trio.current_time() - began)
    for outcome in outcomes:
        if not isinstance(outcome, TaskSucceeded):
            raise SystemExit(f"a child failed: {outcome}")
        samples.memory.append(outcome.result)


async def measure(rounds: int, scratch: Path) -> dict[str, object]:
    """Return the report."""
    fresh = FreshSpawner([sys.executable, "-c", PREPARING])
    notices: list[str] = []
    samples = {(way, count): Samples() for way in ("warm", "fresh") for count in COUNTS}
    sys.path.insert(0, str(ROOT / "benchmarks"))
    opening = open_warm_spawner(
        preload=LIBRARIES, entry="bench_fanout:child", fallback=fresh, on_notice=notices.append
    )
    async with opening as warm:
        began = trio.current_time()
        await warm.prepare()
        prepared = trio.current_time() - began
        for _ in range(rounds):
            for count in COUNTS:
                await run_once(warm, count, scratch, samples["warm", count])
                await run_once(fresh, count, scratch, samples["fresh", count])
    if notices:
        raise SystemExit(notices[0])
    one_warm, one_fresh = (statistics.median(samples[way, 1].ready) * 1000 for way in ("warm", "fresh"))
    private = max(each["private"] for each in samples["warm", 8].memory) / 1024
    return {
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "rounds": rounds,
        "template_ready_ms": round(prepared * 1000, 1),
        "warm": {str(count): samples["warm", count].report() for count in COUNTS},
        "fresh": {str(count): samples["fresh", count].report() for count in COUNTS},
        "fresh_over_warm": round(one_fresh / one_warm, 1),
        "targets": {
            f"warm median to first byte <= {TARGET_WARM_MS:g} ms": one_warm <= TARGET_WARM_MS,
            f"fresh / warm >= {TARGET_RATIO:g}": one_fresh / one_warm >= TARGET_RATIO,
            f"private memory of each of 8 <= {TARGET_PRIVATE_MIB:g} MiB": private <= TARGET_PRIVATE_MIB,
        },
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    compileall.compile_dir(ROOT / "subagent", quiet=2)
    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(trio.run(partial(measure, rounds, Path(scratch))), indent=2))


if __name__ == "__main__":
    main()
