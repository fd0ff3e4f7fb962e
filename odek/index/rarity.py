"""How telling a term is, by how many texts have it. Kept, because a question asks for it a hundred times."""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Corpus", "Frequencies", "Rarities", "rarities_of"]

# Half a megabyte each: a question shares small words with the one before it, and a turn asks the same
# several times.
_KEPT = 4_096


class Rarities(dict[int, float]):
    """What a term counts that so many of ``size`` texts have; computed when it is first asked for."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def __missing__(self, frequency: int) -> float:
        if len(self) >= _KEPT:
            self.clear()
        rarity = self[frequency] = math.log(1 + (self._size - frequency + 0.5) / (frequency + 0.5))
        return rarity


class Frequencies(dict[str, int]):
    """How many texts have a term: what ``count`` says when it is first asked for."""

    def __init__(self, count: Callable[[str], int]) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, term: str) -> int:
        if len(self) >= _KEPT:
            self.clear()
        frequency = self[term] = self._count(term)
        return frequency


class Corpus(NamedTuple):
    """The texts that are searched: how many they are, and for every term how many of them have it."""

    size: int
    frequencies: Mapping[str, int]


@lru_cache(maxsize=16)
def rarities_of(size: int) -> Rarities:
    """Return what terms count among ``size`` texts."""
    return Rarities(size)
