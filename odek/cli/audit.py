"""``odek audit``: what a session took in from outside, what was decided in it, and where it went off."""

import argparse
import os
from itertools import groupby
from typing import TYPE_CHECKING, Any, assert_never

from odek.cli.options import session_reference
from odek.cli.width import list_columns, on_one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odek.sessions.document import Header
    from odek.trust.audit import AuditLog, AuditRecord, Decision, Diverged, Ingest

__all__ = ["add_arguments", "run"]

_INDENT = 12
_NAMED = 60  # characters of what diverged and of the call that it was in; --json has more

EPILOG = """\
examples:
  odek audit                 the newest session
  odek audit 20261202-3f9c --json

"took in" is content from outside that the model was given, with its size and
the first 16 digits of its SHA-256. Decisions are listed unless the policy
simply allowed a call. "diverged" is something that the agent acted on or
answered with, which you did not name and that content did."""

_SAID_BY = {"person": "by you", "policy": "by the policy", "session_trust": "by your trust in the class"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the session and the form."""
    parser.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        type=session_reference,
        help="the session, by its id or the start of it (the newest)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.epilog = EPILOG


def run(arguments: argparse.Namespace) -> int:
    """Print the record of a session."""
    from odek.home import home_directory
    from odek.sessions.names import audit_path
    from odek.sessions.store import SessionStore
    from odek.trust.audit import AuditTrail

    directory = home_directory(os.environ) / "sessions"
    header = SessionStore(directory).read(arguments.session or "").header
    log = AuditTrail(audit_path(directory, header.id)).read()
    if arguments.json:
        print(_as_json(header, log))
        return 0
    for line in _lines(header, log):
        print(line)
    return 0


def _as_json(header: "Header", log: "AuditLog") -> str:
    import msgspec

    fields: dict[str, Any] = {
        "session": header.id,
        "untrusted": header.episode_untrusted,
        "taint_sources": header.taint_sources,
        "records": log.records,
        "damaged_lines": log.damaged_lines,
    }
    return msgspec.json.format(msgspec.json.encode(fields), indent=2).decode()


def _lines(header: "Header", log: "AuditLog") -> "Iterator[str]":
    start = f"session {header.id[:17]}  "
    yield f"{start}{on_one_line(header.task, list_columns() - len(start))}".rstrip()
    if header.episode_untrusted:
        yield from _wrapped(f"its memory is untrusted: {', '.join(header.taint_sources) or 'unknown'}", 0)
    else:
        yield "its memory is trusted"
    for turn, records in groupby(log.records, key=lambda record: record.turn):
        yield f"\nturn {turn}"
        for record in records:
            yield from _record(record)
    yield "" if log.records else "\nnothing came in from outside, and nothing had to be decided"
    if log.records:
        yield _summary(log)
    if log.damaged_lines:
        yield f"lines that cannot be read: {log.damaged_lines}"


def _record(record: "AuditRecord") -> "Iterator[str]":
    from odek.trust.audit import Decision, Diverged, Ingest

    match record:
        case Ingest():
            yield from _ingest(record)
        case Decision():
            yield from _decision(record)
        case Diverged():
            yield from _diverged(record)
        case _:
            assert_never(record)


def _ingest(record: "Ingest") -> "Iterator[str]":
    yield from _entry("took in", f"{_who(record.agent)}{record.source}")
    yield from _wrapped(f"{record.size_bytes:,} bytes, sha256 {record.sha256}", _INDENT)


def _decision(record: "Decision") -> "Iterator[str]":
    verb = "allowed" if record.allowed else "denied"
    yield from _entry(verb, f"{_who(record.agent)}{record.tool}: {record.summary}")
    reason = f": {record.reason}" if record.reason and not record.reason.startswith(record.risk) else ""
    text = record.reason if record.reason.startswith(record.risk) else f"{record.risk}{reason}"
    yield from _wrapped(f"{_SAID_BY[record.by]}; {text}", _INDENT)


def _diverged(record: "Diverged") -> "Iterator[str]":
    from odek.text import clip_line

    # A resource may be a whole sentence in the words of outside content.
    resource, summary = clip_line(record.resource, _NAMED), clip_line(record.summary, _NAMED)
    used = f"{record.tool}: {summary}" if record.how == "acted" else "the answer"
    yield from _entry("diverged", f"{record.kind} {resource}, in {used}")
    yield from _wrapped(f"named by {record.source}, not by you:", _INDENT)
    yield from _wrapped(f"“{record.evidence}”", _INDENT + 2)


def _who(agent: str) -> str:
    return f"({agent}) " if agent else ""


def _summary(log: "AuditLog") -> str:
    from odek.trust.audit import Decision, Diverged, Ingest

    counts = {"took in": Ingest, "decisions": Decision, "diverged": Diverged}
    return "   ".join(
        f"{name}: {sum(isinstance(record, kind) for record in log.records)}" for name, kind in counts.items()
    )


def _entry(verb: str, text: str) -> "Iterator[str]":
    """Yield an entry: what happened, and to what, wrapped behind it."""
    first, *rest = _wrapped(text, _INDENT)
    yield f"  {verb:<{_INDENT - 2}}{first.strip()}"
    yield from rest


def _wrapped(text: str, indent: int) -> list[str]:
    """Return ``text`` in lines as wide as the list, safe for a terminal."""
    from odek.cli.layout import Span, WordWrap
    from odek.cli.style import PLAIN
    from odek.text import visible

    wrap = WordWrap(list_columns(), PLAIN)
    wrap.start(Span(" " * indent), Span(" " * indent))
    wrap.add([Span(visible(" ".join(text.split()), keep_newlines=False))])
    return ["".join(span.text for span in line) for line in wrap.lines()]
