"""``odek memory log``, ``blame`` and ``undo``: what was changed, by whom, and taking it back."""

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from odek.cli.memory_stores import by_person, memory_directory, open_episodes, open_facts, say, shown_time
from odek.cli.options import whole_number
from odek.cli.session import SHORT_ID_LENGTH

if TYPE_CHECKING:
    from odek.memory.journal import History, Record

__all__ = ["add_arguments", "run"]

LISTED = 20
WIDTH = 72


def add_arguments(action: str, parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of one of the actions."""
    match action:
        case "log":
            parser.add_argument(
                "--limit",
                metavar="N",
                type=whole_number(0),
                default=LISTED,
                help=f"so many, newest first; 0: all ({LISTED})",
            )
        case "blame":
            parser.add_argument("target", choices=["user", "env"], help="the file")
        case _:
            parser.add_argument(
                "id", metavar="ID", nargs="?", default="", help="id in the log; the last change"
            )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Carry out the action."""
    from odek.errors import TargetChangedError
    from odek.memory.journal import Journal

    journal = Journal(memory_directory())
    history = journal.read()
    if history.damaged_lines:
        say(
            f"journal.jsonl: {history.damaged_lines} lines cannot be read; "
            "`odek memory check --repair` removes them"
        )
    match arguments.memory_action:
        case "log":
            _log(history, arguments)
        case "blame":
            _blame(history, arguments)
        case _:
            from odek.memory.undo import undo

            try:
                record = undo(journal, open_facts(), open_episodes(), arguments.id, origin=by_person())
            except TargetChangedError as error:
                print(f"odek: {error}", file=sys.stderr)
                return 1
            if arguments.json:
                print(json.dumps({"undone": _as_json(record)}, ensure_ascii=False))
            else:
                print(f"undone: {_line(record)}")
    return 0


def _log(history: "History", arguments: argparse.Namespace) -> None:
    newest = history.records[::-1][: arguments.limit or None]
    if arguments.json:
        print(json.dumps([_as_json(record) for record in newest], indent=2, ensure_ascii=False))
        return
    for record in newest:
        print(_line(record))
    if not newest:
        print("no change is on record")


def _line(record: "Record") -> str:
    from odek.memory.journal import WHOLE_FILE
    from odek.text import clip_line, readable

    what = f"undo of {record.undoes}: {record.action}" if record.undoes else record.action
    text = record.after or record.before
    if record.action in {"replace", "merge"}:
        text = f"{clip_line(record.before, WIDTH // 2)} → {record.after}"
    head = f"{record.id}  {shown_time(record.time)}  {what} {record.target}"
    shown = "the whole file" if record.action in WHOLE_FILE else clip_line(text, WIDTH)
    return readable(f"{head}\n    {shown}\n    {_origin(record)}")


def _origin(record: "Record") -> str:
    """Return on whose behalf a change was made, in a line; ``--json`` has whole ids, the call and the pid."""
    parts = [f"approved by {record.approval}"] if record.approval else []
    if record.tainted:
        parts.append("tainted")
    if record.session:
        turn = f" turn {record.turn}" if record.turn else ""
        parts.append(f"session {record.session[:SHORT_ID_LENGTH]}{turn}")
    return ", ".join(parts) or f"pid {record.pid}"


def _blame(history: "History", arguments: argparse.Namespace) -> None:
    """Print each entry with the newest change that put it there as it is."""
    from odek.memory.journal import digest
    from odek.text import readable

    facts = open_facts().read(arguments.target)
    made = {
        text: record
        for record in history.records
        if record.target == arguments.target
        for text in _entry_hashes(record)
    }
    rows = [(fact, made.get(digest(fact.text))) for fact in facts.entries]
    if arguments.json:
        shown = [
            {"index": fact.index, "text": fact.text, "change": _as_json(record) if record else None}
            for fact, record in rows
        ]
        print(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    for fact, record in rows:
        known = "not on record: edited by hand, or older than the journal"
        if record is not None:
            known = f"{record.id}  {shown_time(record.time)}  {record.action}  ({_origin(record)})"
        print(readable(f"[{fact.index}] {known}"))
        print("\n".join(f"    {line}" for line in readable(fact.text).split("\n")))
    if not rows:
        print(f"{arguments.target}.md is empty")


def _entry_hashes(record: "Record") -> list[str]:
    """Return the hashes of the entries that a change left behind."""
    from odek.memory.fact_file import FactFile
    from odek.memory.journal import WHOLE_FILE, digest

    if record.action not in WHOLE_FILE:
        return [record.hash_after] if record.hash_after else []
    before = set(FactFile.parse(record.before.encode()).texts)
    return [digest(text) for text in FactFile.parse(record.after.encode()).texts if text not in before]


def _as_json(record: "Record") -> dict[str, Any]:
    import msgspec

    fields: dict[str, Any] = msgspec.to_builtins(record)
    return fields
