"""One search of files by regular expression, in a child; loaded by the first call of ``search_files``."""

import os
import re
import sys
import warnings
from pathlib import Path

import msgspec
import trio

from odek.errors import ToolError
from odek.text import first_line
from odek.tools.git_places import PLACES
from odek.tools.paths import Target, locate_existing, mode_of
from odek.tools.regex_search import SearchReport, SearchRequest
from odek.tools.regular import kind_of

__all__ = ["SEARCH_SECONDS", "check_pattern", "locate_place", "render", "search"]

SEARCH_SECONDS = 20.0
"""For a whole search; a million lines take about one."""

GRACE_SECONDS = 5.0
"""Beyond that the child, which keeps its own time, is not coming back and is killed."""


def check_pattern(pattern: str) -> None:
    """Refuse what is no regular expression.

    Raises:
        ToolError: says what is wrong, and where.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what a later Python may read differently
        try:
            re.compile(pattern)
        except re.error as error:
            place = "" if error.pos is None else f" at character {error.pos + 1}"
            raise ToolError(f"search_files: the pattern is not valid{place}: {error.msg}") from None
        except (RecursionError, OverflowError, MemoryError):
            raise ToolError("search_files: the pattern is too deeply nested or repeats too often") from None


def locate_place(argument: str, workspace: Path) -> tuple[Target, bool]:
    """Return the target, and whether it is a file rather than a directory. Blocking.

    Raises:
        ToolError: it is missing, or neither.
    """
    target = locate_existing(argument, workspace)
    kind = kind_of(mode_of(target))
    if kind not in {"a directory", "a regular file"}:
        raise ToolError(f"{target.shown} is {kind}, which cannot be searched")
    return target, kind == "a regular file"


async def search(request: SearchRequest) -> SearchReport:
    """Run the search in a child of its own; it is gone when this returns or is cancelled.

    Raises:
        ToolError: it took too long, or failed.
    """
    # The same modules as here, but none from a working directory: -P keeps that off the path.
    modules = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
    command = [sys.executable, "-P", "-W", "ignore", "-X", "utf8", "-m", "odek.tools.regex_search"]
    with trio.move_on_after(SEARCH_SECONDS + GRACE_SECONDS):
        done = await trio.run_process(
            command,
            stdin=msgspec.json.encode(request),
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            cwd="/",
            env={
                "PYTHONPATH": ":".join(modules),
                **{name: os.environ[name] for name in PLACES if name in os.environ},
            },
            start_new_session=True,  # Ctrl-C of a terminal is answered here, by cancelling
        )
        if done.returncode == 0:
            return msgspec.json.decode(done.stdout, type=SearchReport)
        reason = first_line(done.stderr.decode("utf-8", "replace").rpartition("\n\n")[2][-300:])
        raise ToolError(f"search_files: the search ended with status {done.returncode}: {reason}")
    raise ToolError(f"search_files: the search was stopped after {SEARCH_SECONDS + GRACE_SECONDS:g} s")


def render(report: SearchReport) -> str:
    """Return the report as the answer of the tool."""
    notes = list(report.notes)
    if not report.matches:
        notes.insert(0, "no line matches")
    return "\n".join([*report.lines, f"[{'; '.join(notes)}]"] if notes else report.lines)
