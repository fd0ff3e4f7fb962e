"""The ``session_search`` tool: what was said and done in earlier sessions."""

from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import trio
from msgspec import Meta

from odek.errors import StoreError, ToolError
from odek.sessions.search import Hit, SearchResult, query_words, search_sessions
from odek.text import clip_line
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.trust.effects import Effects

__all__ = ["SessionSearchArguments", "SessionSearchTool"]


class SessionSearchArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for."""

    query: Annotated[str, Meta(min_length=1, max_length=1000, description="Words to look for.")]
    limit: Annotated[int, Meta(ge=1, le=20, description="Sessions to show at most.")] = 5


class SessionSearchTool(Tool[SessionSearchArguments]):
    """Searches the session files below ``directory``. ``disk`` limits the threads that wait for it.

    ``session`` is the id of the session that asks: it is left out, the model has it before it.
    """

    name: ClassVar[str] = "session_search"
    description: ClassVar[str] = (
        "Search earlier sessions, of any project, for words. Shows for each session its id, day and turn, "
        "and the passage with most of the words. What stands there was true then; check it before use."
    )
    arguments_type = SessionSearchArguments

    def __init__(self, directory: Path, disk: trio.CapacityLimiter, *, session: str = "") -> None:
        self._directory = directory
        self._disk = disk
        self._session = session

    async def prepare(self, arguments: SessionSearchArguments) -> PreparedCall:
        """Check that there is a word to look for."""
        if not query_words(arguments.query):
            raise ToolError("session_search: query holds no word")

        async def run(_: CallScope) -> ToolOutput:
            search = partial(
                search_sessions,
                self._directory,
                arguments.query,
                limit=arguments.limit,
                without=self._session,
                check=trio.from_thread.check_cancelled,
            )
            try:
                result = await trio.to_thread.run_sync(search, limiter=self._disk)
            except StoreError as error:
                raise ToolError(f"session_search: {error}") from error
            return ToolOutput(_answer(result))

        # Sessions of other projects, and ones that took in foreign text, are among them.
        return PreparedCall(clip_line(arguments.query, 80), Effects(outside=True), run)


def _answer(result: SearchResult) -> str:
    lines = [_line(hit) for hit in result.hits]
    if not lines:
        lines.append(f"No match in {result.searched:,} sessions.")
    if result.skipped:
        lines.append(f"{result.skipped:,} older sessions were not looked at: the time was up.")
    return "\n\n".join(lines)


def _line(hit: Hit) -> str:
    untrusted = ", took in outside content" if hit.untrusted else ""
    return f"{hit.session} ({hit.day}, turn {hit.turn}{untrusted})\n{hit.passage}"
