"""What ``ps`` calls a process."""

import sys

from subagent.warden import PR_SET_NAME, prctl

__all__ = ["set_title"]

SHORT_NAME_BYTES = 15
"""What the kernel keeps of a short name."""


def set_title(title: str) -> None:
    """Have ``ps`` show ``title`` for this process, as far as its first arguments leave room; on Linux."""
    if sys.platform != "linux":
        return
    name = title.encode("utf-8", "replace").replace(b"\0", b" ")
    prctl(PR_SET_NAME, name[:SHORT_NAME_BYTES])
    try:
        import ctypes
    except ImportError:  # an interpreter built without libffi
        return
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b") ")[2].split()
    start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc_pid_stat(5)
    if start:
        # With its last byte zero, the kernel shows just this area.
        ctypes.memmove(start, name[: end - start - 1].ljust(end - start, b"\0"), end - start)
