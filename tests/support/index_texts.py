"""Texts for the index, drawn from a small vocabulary by a seed."""

import random

from odek.index.document import Document

__all__ = ["documents", "sentence"]

_WORDS = """
harbour kettle lantern meadow copper violin thunder pebble orchard falcon velvet anchor ginger marble
tunnel saddle blanket compass feather walnut bridge candle dragon engine forest garden hammer island
jacket ladder magnet needle oyster pepper quartz rocket shadow timber umbrella valley window yogurt
zipper bottle carpet dinner eleven finger guitar helmet insect jungle
"""


def sentence(seed: int, count: int = 12) -> str:
    """Return ``count`` words that only ``seed`` decides on."""
    return " ".join(random.Random(seed).choices(_WORDS.split(), k=count))


def documents(count: int, start: int = 0) -> list[Document]:
    """Return documents ``d0``, ``d1``, …; each is the only one with the word ``mark`` + its number."""
    return [
        Document(id=f"d{number}", kind="episode", text=f"mark{number}x {sentence(number)}", created_at=number)
        for number in range(start, start + count)
    ]
