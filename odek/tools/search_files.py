"""The ``search_files`` tool: lines that match a regular expression."""

import os
import re
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import trio
from msgspec import Meta

from odek.errors import ToolError
from odek.text import clip_line, first_line
from odek.tools.globs import Glob
from odek.tools.listing import within
from odek.tools.paths import Target, confirm, locate, os_error, shown_name
from odek.tools.regex_search import SearchReport, SearchRequest
from odek.tools.regular import kind_of
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.trust.effects import Effects

__all__ = ["SearchFilesArguments", "SearchFilesTool"]

SEARCH_SECONDS = 20.0
"""For a whole search; a million lines take about one."""

GRACE_SECONDS = 5.0
"""Beyond that the child, which keeps its own time, is not coming back and is killed."""


class SearchFilesArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for, and where."""

    pattern: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=2000,
            description="Python regular expression, matched within single lines.",
        ),
    ]
    path: Annotated[str, Meta(description="Directory or file, relative to the workspace or absolute.")] = "."
    glob: Annotated[
        str | None, Meta(description="Only files like this, such as *.py or src/**/*.{ts,tsx}.")
    ] = None
    ignore_case: Annotated[bool, Meta(description="Match letters of either case.")] = False
    context_lines: Annotated[int, Meta(ge=0, le=20, description="Lines to show around each match.")] = 0
    max_results: Annotated[int, Meta(ge=1, le=1000, description="Matching lines to show at most.")] = 100


class SearchFilesTool(Tool[SearchFilesArguments]):
    """Searches files. ``disk`` limits how many threads wait for the disk at once."""

    name: ClassVar[str] = "search_files"
    description: ClassVar[str] = (
        "Search text files for a regular expression. Matches come under the path of their file as "
        "`12: line`, context lines as `13- line`. Files that git ignores and binary files are left out."
    )
    arguments_type = SearchFilesArguments

    def __init__(self, workspace: Path, disk: trio.CapacityLimiter) -> None:
        self._workspace = workspace
        self._disk = disk

    async def prepare(self, arguments: SearchFilesArguments) -> PreparedCall:
        """Check pattern and place; see the base class."""
        _check_pattern(arguments.pattern)
        if arguments.glob:
            Glob(arguments.glob)
        find = partial(_locate, arguments.path, self._workspace)
        target, is_file = await trio.to_thread.run_sync(find, limiter=self._disk)
        request = SearchRequest(
            pattern=arguments.pattern,
            start=os.fsencode(target.resolved),
            workspace=os.fsencode(self._workspace),
            prefix=target.shown if is_file else within(target),
            is_file=is_file,
            glob=arguments.glob,
            ignore_case=arguments.ignore_case,
            context_lines=arguments.context_lines,
            max_results=arguments.max_results,
            seconds=SEARCH_SECONDS,
        )

        async def run(_scope: CallScope) -> ToolOutput:
            await trio.to_thread.run_sync(confirm, target, limiter=self._disk)
            return ToolOutput(_render(await _search(request)))

        where = f"{target.shown} ({shown_name(arguments.glob)})" if arguments.glob else target.shown
        summary = f"{clip_line(shown_name(arguments.pattern), 80)} in {where}"
        return PreparedCall(summary, Effects(reads=target.paths), run)


def _check_pattern(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what a later Python may read differently
        try:
            re.compile(pattern)
        except re.error as error:
            place = "" if error.pos is None else f" at character {error.pos + 1}"
            raise ToolError(f"search_files: the pattern is not valid{place}: {error.msg}") from None
        except (RecursionError, OverflowError, MemoryError):
            raise ToolError("search_files: the pattern is too deeply nested or repeats too often") from None


def _locate(argument: str, workspace: Path) -> tuple[Target, bool]:
    """Return the target, and whether it is a file rather than a directory."""
    target = locate(argument, workspace)
    try:
        mode = target.resolved.stat().st_mode
    except FileNotFoundError:
        raise ToolError(f"{target.shown} does not exist") from None
    except OSError as error:
        raise os_error(error, target.shown) from None
    kind = kind_of(mode)
    if kind not in {"a directory", "a regular file"}:
        raise ToolError(f"{target.shown} is {kind}, which cannot be searched")
    return target, kind == "a regular file"


async def _search(request: SearchRequest) -> SearchReport:
    """Run the search in a child of its own; it is gone when this returns or is cancelled."""
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
            env={"PYTHONPATH": ":".join(modules)},
            start_new_session=True,  # Ctrl-C of a terminal is answered here, by cancelling
        )
        if done.returncode == 0:
            return msgspec.json.decode(done.stdout, type=SearchReport)
        reason = first_line(done.stderr.decode("utf-8", "replace").rpartition("\n\n")[2][-300:])
        raise ToolError(f"search_files: the search ended with status {done.returncode}: {reason}")
    raise ToolError(f"search_files: the search was stopped after {SEARCH_SECONDS + GRACE_SECONDS:g} s")


def _render(report: SearchReport) -> str:
    notes = list(report.notes)
    if not report.matches:
        notes.insert(0, "no line matches")
    return "\n".join([*report.lines, f"[{'; '.join(notes)}]"] if notes else report.lines)
