"""The ``session_search`` tool: what was said and done in earlier sessions."""

import re
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
from msgspec import Meta

from odek.errors import StoreError, ToolError
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.trust.effects import Effects

if TYPE_CHECKING:
    from collections.abc import Callable

    from odek.sessions.search import Hit, SearchResult, SessionSearch

__all__ = ["SessionSearchArguments", "SessionSearchTool"]


class SessionSearchArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for."""

    query: Annotated[str, Meta(min_length=1, max_length=1000, description="What to look for, in words.")]
    limit: Annotated[int, Meta(ge=1, le=20, description="Sessions to show at most.")] = 5


class SessionSearchTool(Tool[SessionSearchArguments]):
    """Searches what ``search`` returns, which is asked for with the first call.

    ``session`` is the id of the session that asks: it is left out, the model has it before it.
    """

    name: ClassVar[str] = "session_search"
    description: ClassVar[str] = (
        "Search earlier sessions, of any project, by words, their forms and identifiers. Shows for each "
        "session its id, day and turn, and the passage that matches best, its words marked. What stands "
        "there was true then; check it before use."
    )
    arguments_type = SessionSearchArguments

    def __init__(self, search: "Callable[[], SessionSearch]", *, session: str = "") -> None:
        self._search = search
        self._session = session

    async def prepare(self, arguments: SessionSearchArguments) -> PreparedCall:
        """Check that there is a word to look for."""
        if not re.search(r"\w", arguments.query):
            raise ToolError("session_search: query holds no word")

        async def run(_: CallScope) -> ToolOutput:
            try:
                result = await self._search().find(
                    arguments.query, limit=arguments.limit, without=self._session
                )
            except StoreError as error:
                raise ToolError(f"session_search: {error}") from error
            return ToolOutput(_answer(result, arguments.query))

        # Sessions of other projects, and ones that took in foreign text, are among them.
        return PreparedCall(arguments.query, Effects(outside=True), run)


def _answer(result: "SearchResult", query: str) -> str:
    from odek.memory.excerpt import marked

    lines = [f"{_head(hit)}\n{marked(hit.passage, query)}" for hit in result.hits]
    if not lines:
        lines.append(f"No match in {result.searched:,} sessions.")
    if result.skipped:
        lines.append(f"{result.skipped:,} older sessions were not looked at: the time was up.")
    return "\n\n".join(lines)


def _head(hit: "Hit") -> str:
    untrusted = ", took in outside content" if hit.untrusted else ""
    return f"{hit.session} ({hit.day}, turn {hit.turn}{untrusted})"
