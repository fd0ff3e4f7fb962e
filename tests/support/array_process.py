"""A process that writes or reads a file of rows; the numbers of a row are its key.

Arguments: ``write FILE FIRST COUNT [LIMIT]`` appends rows one by one, and says after each
that it is there; it compacts now and then. No file of it may have more than LIMIT bytes.
``read FILE COUNT`` looks at the file until it has COUNT rows, says how many states it saw
in between, and fails if ever the rows were no prefix.
"""

import resource
import sys
from pathlib import Path

import numpy as np

from odek.errors import StoreError
from odek.storage.arrays import RowFile

DIMS = 64


def write(rows: RowFile, first: int, count: int, limit_bytes: int = resource.RLIM_INFINITY) -> None:
    """Append rows with the keys from ``first`` on."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    for key in range(first, first + count):
        try:
            rows.append([key], [(key, 0)], np.full((1, DIMS), key, np.float32))
        except StoreError as error:
            sys.stdout.write(f"{error}\n")
            return
        sys.stdout.write(f"{key}\n")
        sys.stdout.flush()
        if key % 97 == 96:
            rows.compact()


def read(rows: RowFile, count: int) -> None:
    """Look until there are ``count`` rows."""
    seen = {0}
    while rows.size < count:
        if rows.refresh():
            assert rows.keys.tolist() == list(range(rows.size)), rows.keys
            assert (rows.rows[rows.alive] == rows.record_keys[rows.alive][:, None]).all()
            seen.add(rows.size)
    sys.stdout.write(f"{len(seen)}\n")


if __name__ == "__main__":
    what, path, *numbers = sys.argv[1:]
    (write if what == "write" else read)(RowFile(Path(path), "s"), *map(int, numbers))
