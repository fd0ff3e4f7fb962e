"""What goes with a task: files named with ``@path`` or ``--ctx``, and what is piped in; behind its text."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from odek.errors import ToolError
from odek.patterns import late_pattern
from odek.text import clip_middle, without_surrogates
from odek.tools.paths import Target, locate_existing, shown_name
from odek.tools.regular import open_regular
from odek.tools.textfile import binary_kind, decode_text, sniff

__all__ = ["FILE_LIMIT_BYTES", "LEFT_OUT", "Attached", "attach"]

FILE_LIMIT_BYTES = 256 * 1024
"""Of one file; the middle of a longer one is left out. About 64,000 tokens: more helps no model."""

_CJK_STOPS = "\u3001\u3002\u300b\u300d\u300f\u3011\uff01\uff09\uff0c\uff1a\uff1b\uff1f\u2019\u201d"
"""Commas, full stops and closing brackets of Chinese and Japanese, which have no blank behind them."""

# Not behind what an e-mail address, a path or a piece of code has there; brackets, quotes and
# scripts without blanks between words may come before.
_MENTION = late_pattern(
    r"""(?<![A-Za-z0-9_.+%/\\@`~$=:\u00c0-\u052f-])"""
    rf"""@(?:"(?P<quoted>[^"\n]+)"|(?P<bare>[^\s"'`{_CJK_STOPS}]+))"""
)
LEFT_OUT = " bytes left out …]"
"""How ``clip_middle`` marks what is missing."""

PIPED = "piped input"
"""The source of what is piped in beside a task."""

_TRAILING = ".,;:!?)]}>\u2026"


class Attached(msgspec.Struct, frozen=True):
    """A task with its files.

    ``outside`` names what does not belong to the workspace: its text is fenced, and it counts as
    outside content. ``notices`` are lines for the person.
    """

    text: str
    outside: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def attach(
    task: str,
    named: Sequence[str],
    workspace: Path,
    fence: Callable[[str, str], str],
    is_outside: Callable[[Path], bool],
    objection: Callable[[Path], str],
    *,
    mentions: bool = True,
    piped: str = "",
) -> Attached:
    """Append the files that ``task`` mentions and those ``named`` beside it. Blocking.

    A mention that is no readable text file stays as text, as an address in an e-mail
    does. A file named by a flag has to be there.

    Args:
        task: The person's text.
        named: Paths given by a flag.
        workspace: What relative paths are seen from.
        fence: Marks (content, source) as data from outside.
        is_outside: Says whether a resolved path lies outside the trust boundary.
        objection: Says why a resolved path must not be attached, "" if it may.
        mentions: Whether ``task`` is the person's own text. What came through a pipe may be
            anybody's, and names no file.
        piped: What was piped in beside the task. Nobody knows where it comes from: it is outside.

    Raises:
        ToolError: a file named by a flag cannot be read as text.
    """
    blocks: list[str] = []
    outside: list[str] = []
    notices: list[str] = []
    seen: set[Path] = set()

    def put(title: str, shown: str, content: str, source: str) -> None:
        size = f"{len(content.encode()):,} bytes"
        notices.append(f"attached {shown} ({size}{', shortened' if LEFT_OUT in content else ''})")
        marks = _marks_around(content)
        body = f"{title}:\n{marks}\n{content.rstrip()}\n{marks}"
        if source:
            outside.append(source)
            body = fence(body, source)
        blocks.append(body)

    def add(target: Target, content: str) -> None:
        if target.resolved not in seen:
            seen.add(target.resolved)
            source = shown_name(str(target.resolved)) if is_outside(target.resolved) else ""
            put(f"Attached file {target.shown}", target.shown, content, source)

    if piped:
        put("Piped in beside the task", PIPED, piped, PIPED)
    for argument in named:
        target = locate_existing(argument, workspace, any_bytes=True)
        if reason := objection(target.resolved):
            raise ToolError(f"{target.shown} is not attached: {reason}")
        add(target, _read(target))
    for argument in _mentions(task) if mentions else ():
        try:
            target = locate_existing(argument, workspace)
            if not target.resolved.exists():
                if _looks_like_a_file(argument):
                    notices.append(f"@{argument}: there is no such file; it stays as text")
                continue
            if reason := objection(target.resolved):
                notices.append(f"@{argument} was not attached: {reason}")
                continue
            add(target, _read(target))
        except (ToolError, OSError) as error:
            notices.append(f"@{argument} was not attached: {error}")
    return Attached("\n\n".join([task, *blocks]), tuple(outside), tuple(notices))


def _marks_around(content: str) -> str:
    """Return marks of code that ``content`` cannot close: where it ends, the person's own words may begin."""
    return "`" * max([3, *(len(run) + 1 for run in re.findall("`{3,}", content))])


def _mentions(task: str) -> list[str]:
    """Return the paths mentioned; of ``@a.py,`` the comma belongs to the sentence."""
    return [
        match["quoted"] or match["bare"].rstrip(_TRAILING) or match["bare"]
        for match in _MENTION.finditer(task)
    ]


def _looks_like_a_file(argument: str) -> bool:
    """Tell a mistyped file from a handle: it has a slash, or an ending of a few letters, even with a line."""
    return "/" in argument or bool(re.fullmatch(r"[\w.-]+\.[A-Za-z]\w{0,4}(:\d+(-\d+)?)?", argument))


def _read(target: Target) -> str:
    """Return the text of a file, shortened to the limit."""
    with open_regular(target.resolved, target.shown) as file:
        # Four bytes a character at most: enough to cut by characters, and never a whole huge file.
        data = file.read(4 * FILE_LIMIT_BYTES + 1)
    if sniff(data) is None:
        raise ToolError(f"{target.shown} is {binary_kind(data)}, not text")
    try:
        text, _ = decode_text(data)
    except ValueError:
        raise ToolError(f"{target.shown} is not in the encoding that its byte order mark promises") from None
    return clip_middle(without_surrogates(text), FILE_LIMIT_BYTES)
