"""``odek init``: a configuration file to start from."""

import argparse
import os
from pathlib import Path

from odek.errors import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which of the two files to write."""
    parser.add_argument(
        "--global",
        dest="for_all_projects",
        action="store_true",
        help="write ~/.odek/config.json, for all projects, instead of ./odek.json",
    )
    parser.epilog = """\
The file explains every key and sets none. A file that exists is left as it is."""


def run(arguments: argparse.Namespace) -> int:
    """Write the file and say where it is."""
    from odek.config.describe import template
    from odek.config.files import shown_path
    from odek.home import home_directory

    project = not arguments.for_all_projects
    if project:
        path, name = Path("odek.json"), "./odek.json"
    else:
        path = home_directory(os.environ) / "config.json"
        name = shown_path(path, os.environ)
        _make_private_directory(path.parent, shown_path(path.parent, os.environ))
    _create(path, name, template(project=project), mode=0o666 if project else 0o600)
    print(f"wrote {name}")
    return 0


def _make_private_directory(path: Path, name: str) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _failure("create", name, error) from None


def _create(path: Path, name: str, text: str, *, mode: int) -> None:
    """Write a new file; one that exists, or a link of that name, is left as it is."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        raise ConfigError(f"{name} exists and is left as it is; edit it, or move it away first") from None
    except OSError as error:
        raise _failure("write", name, error) from None
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        path.unlink(missing_ok=True)  # half a template would stand in the way of the next try
        raise _failure("write", name, error) from None


def _failure(what: str, name: str, error: OSError) -> ConfigError:
    import errno

    from odek.storage.files import describe

    advice = "; make room there and try again" if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
    return ConfigError(f"cannot {what} {name}: {describe(error)}{advice}")
