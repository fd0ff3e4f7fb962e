"""``odek config``: what is set, from where, and what can be set."""

import argparse
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from odek.cli.layout import columns_of
from odek.cli.width import list_columns, on_one_line
from odek.config.layers import Resolved

_MASK = "********"
_NARROWEST_COLUMNS = 12  # of a value, however long the names beside it; no measurement behind it
_URL_PASSWORD = re.compile(r"(://)[^/@\s]+@")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    show = actions.add_parser("show", help="print every value and the layer it comes from")
    show.add_argument("--json", action="store_true", help="as one JSON object, nothing cut")
    actions.add_parser("schema", help="print the JSON schema of the files, for editors")
    actions.add_parser("path", help="print where the files are looked for")
    parser.epilog = """\
Later layers win: defaults, ~/.odek/config.json, ./odek.json, ODEK_* variables,
flags. Secrets are masked. `odek init` writes a file that explains every key.

examples:
  odek config show
  odek config show --json | jq '.model'
  odek config schema > ~/.odek/schema.json"""


def run(arguments: argparse.Namespace) -> int:
    """Carry out the action."""
    from odek.home import home_directory

    home = home_directory(os.environ)
    match arguments.action:
        case "show":
            _show(home, as_json=arguments.json)
        case "schema":
            from odek.config.describe import schema

            print(json.dumps(schema(), indent=2, ensure_ascii=False))
        case _:
            _print_paths(home)
    return 0


def _show(home: Path, *, as_json: bool) -> None:
    from odek.cli.last_words import say
    from odek.config.files import load

    resolved = load(home, Path(), os.environ, {})
    for notice in resolved.notices:
        say(notice)
    rows = list(_rows(resolved))
    if as_json:
        shown = {path: {"value": value, "from": origin} for path, value, origin in rows}
        print(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        print(
            "\n".join(
                _aligned([(path, _text(value), origin) for path, value, origin in rows], list_columns())
            )
        )


def _rows(resolved: Resolved) -> Iterator[tuple[str, Any, str]]:
    """Yield path, value and origin of every key; no secret is in any of them."""
    from odek.config.keys import table

    for key in table().values():
        value: Any = resolved.config
        for name in key.path.split("."):
            value = getattr(value, name)
        origin = resolved.origins.get(key.path)
        masked = _MASK if key.facets.secret and value else _masked(_plain(value), resolved.secrets)
        yield key.path, masked, origin.name if origin else "default"


def _plain(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)


def _masked(value: Any, secrets: tuple[str, ...]) -> Any:
    """Return ``value`` with every secret in any of its texts masked."""
    if isinstance(value, str):
        for secret in sorted(secrets, key=len, reverse=True):
            value = value.replace(secret, _MASK)
        return _URL_PASSWORD.sub(rf"\1{_MASK}@", value)
    if isinstance(value, Mapping):
        return {_masked(name, secrets): _masked(inner, secrets) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(inner, secrets) for inner in value]
    return value


def _text(value: Any) -> str:
    from odek.text import visible

    return visible(json.dumps(value, ensure_ascii=False), keep_newlines=False)


def _aligned(rows: list[tuple[str, str, str]], columns: int) -> Iterator[str]:
    """Yield the rows within ``columns``; a long value is cut, that of a long path stands below it."""
    paths, values, origins = (max(map(columns_of, column)) for column in zip(*rows, strict=True))
    paths = max(min(paths, columns * 9 // 20, columns - origins - _NARROWEST_COLUMNS - 4), _NARROWEST_COLUMNS)
    values = min(values, max(columns - paths - origins - 4, _NARROWEST_COLUMNS))
    for path, value, origin in rows:
        start, room = path, values - max(len(path) - paths, 0)  # a long path takes from its value
        if room < min(columns_of(value), _NARROWEST_COLUMNS):
            yield path
            start, room = "", values
        shown = on_one_line(value, room)
        yield f"{start:<{paths}}  {shown}{' ' * (room - columns_of(shown))}  {origin}"


def _print_paths(home: Path) -> None:
    from odek.config.files import shown_path

    files = {
        "for all projects": home / "config.json",
        "of this project": Path("./odek.json"),
        "secrets": home / "secrets.env",
    }
    for what, path in files.items():
        state = "" if path.exists() else "  (not there)"
        name = shown_path(path, os.environ) if path.is_absolute() else f"./{path}"
        print(f"{what:<16}  {name}{state}")
