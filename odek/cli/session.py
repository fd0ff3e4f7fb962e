"""``odek session``: the conversations on disk, for a person to look at and tidy up.

``session list`` reads the beginnings of files and loads nothing else.
"""

import argparse
import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from odek.cli.options import session_reference, whole_number
from odek.cli.width import FILE_COLUMNS, list_columns, on_one_line
from odek.home import home_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

    from odek.sessions.heads import Head
    from odek.sessions.store import Deleted, SessionStore

__all__ = ["SHORT_ID_LENGTH", "add_arguments", "run"]

ROOMY_COLUMNS = 64
"""From here on a list shows the dates and turns of its sessions beside their tasks."""

SHORT_ID_LENGTH = 17
"""The day and eight random digits: enough to name a session, and to copy by hand."""

LISTED = 20
FOUND = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True, prog=parser.prog
    )
    named = "the session, by its id or the start of it"

    def action(name: str, summary: str) -> argparse.ArgumentParser:
        return actions.add_parser(name, help=summary, description=f"odek session {name}: {summary}.")

    listing = action("list", "show the newest sessions")
    listing.add_argument(
        "--limit",
        metavar="N",
        type=whole_number(0),
        default=LISTED,
        help=f"at most N sessions ({LISTED}); 0: all",
    )
    listing.add_argument("--json", action="store_true", help="print one JSON array")
    show = action("show", "print a conversation")
    show.add_argument("id", metavar="ID", nargs="?", type=session_reference, help=f"{named} (the newest)")
    show.add_argument("--json", action="store_true", help="print one JSON object")
    search = action("search", "find sessions by what was said and done in them")
    search.add_argument("query", metavar="QUERY", nargs="+", help="what to look for")
    search.add_argument(
        "--limit", metavar="N", type=whole_number(1), default=FOUND, help=f"at most N sessions ({FOUND})"
    )
    search.add_argument("--json", action="store_true", help="print one JSON object")
    delete = action("delete", "delete a session for good")
    delete.add_argument("id", metavar="ID", type=session_reference, help=named)
    delete.add_argument(
        "--yes", action="store_true", help="do not ask; nobody is asked where stdin is no terminal"
    )
    trim = action("trim", "keep the newest turns of a session, and drop those before")
    trim.add_argument("id", metavar="ID", type=session_reference, help=named)
    trim.add_argument("turns", metavar="N", type=whole_number(1), help="how many turns stay")
    cleanup = action("cleanup", "delete sessions that have not changed for long")
    cleanup.add_argument("days", metavar="DAYS", type=whole_number(1), help="how many days without a change")
    parser.epilog = """\
examples:
  odek session list --limit 0
  odek session show 20261202-3f9c
  odek session search release changelog
  odek session trim 20261202-3f9c 5    its last five turns stay
  odek session cleanup 90"""


def run(arguments: argparse.Namespace) -> int:
    """Carry out the action."""
    if arguments.action == "list":
        _list(f"{home_name(os.environ)}/sessions", arguments)
        return 0
    if arguments.action == "search":
        from odek.cli.session_search import run as search

        return search(arguments)
    from odek.cli.memory_stores import tell_index
    from odek.home import home_directory
    from odek.sessions.store import SessionStore

    store = SessionStore(home_directory(os.environ) / "sessions")
    match arguments.action:
        case "show":
            _show(store, arguments)
        case "delete":
            if not (arguments.yes or _agreed(store, arguments.id)):
                print("nothing is deleted")
                return 1
            gone = store.delete(arguments.id)
            tell_index([gone.id])
            print("deleted " + _named(gone))
            if _remembered([gone.id]):
                short = gone.id[:SHORT_ID_LENGTH]
                print(f"its summary stays: `odek memory reject {short}` removes it")
        case "trim":
            trimmed = store.trim(arguments.id, arguments.turns)
            tell_index([trimmed.id])
            print(f"{trimmed.id}: turns removed: {trimmed.removed}, kept: {trimmed.kept}")
        case "cleanup":
            return _clean_up(store, arguments.days)
    return 0


def _clean_up(store: "SessionStore", days: int) -> int:
    """Delete what is old and tell of each, also when it breaks off half-way."""
    from odek.cli.last_words import say
    from odek.cli.memory_stores import tell_index
    from odek.sessions.store import Deleted

    deleted: list[str] = []
    failed = 0
    try:
        for outcome in store.delete_older(days):
            if isinstance(outcome, Deleted):
                deleted.append(outcome.id)
                print("deleted " + _named(outcome))
            elif outcome.is_busy:
                print(f"kept {outcome.id}: a process has it open")
            else:
                failed += 1
                say(outcome.reason)
    finally:
        tell_index(deleted)
    print(f"sessions deleted: {len(deleted)}" + (f", failed: {failed}" if failed else ""))
    if kept := _remembered(deleted):
        print(f"summaries of them that stay: {kept}; `odek memory list --all` shows them")
    return 1 if failed else 0


def _remembered(session_ids: "Iterable[str]") -> int:
    """Count those of deleted sessions of which there is still an episode."""
    from odek.cli.memory_stores import memory_directory
    from odek.memory.places import body_name, is_episode_id

    directory = memory_directory()
    return sum(
        (directory / body_name(session)).is_file() for session in session_ids if is_episode_id(session)
    )


def _list(directory: str, arguments: argparse.Namespace) -> None:
    from odek.sessions.heads import kept_originals
    from odek.sessions.order import last_changed

    rows, number = last_changed(directory, arguments.limit or None)
    if arguments.json:
        import json

        print(json.dumps([head._asdict() for head, _ in rows], indent=2))
    elif rows:
        width = list_columns()
        facts = f"  {'CHANGED':<16}  TURNS" if width >= ROOMY_COLUMNS else ""
        print(f"{'ID':<{SHORT_ID_LENGTH}}{facts}  TASK")
        for head, changed_ns in rows:
            print(_row(head, changed_ns, width))
        if number > len(rows):
            print(f"… {number - len(rows):,} older ones; --limit 0 shows all")
        if kept := sum(map(len, kept_originals(directory).values())):
            print(
                f"! damaged states that were kept when a session was mended: {kept} (*.damaged-* beside it)"
            )
    else:
        print(f"no sessions in {directory}")


def _row(head: "Head", changed_ns: int, width: int) -> str:
    start = f"{head.id[:SHORT_ID_LENGTH]:<{SHORT_ID_LENGTH}}  "
    if width >= ROOMY_COLUMNS:
        changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(changed_ns // 10**9))
        start += f"{changed:<16}  {head.turns:>5}  "
    damage = f"! {head.damage}{': ' if head.task else ''}" if head.damage else ""
    return start + on_one_line(damage + head.task, width - len(start))


def _show(store: "SessionStore", arguments: argparse.Namespace) -> None:
    reading = store.read(arguments.id or "")
    if arguments.json:
        import msgspec

        fields: dict[str, Any] = msgspec.to_builtins(reading.header)
        fields |= {"notices": reading.notices, "messages": reading.messages}
        print(msgspec.json.format(msgspec.json.encode(fields), indent=2).decode())
        return
    from odek.cli.transcript import transcript_lines

    for line in transcript_lines(reading, list_columns()):
        print(line)


def _agreed(store: "SessionStore", reference: str) -> bool:
    """Ask the person at the terminal that stdin is, if it is one, whether the session may go.

    Raises:
        ConfigError: nothing can be written to that terminal.
    """
    if not sys.stdin.isatty():
        return True
    head = store.head(reference)
    task = f": {on_one_line(head.task, FILE_COLUMNS)}" if head.task else ""
    with _question_screen() as screen:
        print(
            f"{head.id}, turns: {head.turns}{task}\ndelete it for good? [y/N] ",
            end="",
            file=screen,
            flush=True,
        )
        try:
            return sys.stdin.readline().strip().lower() in {"y", "yes"}
        except KeyboardInterrupt:
            print(file=screen)  # whatever comes next begins a line of its own
            raise


@contextmanager
def _question_screen() -> "Iterator[TextIO]":
    """Yield where a question is seen by whoever types the answer: stderr, or else the terminal itself."""
    if sys.stderr.isatty():
        yield sys.stderr
        return
    from odek.errors import ConfigError
    from odek.storage.files import describe

    try:
        screen = open(os.ttyname(sys.stdin.fileno()), "w", encoding="utf-8", errors="replace")  # noqa: SIM115 - below
    except OSError as error:
        raise ConfigError(f"cannot ask on the terminal: {describe(error)}; --yes deletes unasked") from None
    with screen:
        yield screen


def _named(deleted: "Deleted") -> str:
    copies = f" (with copies of damaged states: {deleted.files - 1})" if deleted.files > 1 else ""
    task = on_one_line(deleted.task, FILE_COLUMNS)
    return f"{deleted.id}{copies}: {task}" if task else f"{deleted.id}{copies}"
