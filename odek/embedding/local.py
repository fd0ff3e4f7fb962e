"""The embedder that needs nothing: the projection, off the event loop."""

from collections.abc import Sequence

import trio

from odek.embedding.embedder import Vector
from odek.embedding.projection import FINGERPRINT, project

__all__ = ["ProjectionEmbedder"]


class ProjectionEmbedder:
    """Implements ``Embedder`` by ``project``; it cannot fail."""

    fingerprint = FINGERPRINT

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector for each text."""
        # In a thread for numpy's import, and for what a large store takes. Pure, so it may be abandoned.
        return await trio.to_thread.run_sync(project, tuple(texts), abandon_on_cancel=True)
