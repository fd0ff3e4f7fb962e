"""Where odek keeps its files. Light: every command asks this first."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from odek.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "access_hint",
    "expanded",
    "forget_unusable_home",
    "home_directory",
    "home_name",
    "person_home",
    "working_directory",
]

_NOWHERE = "/nonexistent"  # as many systems name the home of users without one


def home_directory(environ: Mapping[str, str]) -> "Path":
    """Return the absolute directory of configuration, sessions and memory; it need not exist.

    ``ODEK_HOME`` moves it from ``~/.odek``.

    Raises:
        ConfigError: neither variable is set, and the user has no home directory, or
            ``ODEK_HOME`` is relative to a directory that no longer exists.
    """
    from pathlib import Path  # a tenth of the start-up of a command that does without

    return Path(home_name(environ))


def home_name(environ: Mapping[str, str]) -> str:
    """Return the same as `home_directory`, as text."""
    chosen = environ.get("ODEK_HOME") or f"{environ.get('HOME') or '~'}/.odek"
    name = os.path.expanduser(chosen)  # noqa: PTH111 - without pathlib
    if name.startswith("~"):  # a user id without an entry, as in many containers
        raise ConfigError("no home directory is known; set HOME or ODEK_HOME")
    return name if name.startswith("/") else f"{_current()}/{name}"


def forget_unusable_home() -> None:
    """Let a ``HOME`` that is empty or relative be none, so that everybody asks the system for it."""
    if not os.environ.get("HOME", "/").startswith("/"):
        del os.environ["HOME"]


def person_home() -> "Path":
    """Return the absolute home directory of the person; where there is none, one that does not exist."""
    from pathlib import Path

    name = os.path.expanduser("~")  # noqa: PTH111 - knows an error, where this has an answer
    return Path(name if name.startswith("/") else _NOWHERE)


def expanded(text: str) -> "Path":
    """Return the path ``text``, a leading ``~`` replaced by a home directory.

    Raises:
        ConfigError: that home directory is not known.
    """
    from pathlib import Path

    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ConfigError(f"{text}: that home directory is not known; write it out, or set HOME") from None


def working_directory() -> "Path":
    """Return the absolute directory that this process is in.

    Raises:
        ConfigError: somebody has removed it.
    """
    from pathlib import Path

    return Path(_current())


def _current() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - without pathlib
    except FileNotFoundError:
        raise ConfigError("the working directory no longer exists; change to one that does") from None


def access_hint(reason: str, environ: Mapping[str, str]) -> str:
    """Return what to do about ``reason``, to stand behind it; "" unless it is about odek's directory.

    That may be closed to this user, as after one run with `sudo` or in a home directory that
    cannot be written to, or something else may have its name.
    """
    try:
        home = home_name(environ)
    except ConfigError:
        return ""
    shown = home.replace(environ.get("HOME") or home, "~", 1)
    if home not in reason and shown not in reason:
        return ""
    if os.path.lexists(home) and not os.path.isdir(home):  # noqa: PTH112 - without pathlib
        what = "a link that leads to no directory" if os.path.islink(home) else "no directory"  # noqa: PTH114
        return f"; {home} is {what}: move it away, or set ODEK_HOME to a directory"
    if not any(words in reason.lower() for words in ("permission denied", "not permitted", "read-only")):
        return ""
    if not os.path.exists(home):  # noqa: PTH110 - without pathlib
        return "; set ODEK_HOME to a directory of yours"
    from shlex import quote

    if any(os.lstat(path).st_uid != os.geteuid() for path in _own_files(home)):
        way = f"sudo chown -R $(id -un) {quote(home)}"
        return f"; not all of {home} is yours: `{way}`, or set ODEK_HOME to another"
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        return f"; `chmod u+rwx {quote(home)}`, or set ODEK_HOME to another directory"
    return ""


def _own_files(home: str) -> list[str]:
    """Return ``home`` and what lies in it, as far as that can be seen; not what is deeper."""
    try:
        return [home, *(entry.path for entry in os.scandir(home))]
    except OSError:
        return [home]
