"""The seam between whoever compares texts and whatever makes vectors of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from odek.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np

    Vector: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.float32]]
else:
    Vector = Any  # numpy costs a fifth of a second: who compares nothing does not load it

__all__ = ["Embedder", "EmbeddingError", "Vector", "cosine"]


class Embedder(Protocol):
    """Makes vectors of texts. Implementations pass one contract test."""

    @property
    def fingerprint(self) -> str:
        """Names the space: provider, model, size, version. Vectors compare within one space only."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one float32 vector for each text, in order, of length 1 or, if it says nothing, 0.

        Raises:
            EmbeddingError: there are no vectors now. The caller does without; it never
                takes the failure for a likeness or a difference.
        """
        ...


def cosine(left: Vector, right: Vector) -> float:
    """Return how alike two vectors of one space are, from -1 to 1."""
    return float(left @ right)
