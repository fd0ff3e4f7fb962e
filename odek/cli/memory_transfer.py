"""``odek memory export`` and ``import``: everything that is remembered as one JSON object."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odek.cli.memory_stores import by_person, memory_directory, open_episodes, open_facts, say
from odek.cli.options import FileName

if TYPE_CHECKING:
    import msgspec

    from odek.memory.transfer import Imported

__all__ = ["add_arguments", "run"]

_READ_BYTES = 256 * 1024 * 1024


def add_arguments(action: str, parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of one of the actions."""
    if action == "export":
        parser.add_argument("--json", action="store_true", help="the only format, and the default")
        return
    parser.add_argument("file", metavar="FILE", type=FileName, help="what `export` printed; - reads stdin")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="take over the trust of each episode; without it all of them wait to be promoted",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Carry out the action; an import returns 1 when something was left out."""
    if arguments.memory_action == "export":
        from odek.memory.transfer import export

        exported, problems = export(open_facts(), open_episodes())
        for problem in problems:
            say(problem)
        print(_encoded(exported))
        return 1 if problems else 0
    from odek.memory.transfer import import_all

    imported = import_all(
        _read(arguments.file),
        open_facts(),
        open_episodes(),
        name="stdin" if arguments.file == "-" else arguments.file,
        trust=arguments.trust,
        origin=by_person(),
    )
    _print_imported(imported, as_json=arguments.json)
    return 1 if imported.left_out else 0


def _read(name: str) -> bytes:
    from odek.errors import OdekError
    from odek.storage.files import read_file

    if name == "-":
        return sys.stdin.buffer.read(_READ_BYTES)
    try:
        return read_file(Path(name), limit_bytes=_READ_BYTES, follow_links=True)
    except FileNotFoundError:
        raise OdekError(f"{name} does not exist") from None


def _encoded(value: "msgspec.Struct") -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _print_imported(imported: "Imported", *, as_json: bool) -> None:
    import msgspec

    from odek.text import visible

    if as_json:
        fields: dict[str, Any] = msgspec.to_builtins(imported)
        print(json.dumps(fields, indent=2, ensure_ascii=False))
        return
    for line in imported.left_out:
        print(visible(f"left out: {line}", keep_newlines=False))
    added = f"added to {memory_directory()}: facts {imported.facts}, episodes {imported.episodes}"
    print(f"{added}; already there: {imported.known}")
