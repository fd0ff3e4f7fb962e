"""The ``read_file`` tool: a range of lines of a text file, bounded whatever the file is."""

from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import trio
from msgspec import Meta

from odek.errors import ToolError
from odek.tools.seen_files import SeenFiles, stamp_of
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.trust.effects import Effects

__all__ = ["ReadFileArguments", "ReadFileTool"]


class ReadFileArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to read."""

    path: Annotated[str, Meta(description="File, relative to the workspace or absolute; ~ is home.")]
    start_line: Annotated[int, Meta(ge=1, description="First line, counted from 1.")] = 1
    end_line: Annotated[int | None, Meta(description="Last line, included; null: to the end.")] = None


class ReadFileTool(Tool[ReadFileArguments]):
    """Reads text files, and tells ``seen`` of each.

    ``disk`` limits how many threads wait for the disk at once.
    """

    name: ClassVar[str] = "read_file"
    description: ClassVar[str] = (
        "Read a text file. Each line comes as `12│text`: its number, a bar, the text. "
        "At most 100 kB are returned; a last line in brackets says what was left out and what is "
        "unusual about the file."
    )
    arguments_type = ReadFileArguments

    def __init__(self, workspace: Path, disk: trio.CapacityLimiter, seen: SeenFiles | None = None) -> None:
        self._workspace = workspace
        self._disk = disk
        self._seen = seen or SeenFiles()

    async def prepare(self, arguments: ReadFileArguments) -> PreparedCall:
        """Find the file; see the base class."""
        from odek.tools.line_ranges import locate_file, read_lines

        first, last = arguments.start_line, arguments.end_line
        if last is not None and last < first:
            raise ToolError(f"read_file: end_line {last} lies before start_line {first}")
        target = await trio.to_thread.run_sync(
            locate_file, arguments.path, self._workspace, limiter=self._disk
        )

        def read() -> str:
            stamp = stamp_of(target.resolved)  # before: a change while it is read counts as one
            content = read_lines(target, first, last)
            self._seen.note(target.resolved, stamp)
            return content

        async def run(_scope: CallScope) -> ToolOutput:
            return ToolOutput(await trio.to_thread.run_sync(read, limiter=self._disk))

        lines = "" if first == 1 and last is None else f":{first}-{'' if last is None else last}"
        return PreparedCall(f"{target.shown}{lines}", Effects(reads=target.paths), run)
