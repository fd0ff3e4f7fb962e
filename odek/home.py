"""Where odek keeps its files. Light: every command asks this first."""

from collections.abc import Mapping
from pathlib import Path

from odek.errors import ConfigError

__all__ = ["home_directory"]


def home_directory(environ: Mapping[str, str]) -> Path:
    """Return the absolute directory of configuration, sessions and memory; it need not exist.

    ``ODEK_HOME`` moves it from ``~/.odek``.

    Raises:
        ConfigError: neither variable is set, and the user has no home directory.
    """
    try:
        if chosen := environ.get("ODEK_HOME"):
            return Path(chosen).expanduser().absolute()
        return Path(environ.get("HOME") or Path.home()) / ".odek"
    except RuntimeError:  # a user id without an entry, as in many containers
        raise ConfigError("no home directory is known; set HOME or ODEK_HOME") from None
