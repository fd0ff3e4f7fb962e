"""The ``search_files`` tool: lines that match a regular expression."""

import os
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import trio
from msgspec import Meta

from odek.text import clip_line
from odek.tools.paths import confirm, shown_name
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.trust.effects import Effects
from odek.trust.secrets import mask

__all__ = ["SearchFilesArguments", "SearchFilesTool"]


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
        from odek.tools.directory_listing import within
        from odek.tools.globs import Glob
        from odek.tools.regex_search import SearchRequest
        from odek.tools.search_run import SEARCH_SECONDS, check_pattern, locate_place, render, search

        check_pattern(arguments.pattern)
        if arguments.glob:
            Glob(arguments.glob)
        find = partial(locate_place, arguments.path, self._workspace)
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
            owner_pid=os.getpid(),
        )

        async def run(_scope: CallScope) -> ToolOutput:
            await trio.to_thread.run_sync(confirm, target, limiter=self._disk)
            return ToolOutput(render(await search(request)))

        where = f"{target.shown} ({shown_name(arguments.glob)})" if arguments.glob else target.shown
        summary = f"{clip_line(mask(shown_name(arguments.pattern)), 80)} in {where}"
        return PreparedCall(summary, Effects(reads=target.paths), run)
