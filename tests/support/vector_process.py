"""A process that shares an index with vectors, and does what its stdin says, line by line.

Arguments: directory. ``add N`` puts document N in and gives it its vector; ``remove N``
takes it out; ``fill`` gives vectors to all that have none; ``find N`` asks for document N
by its vector alone. Each is answered by a line: what was found, or ``ok``.
"""

import sys
from pathlib import Path

import numpy as np

from odek.embedding.embedder import Vector
from odek.index.document import Document
from odek.index.engine import Index, open_index

__all__ = ["document", "open_shared", "vector"]


def document(number: int) -> Document:
    """Return a document that no question here shares a word with."""
    return Document(id=f"d{number}", kind="atom", text=f"text{number}")


def vector(number: int) -> Vector:
    """Return the vector of document ``number``: another direction for each."""
    return np.random.default_rng(number).standard_normal(64).astype(np.float32)


def open_shared(directory: Path) -> Index:
    """Return the index."""
    return open_index(directory, "test", list, space="directions")


def fill(index: Index) -> None:
    """Give vectors to all that have none."""
    missing = index.without_vectors(10_000)
    index.set_vectors({version: vector(int(text[4:])) for version, text in missing})


def answer(index: Index, line: str) -> str:
    """Do what a line says."""
    match line.split():
        case ["add", number]:
            index.add([document(int(number))])
            fill(index)
        case ["remove", number]:
            index.remove([f"d{number}"])
        case ["fill"]:
            fill(index)
        case ["find", number]:
            return " ".join(hit.id for hit in index.search("question", 1, vector=vector(int(number))))
    return "ok"


if __name__ == "__main__":
    shared = open_shared(Path(sys.argv[1]))
    for asked in sys.stdin:
        sys.stdout.write(answer(shared, asked) + "\n")
        sys.stdout.flush()
