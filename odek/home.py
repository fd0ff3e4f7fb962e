"""Where odek keeps its files. Light: every command asks this first."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from odek.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["home_directory", "home_name"]


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
