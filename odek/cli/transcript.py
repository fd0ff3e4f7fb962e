"""A conversation as plain text: what ``odek session show`` prints."""

from collections.abc import Iterator
from datetime import datetime
from typing import assert_never

from odek.cli.layout import Span, WordWrap, clip_columns
from odek.cli.style import PLAIN
from odek.llm.arguments import readable_arguments
from odek.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from odek.sessions.document import Header
from odek.sessions.reading import Reading
from odek.text import first_line, readable

__all__ = ["transcript_lines"]

_INDENT = "  "


def transcript_lines(reading: Reading, width: int) -> Iterator[str]:
    """Yield the lines of a session, at most ``width`` columns, nothing in them that moves a cursor."""
    yield from _heading(reading.header, width)
    for notice in reading.notices:
        yield from _wrapped(f"! {notice}", width, "")
    for message in reading.messages:
        yield from _message(message, width)


def _heading(header: Header, width: int) -> Iterator[str]:
    yield f"session  {header.id}"
    yield f"model    {_one_line(header.model, width - 9)}"
    yield f"began    {_local_time(header.created_at)}"
    yield f"changed  {_local_time(header.updated_at)}"
    if header.episode_untrusted:
        yield from _wrapped(f"outside content: {', '.join(header.taint_sources) or 'yes'}", width, "")


def _message(message: Message, width: int) -> Iterator[str]:
    match message:
        case SystemMessage(content):
            yield ""
            yield f"[{_one_line(f'system: {first_line(content)}', width - 2)}]"
        case UserMessage(content):
            yield ""
            yield "you:"
            yield from _wrapped(content, width, _INDENT)
        case AssistantMessage(content, calls):
            yield ""
            yield "odek:"
            yield from _wrapped(content, width, _INDENT)
            for call in calls:
                text = f"-> {call.name} {readable_arguments(call.arguments)}"
                yield _INDENT + _one_line(text, width - len(_INDENT))
        case ToolMessage(content):
            left = len(content.splitlines()) - 1
            more = f" (+{left:,} line{'s' if left > 1 else ''})" if left > 0 else ""
            yield _INDENT + _one_line(f"<- {first_line(content)}", width - len(_INDENT) - len(more)) + more
        case _:
            assert_never(message)


def _one_line(text: str, width: int) -> str:
    return clip_columns(readable(" ".join(text.split())), width)


def _wrapped(text: str, width: int, indent: str) -> Iterator[str]:
    for line in readable(text).splitlines():
        if not line.strip():
            yield ""
            continue
        wrap = WordWrap(width, PLAIN)
        wrap.start(Span(indent), Span(indent))
        wrap.add([Span(line)])
        wrap.end()
        yield from wrap.take().splitlines()


def _local_time(timestamp: str) -> str:
    """Return an RFC 3339 time as the person's clock shows it; what is none, as it stands there."""
    try:
        return datetime.fromisoformat(timestamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return _one_line(timestamp, 40)
