"""The vectors of an index: made behind the agent for its texts, and on the spot for a question.

Vectors find what is said in other words. Without them words find what they find: a
backend that is slow, down or wrong costs that much, is told once, and is then left
alone for a while.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol

import trio

from odek.embedding.embedder import Embedder, Vector
from odek.errors import EmbeddingError

__all__ = ["BACK_OFF_SECONDS", "QUESTION_SECONDS", "IndexVectors", "TextsWithoutVectors", "is_of_words"]

QUESTION_SECONDS = 1.0
"""A turn waits so long for the vector of its question. Models on small machines take a tenth of it."""

BACK_OFF_SECONDS = 30.0
"""A backend that failed is left alone so long: not every turn should wait for it."""

# Texts of a step: some requests' worth for an endpoint, some milliseconds of word vectors.
_STEP_TEXTS = 256


def is_of_words(embedder: Embedder) -> bool:
    """Tell whether the vectors of ``embedder`` see no more than the words of an index do."""
    return embedder.fingerprint.startswith("rp/")


class TextsWithoutVectors(Protocol):
    """An index, as far as its vectors are concerned; ``odek.index.engine.Index`` is one."""

    def without_vectors(self, limit: int) -> list[tuple[int, str]]:
        """Return up to ``limit`` texts that have no vector, by their version."""
        ...

    def set_vectors(self, vectors: Mapping[int, Vector]) -> None:
        """Give texts their vectors."""
        ...


class IndexVectors:
    """Makes vectors with ``embedder``; ``tell`` takes a line for the person when it cannot."""

    def __init__(self, embedder: Embedder, tell: Callable[[str], None]) -> None:
        self._embedder = embedder
        self._tell = tell
        self._rests_until = float("-inf")
        self._is_failing = False

    @property
    def space(self) -> str:
        """Names what the vectors mean, for ``open_index``."""
        return self._embedder.fingerprint

    async def of_question(self, query: str) -> Vector | None:
        """Return the vector of a question; None when there is none in time."""
        if trio.current_time() < self._rests_until:
            return None
        with trio.move_on_after(QUESTION_SECONDS):
            made = await self._made([query])
            return made[0] if made else None
        self._rest(f"no vector of the question within {QUESTION_SECONDS:g} s")
        return None

    async def fill(
        self, index: TextsWithoutVectors, run: Callable[[Callable[[], Any]], Awaitable[Any]]
    ) -> None:
        """Make the vectors that are missing, step by step.

        Args:
            index: Where they are missing.
            run: Does blocking work on the index; None when it could not be done.
        """
        before: list[int] = []
        while trio.current_time() >= self._rests_until:
            missing: list[tuple[int, str]] = await run(partial(index.without_vectors, _STEP_TEXTS)) or []
            versions = [version for version, _ in missing]
            if not missing or versions == before:  # what was set is not there: the disk is full, say
                return
            made = await self._made([text for _, text in missing])
            if made is not None:
                await run(partial(index.set_vectors, dict(zip(versions, made, strict=True))))
            before = versions

    async def _made(self, texts: list[str]) -> list[Vector] | None:
        try:
            made = await self._embedder.embed(texts)
        except EmbeddingError as error:
            self._rest(str(error))
            return None
        self._is_failing = False
        return made

    def _rest(self, problem: str) -> None:
        self._rests_until = trio.current_time() + BACK_OFF_SECONDS
        if not self._is_failing:  # each time it would be said in other words: how long it is to rest
            self._tell(f"memory: {problem}; meanwhile words alone decide what is recalled")
        self._is_failing = True
