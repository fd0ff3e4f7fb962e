"""What can go wrong with a child process.

ChildError
├─ ChildStartError    it could not be started: says what was run and why not
└─ ChildLostError     its warden was killed, so that its exit status is not known
"""

__all__ = ["ChildError", "ChildLostError", "ChildStartError"]


class ChildError(Exception):
    """Base of all errors about child processes; ``str(error)`` is one line for a person."""


class ChildStartError(ChildError):
    """The command could not be started; nothing of it runs."""


class ChildLostError(ChildError):
    """The command's warden is gone, and with it the command's exit status."""
