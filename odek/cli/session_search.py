"""``odek session search``: sessions found by what was said and done in them."""

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odek.sessions.search import SearchResult

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Print what is found, best first."""
    from odek.cli.found import highlighted, query_of

    query = query_of(arguments.query)
    result = _find(query, arguments.limit)
    if result.skipped:
        print(f"odek: {result.skipped:,} sessions were not looked at in time; ask again", file=sys.stderr)
    if arguments.json:
        import msgspec

        print(json.dumps(msgspec.to_builtins(result), indent=2, ensure_ascii=False))
        return 0
    for hit in result.hits:
        untrusted = ", took in outside content" if hit.untrusted else ""
        print(f"{hit.session}  {hit.day}, turn {hit.turn}{untrusted}\n    {highlighted(hit.passage, query)}")
    if not result.hits:
        print(f"no match in {result.searched:,} sessions")
    return 0


def _find(query: str, limit: int) -> "SearchResult":
    from pathlib import Path

    import trio

    from odek.cli.error_groups import unwrapped_errors
    from odek.cli.memory_stores import say
    from odek.config.files import load
    from odek.events import Event, Notice
    from odek.home import home_directory
    from odek.sessions.search import open_session_search

    home = home_directory(os.environ)
    told: list[str] = []

    def emit(event: Event) -> None:
        # All of them are about the index, and the first is the cause of those behind it.
        if isinstance(event, Notice) and not told:
            told.append(event.text)
            say(event.text)

    async def main() -> "SearchResult":
        is_remembered = load(home, Path(), os.environ, {}).config.memory.enabled
        async with open_session_search(home, emit, is_indexed=is_remembered) as search:
            return await search.find(query, limit=limit)

    with unwrapped_errors():
        return trio.run(main)
