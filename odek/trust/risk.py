"""Risk classes and their order; the only ranking in the house."""

from enum import IntEnum

import msgspec

__all__ = ["Part", "Risk", "Verdict"]


class Risk(IntEnum):
    """How much harm a call can do, lowest first. Text form: the lower-case name."""

    SAFE = 0
    LOCAL_WRITE = 1
    INSTALL = 2
    NETWORK_EGRESS = 3
    CODE_EXECUTION = 4
    SYSTEM_WRITE = 5
    UNKNOWN = 6
    DESTRUCTIVE = 7
    BLOCKED = 8

    @property
    def label(self) -> str:
        """The class as configuration and people write it."""
        return self.name.lower()

    @property
    def verb(self) -> str:
        """What a program of this class does, as the end of a sentence that begins with its name."""
        return _VERBS[self]


_VERBS = {
    Risk.SAFE: "only looks",
    Risk.LOCAL_WRITE: "changes files",
    Risk.INSTALL: "installs software",
    Risk.NETWORK_EGRESS: "contacts the network",
    Risk.CODE_EXECUTION: "runs code",
    Risk.SYSTEM_WRITE: "changes this machine",
    Risk.UNKNOWN: "does what no rule knows",
    Risk.DESTRUCTIVE: "destroys what cannot be brought back",
    Risk.BLOCKED: "is never allowed",
}


class Part(msgspec.Struct, frozen=True):
    """One part of a call: its text, its class, and why.

    Attributes:
        text: Its source.
        risk: Its class.
        reason: Why it is of that class.
        reads_outside: It brings in content from outside the workspace, or from a place that is
            not known before it runs.
        command: The number of the simple command that it belongs to; 0 in a call that is none.
        program: The name under which its program is known, "" where there is none.
        path: The place that it touches, links resolved, home shortened to ``~``.
        code: Files, absolute, whose content it runs; what was approved is only what they held.
    """

    text: str
    risk: Risk
    reason: str
    reads_outside: bool = False
    command: int = 0
    program: str = ""
    path: str = ""
    code: tuple[str, ...] = ()


class Verdict(msgspec.Struct, frozen=True):
    """The class of a whole call: the highest of its parts."""

    risk: Risk
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, parts: tuple[Part, ...]) -> "Verdict":
        """Return the verdict of ``parts``; none at all is safe."""
        return cls(max((part.risk for part in parts), default=Risk.SAFE), parts)
