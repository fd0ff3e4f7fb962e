"""Where and with what something was measured: figures without it say nothing."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import msgspec

from odek import __version__

__all__ = ["Machine", "this_machine"]

_PACKAGES = ("tantivy", "PyStemmer", "numpy", "msgspec", "trio", "wordllama")


class Machine(msgspec.Struct, frozen=True):
    """A machine at a moment.

    ``usable_cores`` are those that this process may use; ``load`` is the average number of processes
    that wanted one in the last minute, with which figures get worse. ``packages`` are versions by name.
    """

    date: str
    cpu: str
    cores: int
    usable_cores: int
    load: float
    memory_bytes: int
    system: str
    python: str
    odek: str
    packages: dict[str, str]


def this_machine() -> Machine:
    """Return what this machine is now."""
    return Machine(
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        cpu=_cpu(),
        cores=os.cpu_count() or 1,
        usable_cores=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        load=round(os.getloadavg()[0], 2),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        odek=__version__,
        packages={name: found for name in _PACKAGES if (found := _version(name))},
    )


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() == "model name":
                    return " ".join(value.split())
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
