"""``odek memory facts``: the facts, for a person to read and change."""

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odek.memory.facts import Change, Facts, FactStore, Target


def add_arguments(action: str, facts: argparse.ArgumentParser) -> None:  # noqa: ARG001 - there is one
    """Declare what can be done with facts."""
    facts.add_argument("--json", action="store_true", help="print one JSON object")
    # Given behind the action, --json must not be reset by that action's own default.
    as_json = argparse.ArgumentParser(add_help=False)
    as_json.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object"
    )
    actions = facts.add_subparsers(title="actions (default: show)", dest="action", metavar="ACTION")
    actions.add_parser("show", parents=[as_json], help="print both files")
    add = actions.add_parser("add", parents=[as_json], help="store a fact")
    _add_words(add, "user (about the person) or env (about the environment), then the fact")
    remove = actions.add_parser("remove", parents=[as_json], help="remove a fact")
    _add_words(remove, "the fact, or a part that no other fact has; user or env before it names the file")
    edit = actions.add_parser("edit", parents=[as_json], help="open a file in $EDITOR")
    edit.add_argument("target", choices=["user", "env"], help="about the person, or about the environment")


def _add_words(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Declare a text with its target, in the form that all changes of a fact share."""
    parser.usage = "%(prog)s [-h] [--json] [--target user|env] [user|env] TEXT"
    parser.add_argument("words", nargs="+", metavar="TEXT", help=meaning)
    parser.add_argument("--target", choices=["user", "env"], help="the same as user or env before the text")


def _target_and_text(arguments: argparse.Namespace) -> "tuple[Target | None, str]":
    """Return the target, None if none is named, and the text."""
    first, *rest = arguments.words
    if arguments.target is None and rest and first in {"user", "env"}:
        return first, " ".join(rest)
    return arguments.target, " ".join(arguments.words)


def run(arguments: argparse.Namespace) -> int:
    """Carry out the action.

    Raises:
        ConfigError: it is not said what the new fact is about.
    """
    from odek.cli.memory_stores import by_person, open_facts
    from odek.errors import ConfigError, TargetChangedError

    store = open_facts()
    try:
        match arguments.action:
            case "add":
                target, text = _target_and_text(arguments)
                if target is None:
                    raise ConfigError(
                        "say what the fact is about: `odek memory facts add user TEXT`, or `add env TEXT` "
                        "for the environment"
                    )
                _print_change("added", store.add(target, text, origin=by_person()), arguments)
            case "remove":
                target, text = _target_and_text(arguments)
                change = store.remove(store.select(text, target), origin=by_person())
                _print_change("removed", change, arguments)
            case "edit":
                from odek.cli.memory_edit import edit

                return edit(store, arguments.target, as_json=arguments.json)
            case _:
                return _show(store, arguments)
    except TargetChangedError as error:
        print(f"odek: {error}", file=sys.stderr)
        return 1
    return 0


def _show(store: "FactStore", arguments: argparse.Namespace) -> int:
    """Print what can be read; a file that cannot be hides no other."""
    from odek.cli.last_words import say
    from odek.errors import StoreError
    from odek.memory.facts import TARGETS

    files: list[Facts] = []
    for target in TARGETS:
        try:
            files.append(store.read(target))
        except StoreError as error:
            say(str(error))
    if arguments.json:
        print(json.dumps({facts.target: _as_json(facts) for facts in files}, indent=2, ensure_ascii=False))
    else:
        for facts in files:
            print("\n".join(_lines(facts)))
    return 0 if len(files) == len(TARGETS) else 1


def _lines(facts: "Facts") -> list[str]:
    from odek.text import readable

    lines = [_fill(facts)]
    for fact in facts.entries:
        first, *rest = readable(fact.text).split("\n")
        lines += [f"  [{fact.index}] {first}", *(f"      {line}" for line in rest)]
        if fact.rejection:
            lines.append(f"      not shown to the model: {fact.rejection}")
    return lines


def _fill(facts: "Facts") -> str:
    return f"{facts.target}.md: {facts.used_bytes:,} of {facts.limit_bytes:,} bytes, {facts.percent}% full"


def _as_json(facts: "Facts") -> dict[str, Any]:
    entries = [
        {"index": fact.index, "bytes": fact.size_bytes, "text": fact.text, "rejection": fact.rejection}
        for fact in facts.entries
    ]
    return {"used": facts.used_bytes, "cap": facts.limit_bytes, "entries": entries}


def _print_change(done: str, change: "Change", arguments: argparse.Namespace) -> None:
    from odek.text import readable

    if arguments.json:
        result = {"changed": change.changed, "target": change.fact.target, "text": change.fact.text}
        print(json.dumps(result, ensure_ascii=False))
    elif change.changed:
        print(f"{done}: {readable(change.fact.text)}\n{_fill(change.facts)}")
    else:
        print(f"already there: {readable(change.fact.text)}")
