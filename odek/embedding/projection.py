"""Vectors from the words of a text alone: hashed, so that nothing is fitted or kept. Pure.

Each word, and each pair of neighbours, adds +1 or -1 times its weight to a few places
that its hash names. Texts that share words get vectors that point the same way. The
same text gets the same vector in every process, whatever else is in the batch: sums are
of whole numbers, hence exact in any order.

numpy is loaded with the first call.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from odek.embedding.features import STOP_WORDS, stem, words

if TYPE_CHECKING:
    import numpy as np

    from odek.embedding.embedder import Vector

    Hashes = np.ndarray[tuple[int], np.dtype[np.uint64]]

__all__ = ["DIMS", "FINGERPRINT", "project"]

DIMS = 1024
"""Size of a vector. Of 256, 512 and 1024 the best at finding: see docs/explanation/merging.md."""

VERSION = 1
"""Of all that decides where a text lands: the words, their weights, the hash."""

FINGERPRINT = f"rp/v{VERSION}/{DIMS}"

# A word is spread over this many places: one alone lost 2 % of the hits, 16 gained nothing over 8.
_PLACES = 8
# Against 1 for a word: measured on the same sets; from 0.05 to 0.2, and 0.2 to 0.5, hardly any difference.
_STOP_WEIGHT = 0.15
_PAIR_WEIGHT = 0.3
# Weights become whole numbers of this fraction.
_UNIT = 4096
# Keeps the working arrays of a batch at some megabytes.
_BATCH_TEXTS = 256
# Of one text; summaries and facts have 2,048 bytes. A longer one is about what it begins with.
_READ_CHARACTERS = 32_768

_STOPPED = STOP_WORDS | {stem(word) for word in STOP_WORDS}


def project(texts: Sequence[str]) -> "list[Vector]":
    """Return a vector of length 1 for each text; a text without words gets zeros."""
    starts = range(0, len(texts), _BATCH_TEXTS)
    return list(chain.from_iterable(_project(texts[start : start + _BATCH_TEXTS]) for start in starts))


def _project(texts: Sequence[str]) -> "list[Vector]":
    import numpy as np

    owners, hashes, weights = _features(texts)
    # Each feature of a text once, with how often it is there.
    keys = _mixed(hashes + _mixed(owners.astype(np.uint64)))
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    owners, hashes = owners[first], hashes[first]
    amounts = np.rint(weights[first] * (1 + np.log(counts)) * _UNIT)
    sums = np.zeros(len(texts) * DIMS)
    for place in range(1, _PLACES + 1):
        rolled = _mixed(hashes + np.uint64(place * 0x9E3779B97F4A7C15 & _WORD))
        cells = owners * DIMS + (rolled >> np.uint64(1)).astype(np.int64) % DIMS
        signs = 1 - 2 * (rolled & np.uint64(1)).astype(np.int64)
        sums += np.bincount(cells, weights=amounts * signs, minlength=sums.size)
    rows = sums.reshape(len(texts), DIMS)
    lengths = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return list((rows / np.where(lengths > 0, lengths, 1)).astype(np.float32))


def _features(
    texts: Sequence[str],
) -> (
    "tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Hashes, np.ndarray[tuple[int], np.dtype[np.float64]]]"
):
    """Return for each word and each pair of neighbours: whose it is, its hash, its weight."""
    import numpy as np

    found = [words(text[:_READ_CHARACTERS]) for text in texts]
    flat = list(chain.from_iterable(found))
    owners = np.repeat(np.arange(len(texts)), [len(text) for text in found])
    hashes = np.fromiter(map(_hash, flat), np.uint64, len(flat))
    weights = np.fromiter((_STOP_WEIGHT if word in _STOPPED else 1.0 for word in flat), np.float64, len(flat))
    inside = owners[1:] == owners[:-1]
    pairs = _mixed(hashes[:-1] * np.uint64(3) + _mixed(hashes[1:]))
    pair_weights = _PAIR_WEIGHT * np.sqrt(weights[:-1] * weights[1:])
    return (
        np.concatenate([owners, owners[:-1][inside]]),
        np.concatenate([hashes, pairs[inside]]),
        np.concatenate([weights, pair_weights[inside]]),
    )


@lru_cache(maxsize=65_536)  # some megabytes; a store of 500 summaries has about 6,000 words
def _hash(word: str) -> int:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8, person=b"odek-rp")
    return int.from_bytes(digest.digest(), "little")


_WORD = (1 << 64) - 1


def _mixed(values: "Hashes") -> "Hashes":
    """Return well-spread functions of 64-bit values: the finaliser of splitmix64."""
    import numpy as np

    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
