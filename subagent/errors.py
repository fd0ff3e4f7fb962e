"""What can go wrong with a child process.

ChildError
├─ ChildStartError    it could not be started: says what was run and why not
├─ ChildLostError     its warden was killed, so that its exit status is not known
├─ ChildFailedError   it said that it failed, or ended without a result
├─ ChildTimeoutError  it was ended because its time was over
├─ ChildLimitError    it was ended because it used too much memory or CPU
└─ ProtocolError      what it wrote is no message, or too much
"""

import signal

__all__ = [
    "ChildError",
    "ChildFailedError",
    "ChildLimitError",
    "ChildLostError",
    "ChildStartError",
    "ChildTimeoutError",
    "ProtocolError",
    "describe_status",
]


class ChildError(Exception):
    """Base of all errors about child processes; ``str(error)`` is one line for a person."""


class ChildStartError(ChildError):
    """The command could not be started; nothing of it runs."""


class ChildLostError(ChildError):
    """The command's warden is gone, and with it the command's exit status."""


class ChildFailedError(ChildError):
    """The child failed by its own account, or ended without a result.

    ``returncode`` is negative for a signal and None for a child that had to be ended.
    """

    def __init__(self, message: str, *, returncode: int | None = None) -> None:
        super().__init__(message)
        self.returncode = returncode


class ChildTimeoutError(ChildError):
    """The child's wall clock time was over before it had a result."""


class ChildLimitError(ChildError):
    """The child and what it started used more memory or CPU than it may."""


class ProtocolError(ChildError):
    """A message that cannot be understood, or that is beyond the bounds of size."""


def describe_status(returncode: int) -> str:
    """Return an exit status in words, such as ``exited with status 3``."""
    if returncode >= 0:
        return f"exited with status {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:  # a real-time signal has no name
        name = f"signal {-returncode}"
    if returncode == -signal.SIGKILL:
        return f"was killed by {name} (out of memory, or somebody's kill -9)"
    return f"was ended by {name}"
