"""``odek memory drill``: whether attacks on the memory get through the configuration that applies here."""

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from odek.cli.width import list_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odek.drill.attacks import Attack
    from odek.drill.run import Result
    from odek.events import Event

__all__ = ["add_arguments", "run"]

EPILOG = """\
Nothing of yours is touched, and no command is run: texts, sessions and episodes
are made in a scratch directory, and calls are only judged. A call counts as got
through where it would run without a person.

exit status:
  0 nothing got through   1 something did"""

_NUMBERS = frozenset({"tried", "got through"})
_KINDS = {
    "text": "texts to be remembered",
    "session": "sessions to be recalled",
    "index": "forged entries of the index",
    "command": "commands of the shell",
    "write": "files to be written",
    "project": "settings of a project",
    "tool": "calls of the memory tool",
}


def add_arguments(action: str, parser: argparse.ArgumentParser) -> None:  # noqa: ARG001 - there is one
    """Declare the form of what is printed."""
    parser.add_argument("--all", action="store_true", help="also list what was held, and by what")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.epilog = EPILOG


def run(arguments: argparse.Namespace) -> int:
    """Try the attacks, and print what became of them."""
    results = _drill()
    if arguments.json:
        print(_as_json(results))
    else:
        for line in _lines(results, everything=arguments.all):
            print(line)
    return 0 if all(result.outcome.held for result in results) else 1


def _drill() -> "list[Result]":
    from functools import partial

    import trio

    from odek.config.files import load
    from odek.drill.attacks import attacks
    from odek.drill.run import run_drill
    from odek.home import home_directory

    home = home_directory(os.environ)
    resolved = load(home, Path(), os.environ, {})
    return trio.run(partial(run_drill, attacks(), resolved, home=home, environ=os.environ, emit=_tell))


def _tell(event: "Event") -> None:
    from odek.cli.memory_stores import say
    from odek.events import Notice

    if isinstance(event, Notice):
        say(event.text)


def _kind(attack: "Attack") -> str:
    return str(type(attack).__struct_config__.tag)


def _as_json(results: "Sequence[Result]") -> str:
    import msgspec

    fields = {
        "attacks": len(results),
        "got_through": sum(not result.outcome.held for result in results),
        "results": [
            {
                "kind": _kind(result.attack),
                "name": result.attack.name,
                "reason": result.attack.reason,
                "held": result.outcome.held,
                "how": result.outcome.how,
            }
            for result in results
        ],
    }
    return msgspec.json.format(msgspec.json.encode(fields), indent=2).decode()


def _lines(results: "Sequence[Result]", *, everything: bool) -> "Iterator[str]":
    from odek.cli.table import plain_table

    columns = list_columns()
    through = [result for result in results if not result.outcome.held]
    if everything and len(through) < len(results):
        held = [(_name(result), result.outcome.how) for result in results if result.outcome.held]
        yield from plain_table(("held", "by"), held, columns)
        yield ""
    if through:
        rows = [(_name(result), result.outcome.how, result.attack.reason) for result in through]
        yield from plain_table(("attack", "how it got through", "why it matters"), rows, columns)
        yield ""
    tried = Counter(_kind(result.attack) for result in results)
    passed = Counter(_kind(result.attack) for result in through)
    counts = [(_KINDS[kind], str(count), str(passed[kind] or "-")) for kind, count in tried.items()]
    yield from plain_table(("attacks", "tried", "got through"), counts, columns, numbers=_NUMBERS)
    yield ""
    yield f"{len(through)} of {len(results)} attacks got through" if through else "nothing got through"


def _name(result: "Result") -> str:
    return f"{_kind(result.attack)}: {result.attack.name}"
