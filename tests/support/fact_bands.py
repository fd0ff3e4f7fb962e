"""How alike the pairs of facts are in a space of vectors, as the documentation tells it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from odek.memory.merge import merged_text
from tests.support.fact_pairs import CHANGED, OTHER_WORDS, SAME, UNRELATED

__all__ = ["GROUPS", "band_row", "published_rows"]

GROUPS = {"same": SAME, "changed": CHANGED, "other words": OTHER_WORDS, "unrelated": UNRELATED}

_PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "merging.md"


def published_rows(prefix: str = "") -> dict[str, str]:
    """Return what the page on merging says of each group of pairs."""
    rows = dict(re.findall(r"^\| (\w[\w :]*?) \| (\d+ \|.*) \|$", _PAGE.read_text(), re.MULTILINE))
    return {name: rows[prefix + name] for name in GROUPS}


def band_row(pairs: Sequence[tuple[str, str]], cosines: Sequence[Any]) -> str:
    """Return a row of the table: pairs, median cosine, share in each band, share folded in unasked."""
    values = sorted(cosines)
    count = len(values)
    above, below = sum(value > 0.7 for value in values), sum(value < 0.3 for value in values)
    folded = sum(
        value > 0.7 and merged_text(*pair) is not None for value, pair in zip(cosines, pairs, strict=True)
    )
    shares = [above, count - above - below, below, folded]
    return " | ".join([str(count), f"{values[count // 2]:.2f}", *(f"{part / count:.0%}" for part in shares)])
