"""The vectors of the atoms: made behind the agent, where an embedder sees more than words."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio

from odek.background import Starter
from odek.embedding.embedder import Embedder, Vector
from odek.errors import StoreError
from odek.index.document import Filter
from odek.memory.extended.write import AtomIndex
from odek.memory.index_vectors import IndexVectors, is_of_words

__all__ = ["AtomVectors"]

FILL_SECONDS = 5.0
"""Of making vectors at a time: whoever leaves waits no longer. The rest is made at the next change."""

# What waits for a person is sent to no server.
_LIVE = Filter(kinds=("atom",), trusted_only=True)


class AtomVectors:
    """Makes vectors of atoms and of what they are asked for; with an embedder of words alone it makes none.

    Args:
        embedder: The one that is configured.
        index: Of the atoms; used through ``run`` alone.
        jobs: For what nobody waits for.
        run: Does blocking work on the index, in its turn.
        tell: Takes a line for the person.
    """

    def __init__(
        self,
        embedder: Embedder,
        index: AtomIndex,
        jobs: Starter,
        run: Callable[[Callable[[], Any]], Awaitable[Any]],
        tell: Callable[[str], None],
    ) -> None:
        self._vectors = None if is_of_words(embedder) else IndexVectors(embedder, tell)
        self._index = index
        self._jobs = jobs
        self._run = run
        self._tell = tell
        self._is_filling = False
        self._is_wanted = False

    async def of_question(self, query: str) -> Vector | None:
        """Return the vector of a question; None when there is none in time."""
        return await self._vectors.of_question(query) if self._vectors is not None else None

    def fill_soon(self) -> None:
        """Make what vectors are missing, behind the agent."""
        self._is_wanted = True
        if self._vectors is not None and not self._is_filling:
            self._is_filling = True
            self._jobs.start_soon(self._fill, self._vectors)

    def without_vectors(self, limit: int) -> list[tuple[int, str]]:
        """Return up to ``limit`` live atoms that have no vector; see ``TextsWithoutVectors``."""
        return self._index.without_vectors(limit, _LIVE)

    def set_vectors(self, vectors: Mapping[int, Vector]) -> None:
        """Give atoms their vectors; see ``TextsWithoutVectors``."""
        self._index.set_vectors(vectors)

    async def _fill(self, vectors: IndexVectors) -> None:
        try:
            with trio.move_on_after(FILL_SECONDS):
                while self._is_wanted:
                    self._is_wanted = False  # before the work: what comes during it counts
                    await vectors.fill(self, self._guarded)
        finally:
            self._is_filling = False

    async def _guarded(self, work: Callable[[], Any]) -> Any:
        try:
            return await self._run(work)
        except StoreError as error:
            self._tell(f"the vectors of the atoms could not be kept: {error}")
            return None
