"""What is known at one point of a command line: the directory, and variables set before it."""

import re
from collections.abc import Iterable, Sequence

from odek.trust.paths import UNRESOLVED

__all__ = ["Scope", "Snapshot"]

_COUNTER = re.compile(r"[$?#!]|UID|EUID|PPID|RANDOM|SECONDS|LINENO|EPOCHSECONDS|SHLVL|BASHPID|COLUMNS|LINES")
_SETS_ITS_WORDS = frozenset({"read", "readarray", "mapfile", "getopts", "printf", "let"})
_SETS_ANYTHING = frozenset({"eval", "source", ".", "builtin", "command"})

Snapshot = tuple[str, dict[str, str | None]]


class Scope:
    """Follows assignments and changes of directory in the order of a command line.

    A variable whose value is None was set to something that is not known. A directory that is
    not known counts as one unresolved step below the workspace. ``version`` changes whenever
    anything does.
    """

    def __init__(self, cwd: str, home: str, workspace: str) -> None:
        self.cwd = cwd
        self.home = home
        self.version = 0
        self._workspace = workspace
        self._variables: dict[str, str | None] = {}

    def copy(self) -> "Scope":
        """Return a scope that starts from what is known here."""
        other = Scope(self.cwd, self.home, self._workspace)
        other.restore((self.cwd, self._variables))
        return other

    def snapshot(self) -> Snapshot:
        """Return what ``restore`` takes back."""
        return self.cwd, dict(self._variables)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to an earlier state, as behind a process of its own."""
        self.version += 1
        self.cwd, self._variables = snapshot[0], dict(snapshot[1])

    def is_set(self, name: str) -> bool:
        """Whether the command line itself set the variable before."""
        return name in self._variables

    def value(self, name: str) -> str | None:
        """Return the value of a variable, None when only the running shell knows it."""
        if name in self._variables:
            return self._variables[name]
        match name:
            case "HOME":
                return self.home
            case "PWD":
                return None if UNRESOLVED in self.cwd else self.cwd
            case "IFS":
                return " "
            case "TMPDIR":
                return "/tmp"  # noqa: S108 - the usual value, to be judged as a path
            case "USER" | "LOGNAME":
                return self.home.rsplit("/", 1)[-1]
        return "0" if _COUNTER.fullmatch(name) else None

    def assign(self, name: str, value: str | None) -> None:
        """Set a variable; a value with an unresolved part is not known."""
        self.version += 1
        self._variables[name] = None if value is None or UNRESOLVED in value else value

    def forget(self, names: Iterable[str]) -> None:
        """Take variables as not known any more."""
        self.version += 1
        self._variables |= dict.fromkeys(names)

    def enter(self, directory: str | None) -> None:
        """Change the directory; None is one that is not known."""
        self.version += 1
        self.cwd = f"{self._workspace}/{UNRESOLVED}" if directory is None else directory

    def forget_directory_unless(self, before: str) -> None:
        """Take the directory as not known if it has changed since it was ``before``."""
        if self.cwd != before:
            self.enter(None)

    def run_builtin(self, words: Sequence[str]) -> None:
        """Forget what a builtin may have changed in ways that are not followed here."""
        if not words:
            return
        if words[0] in _SETS_ITS_WORDS:
            self.forget(word for word in words[1:] if word.isidentifier())
        elif words[0] in _SETS_ANYTHING:
            self.forget(list(self._variables))
            if words[0] != "command":
                self.enter(None)
