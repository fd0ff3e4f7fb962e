"""Where odek keeps its files. Light: every command asks this first."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from odek.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["access_hint", "home_directory", "home_name"]


def home_directory(environ: Mapping[str, str]) -> "Path":
    """Return the absolute directory of configuration, sessions and memory; it need not exist.

    ``ODEK_HOME`` moves it from ``~/.odek``.

    Raises:
        ConfigError: neither variable is set, and the user has no home directory.
    """
    from pathlib import Path  # a tenth of the start-up of a command that does without

    return Path(home_name(environ))


def home_name(environ: Mapping[str, str]) -> str:
    """Return the same as `home_directory`, as text."""
    chosen = environ.get("ODEK_HOME") or f"{environ.get('HOME') or '~'}/.odek"
    name = os.path.expanduser(chosen)  # noqa: PTH111 - without pathlib
    if name.startswith("~"):  # a user id without an entry, as in many containers
        raise ConfigError("no home directory is known; set HOME or ODEK_HOME")
    return name if name.startswith("/") else f"{os.getcwd()}/{name}"  # noqa: PTH109 - without pathlib


def access_hint(reason: str, environ: Mapping[str, str]) -> str:
    """Return what to do about ``reason``, to stand behind it; "" unless odek's files are closed to this user.

    That is so after one run with `sudo`, or where a home directory cannot be written to.
    """
    try:
        home = home_name(environ)
    except ConfigError:
        return ""
    shown = home.replace(environ.get("HOME") or home, "~", 1)
    closed = any(words in reason.lower() for words in ("permission denied", "not permitted", "read-only"))
    if not closed or (home not in reason and shown not in reason):
        return ""
    if not os.path.exists(home):  # noqa: PTH110 - without pathlib
        return "; set ODEK_HOME to a directory of yours"
    if any(os.lstat(path).st_uid != os.geteuid() for path in _own_files(home)):
        return f"; not all of {home} is yours: `sudo chown -R $(id -un) {home}`, or set ODEK_HOME to another"
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        return f"; `chmod u+rwx {home}`, or set ODEK_HOME to another directory"
    return ""


def _own_files(home: str) -> list[str]:
    """Return ``home`` and what lies in it, as far as that can be seen; not what is deeper."""
    try:
        return [home, *(entry.path for entry in os.scandir(home))]
    except OSError:
        return [home]
