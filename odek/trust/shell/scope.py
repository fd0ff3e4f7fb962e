"""What is known at one point of a command line: the directory, and variables set before it."""

import re
from collections.abc import Collection, Iterable, Sequence

import msgspec

from odek.trust.paths import UNRESOLVED
from odek.trust.shell.marks import SPACE
from odek.trust.shell.values import FOREIGN, UNKNOWN, Value, join

__all__ = ["Scope", "Snapshot"]

_COUNTER = re.compile(r"[$?#!]|UID|EUID|PPID|RANDOM|SECONDS|LINENO|EPOCHSECONDS|SHLVL|BASHPID|COLUMNS|LINES")
_SETS_ANYTHING = frozenset({"eval", "source", ".", "builtin", "command"})
# In more directories at once a command counts as being in none that is known; no measurement behind it.
_DIRECTORIES_LIMIT = 4
# Where these variables usually point; reading what they name is reading that place.
_HOME_PATHS = {
    "AWS_CONFIG_FILE": ".aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": ".aws/credentials",
    "AZURE_CONFIG_DIR": ".azure",
    "CARGO_HOME": ".cargo",
    "CLOUDSDK_CONFIG": ".config/gcloud",
    "DOCKER_CONFIG": ".docker",
    "GH_CONFIG_DIR": ".config/gh",
    "GNUPGHOME": ".gnupg",
    "GOOGLE_APPLICATION_CREDENTIALS": ".config/gcloud/application_default_credentials.json",
    "HISTFILE": ".bash_history",
    "KUBECONFIG": ".kube/config",
    "NETRC": ".netrc",
    "NPM_CONFIG_USERCONFIG": ".npmrc",
    "ODEK_HOME": ".odek",
    "PASSWORD_STORE_DIR": ".password-store",
    "PGPASSFILE": ".pgpass",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "ZDOTDIR": "",
}


class Snapshot(msgspec.Struct, frozen=True):
    """The state of a scope at one point, which ``version`` identifies."""

    version: int
    directories: tuple[str, ...]
    variables: dict[str, Value]
    integers: frozenset[str]
    keyed: frozenset[str]


class Scope:
    """Follows assignments and changes of directory in the order of a command line.

    ``directories`` are those that may be the current one, a single one unless branches differ;
    one that is not known counts as one unresolved step below the workspace.
    ``integers`` names the variables whose assignments are arithmetic, ``keyed`` those whose
    subscripts are not. ``version`` identifies the state: equal versions are equal states.
    """

    def __init__(self, cwd: str, home: str, workspace: str) -> None:
        self.directories: tuple[str, ...] = (cwd,)
        self.home = home
        self.version = 0
        self._newest = 0
        self.integers: frozenset[str] = frozenset()
        self.keyed: frozenset[str] = frozenset()
        self._workspace = workspace
        self._variables: dict[str, Value] = {}

    @property
    def cwd(self) -> str:
        """The current directory, or the first of those that it may be."""
        return self.directories[0]

    def copy(self) -> "Scope":
        """Return a scope that starts from what is known here."""
        other = Scope(self.cwd, self.home, self._workspace)
        other.restore(self.snapshot())
        return other

    def snapshot(self) -> Snapshot:
        """Return what ``restore`` takes back."""
        return Snapshot(self.version, self.directories, dict(self._variables), self.integers, self.keyed)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to an earlier state, as behind a process of its own."""
        if snapshot.version == self.version:
            return
        self._newest = max(self._newest, snapshot.version)
        self.version = snapshot.version
        self.directories, self._variables = snapshot.directories, dict(snapshot.variables)
        self.integers, self.keyed = snapshot.integers, snapshot.keyed

    def join(self, other: Snapshot) -> None:
        """Take into account that ``other`` may hold just as well, as behind a branch."""
        if other.version == self.version:
            return
        for name in self._variables.keys() | other.variables.keys():
            mine, theirs = self.value(name), other.variables.get(name, self._initial(name))
            if mine != theirs:
                self.assign(name, join(mine, theirs))
        self.integers |= other.integers
        self.join_directories(other)

    def join_directories(self, other: Snapshot) -> None:
        """Take into account that the directory may be as in ``other``."""
        together = tuple(dict.fromkeys(self.directories + other.directories))
        if together != self.directories:
            self.enter(*together) if len(together) <= _DIRECTORIES_LIMIT else self.enter()

    def blur(self, before: Snapshot) -> None:
        """Give up on what has changed since ``before``: it grows from round to round of a loop."""
        for name, value in list(self._variables.items()):
            if before.variables.get(name) != value:
                self.assign(name, Value((UNRESOLVED,), foreign=True, hidden=value.hidden))

    def changed_since(self, before: Snapshot) -> list[str]:
        """Return the variables that are not what they were."""
        return [name for name, value in self._variables.items() if before.variables.get(name) != value]

    def _changed(self) -> None:
        self._newest += 1
        self.version = self._newest

    def is_set(self, name: str) -> bool:
        """Whether the command line itself set the variable before."""
        return name in self._variables

    def value(self, name: str) -> Value:
        """Return what a variable may be."""
        return self._variables[name] if name in self._variables else self._initial(name)

    def _initial(self, name: str) -> Value:
        if name in _HOME_PATHS:
            return Value.of(f"{self.home}/{_HOME_PATHS[name]}")
        match name:
            case "HOME":
                return Value.of(self.home)
            case "PWD":
                return Value(self.directories)
            case "IFS":
                return Value.of(" ")
            case "TMPDIR":
                return Value.of("/tmp")  # noqa: S108 - the usual value, to be judged as a path
            case "USER" | "LOGNAME":
                return Value.of(self.home.rsplit("/", 1)[-1])
        return Value.of("0") if _COUNTER.fullmatch(name) else UNKNOWN

    def assign(self, name: str, value: Value) -> None:
        """Set a variable."""
        self._changed()
        self._variables[name] = value

    def assign_positional(self, values: Sequence[Value]) -> None:
        """Set ``$1`` and so on, and ``$@``."""
        for number in range(1, 10):
            self.assign(str(number), values[number - 1] if number <= len(values) else Value.of(""))
        texts = [text for value in values for text in value.texts]
        everything = Value(
            (SPACE.join(texts) or SPACE,),  # not one empty word, but none
            foreign=any(value.foreign for value in values),
            hidden=any(value.hidden for value in values),
        )
        self.assign("@", everything)
        self.assign("*", everything)

    def forget(self, names: Iterable[str], value: Value = UNKNOWN) -> None:
        """Take variables as not known any more."""
        self._changed()
        self._variables |= dict.fromkeys(names, value)

    def declare(self, names: Collection[str], *, integer: bool = False, keyed: bool = False) -> None:
        """Note that variables are integers, or arrays whose subscripts are texts."""
        self._changed()
        if integer:
            self.integers |= frozenset(names)
        if keyed:
            self.keyed |= frozenset(names)

    def enter(self, *directories: str) -> None:
        """Change the directory to one of these; none is one that is not known."""
        self._changed()
        self.directories = directories or (f"{self._workspace}/{UNRESOLVED}",)

    def run_builtin(self, words: Sequence[str]) -> None:
        """Forget what a builtin may have changed in ways that are not followed here."""
        if words and words[0] in _SETS_ANYTHING:
            self.forget(list(self._variables), FOREIGN)
            if words[0] != "command":
                self.enter()
