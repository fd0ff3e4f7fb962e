"""Reading the files of the configuration; the only part of it that touches the disk."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from odek.config.layers import Resolved, Sources, SourceText, resolve
from odek.config.secrets_env import parse_secrets
from odek.errors import ConfigError

__all__ = ["load", "read_secrets", "shown_path"]

_LIMIT_BYTES = 1 << 20  # a configuration is a few KiB; more is some other file


def load(home: Path, workspace: Path, environ: Mapping[str, str], flags: Mapping[str, Any]) -> Resolved:
    """Read the files that exist and resolve all layers.

    ``flags`` maps key paths to values, None for those that were not given.

    Raises:
        ConfigError: a file cannot be read, or a value is wrong; one line a problem.
    """
    return resolve(
        Sources(
            home=_read(home / "config.json", environ),
            project=_read(workspace / "odek.json", environ, name="./odek.json"),
            secrets=_read(home / "secrets.env", environ),
            environ=environ,
            flags=flags,
        )
    )


def read_secrets(home: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of ``secrets.env``; none if there is no such file.

    Raises:
        ConfigError: it cannot be read.
    """
    source = _read(home / "secrets.env", environ)
    return parse_secrets(source.text, source.name) if source is not None else {}


def shown_path(path: Path, environ: Mapping[str, str]) -> str:
    """Return ``path`` as a person writes it, with ``~`` for the home directory."""
    user_home = environ.get("HOME")
    if user_home and path.is_relative_to(user_home):
        return str(Path("~") / path.relative_to(user_home))
    return str(path)


def _read(path: Path, environ: Mapping[str, str], *, name: str = "") -> SourceText | None:
    """Read a regular file; return None if there is none.

    A link is followed, for people keep these files elsewhere; a pipe or device is not
    waited for.
    """
    name = name or shown_path(path, environ)
    try:
        # Non-blocking, or opening a named pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{name} is not a regular file; replace or remove it")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(_LIMIT_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    if len(content) > _LIMIT_BYTES:
        raise ConfigError(f"{name} is larger than {_LIMIT_BYTES:,} bytes; that is no configuration")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} is not UTF-8 text: byte {error.start} does not belong there") from None
    exposed = bool(status.st_mode & (stat.S_IRGRP | stat.S_IROTH))
    return SourceText(name, text, exposed, (status.st_dev, status.st_ino))
