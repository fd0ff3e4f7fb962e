"""``odek memory search``, ``why`` and ``consolidate``."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from odek.cli.found import query_of
from odek.cli.memory_stores import memory_directory, run_with_setup, say, shown_time
from odek.cli.options import whole_number
from odek.cli.width import wrapped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odek.memory.facts import Target
    from odek.memory.recall import Considered
    from odek.memory.service import Memory
    from odek.memory.why import WhyRecord
    from odek.setup import Setup

__all__ = ["add_arguments", "run"]

_OUTCOMES = {
    "injected": "given to the model",
    "score": "too little to do with it",
    "duplicate": "in the conversation already",
    "budget": "no room beside better ones",
    "untrusted": "untrusted, waits for review",
    "withheld": "withheld",
    "offered": "offered to the person",
}


def add_arguments(action: str, parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of one of the actions."""
    match action:
        case "search":
            parser.add_argument("query", nargs="+", metavar="QUERY", help="what to look for")
        case "why":
            parser.add_argument(
                "session", nargs="?", metavar="SESSION", help="its id, or the beginning (newest)"
            )
            parser.add_argument(
                "turn", nargs="?", type=whole_number(1), metavar="TURN", help="its number (all)"
            )
        case _:
            parser.add_argument("target", nargs="?", choices=["user", "env"], help="one file (both)")
            parser.add_argument("--dry-run", action="store_true", help="show what would become of it")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Carry out the action."""
    match arguments.memory_action:
        case "search":
            query = query_of(arguments.query)
            return _with_memory(lambda memory: _search(memory, query, arguments))
        case "why":
            return _why(arguments)
        case _:
            return _with_memory(lambda memory: _consolidate(memory, arguments))


def _with_memory(work: "Callable[[Memory], Awaitable[int]]") -> int:
    """Run ``work`` on the memory as an agent here would have it."""
    from odek.app import open_memory_alone

    async def main(setup: "Setup") -> int:
        async with open_memory_alone(setup) as memory:
            return await work(memory)

    return run_with_setup(main)


async def _search(memory: "Memory", query: str, arguments: argparse.Namespace) -> int:
    from odek.cli.found import highlighted
    from odek.memory.excerpt import quotation

    found = await memory.search(query)
    if arguments.json:
        hits = [
            {
                "kind": hit.kind,
                "id": hit.id,
                "date": hit.age_key,
                "text": hit.text,
                "passage": hit.passage,
            }
            for hit in found.candidates
        ]
        print(json.dumps({"by": found.by, "note": found.note, "found": hits}, indent=2, ensure_ascii=False))
        return 0
    if found.note:
        say(found.note)
    for hit in found.candidates:
        head = hit.id if hit.kind == "fact" else f"{hit.id}  {shown_time(hit.age_key)}"
        print(f"{head}\n    " + highlighted(hit.text, query).replace("\n", "\n    "))
        for line in quotation(hit.passage, query).splitlines():
            print(f"    > {highlighted(line, query)}")
    if not found.candidates:
        print("nothing is remembered about it")
    return 0


async def _consolidate(memory: "Memory", arguments: argparse.Namespace) -> int:
    from odek.memory.facts import TARGETS
    from odek.memory.journal import Origin
    from odek.text import readable

    targets: list[Target] = [arguments.target] if arguments.target else list(TARGETS)
    shown: dict[str, Any] = {}
    for target in targets:
        done = await memory.consolidate(target, dry_run=arguments.dry_run, origin=Origin(approval="person"))
        shown[target] = {
            "applied": done.applied,
            "reason": done.reason,
            "before": done.before,
            "after": done.after,
        }
        if arguments.json:
            continue
        if done.applied or (arguments.dry_run and done.reason == "dry run"):
            verb = "consolidated" if done.applied else "would consolidate"
            print(f"{verb} {target}.md: {len(done.before)} entries to {len(done.after)}")
            for text in done.after if arguments.dry_run else ():
                print("  " + readable(text).replace("\n", "\n  "))
        else:
            print(f"{target}.md is unchanged: {readable(done.reason, keep_newlines=False)}")
    if arguments.json:
        print(json.dumps(shown, indent=2, ensure_ascii=False))
    return 0


def _why(arguments: argparse.Namespace) -> int:
    from odek.errors import StoreError
    from odek.memory.why import WhyLog

    log = WhyLog(memory_directory())
    wanted = arguments.session or ""
    sessions = [session for session in log.sessions() if session.startswith(wanted)]
    if not sessions:
        raise StoreError(
            f"memory: nothing is on record about session {wanted[:80]!a}"
            if wanted
            else "memory: nothing is on record yet"
        )
    if wanted and wanted not in sessions and len(sessions) > 1:
        raise StoreError(f"memory: {len(sessions)} sessions begin with {wanted[:80]!a}")
    session = wanted if wanted in sessions else sessions[0]
    records = [r for r in log.read(session) if arguments.turn in {None, r.turn}]
    if arguments.json:
        import msgspec

        turns: Any = msgspec.to_builtins(records)
        print(json.dumps({"session": session, "turns": turns}, indent=2, ensure_ascii=False))
        return 0
    print(f"session {session}")
    for record in records:
        _print_turn(record)
    if not records:
        print("nothing is on record about this turn")
    return 0


def _print_turn(record: "WhyRecord") -> None:
    from odek.text import clip_line, readable

    head = f"turn {record.turn}, {shown_time(record.time)}: {clip_line(readable(record.query), 100)}"
    print(f"\n{wrapped(head)}")
    if record.note:
        print(f"  {readable(record.note, keep_newlines=False)}")
    for item in record.considered:
        print(wrapped(f"  {_item(item)}", indent="  "))
    if not record.considered:
        print("  nothing was considered")


def _item(item: "Considered") -> str:
    from odek.text import readable

    score = ""
    if item.relevance is not None:
        score = f" (relevance {item.relevance:.2f})"
    elif item.score is not None and item.kind == "atom":
        score = f" (score {item.score:.2f})"
    elif item.score is not None:
        score = f" (likeness {item.score:.2f}, common words {item.words})"
    reason = f": {item.reason}" if item.reason else ""
    return readable(f"{item.kind} {item.id}: {_OUTCOMES[item.outcome]}{score}{reason}", keep_newlines=False)
