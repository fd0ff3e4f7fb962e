"""A process that adds documents to an index by a plan, and says each batch that is in it.

Arguments: directory, number of documents, size of a batch, greatest size of a file in bytes or 0. Each
line of the output is ``added N``, with the number of documents that are in now, or an error.
"""

import os
import resource
import signal
import sys
from pathlib import Path

from odek.errors import StoreError
from odek.index.document import Document
from odek.index.engine import Index, open_index
from tests.support.index_texts import documents

__all__ = ["opened", "shared_documents"]


def shared_documents(count: int) -> list[Document]:
    """Return documents that all have the word ``everywhere``."""
    return [
        Document(id=each.id, kind=each.kind, text=f"everywhere {each.text}", created_at=each.created_at)
        for each in documents(count)
    ]


def opened(directory: Path, count: int) -> Index:
    """Return the index in ``directory`` of so many documents."""
    return open_index(directory, "test", lambda: shared_documents(count))


def _say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def _work(directory: Path, count: int, size: int, limit_bytes: int) -> None:
    index = opened(directory, count)
    if limit_bytes:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, resource.RLIM_INFINITY))
    _say("begin")
    for start in range(0, count, size):
        try:
            index.add(shared_documents(count)[start : start + size])
        except StoreError as error:
            _say(f"failed {error}")
            return
        _say(f"added {start + size}")
    _say("end")


if __name__ == "__main__":
    _work(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
