"""A process that searches an index whenever it is told to, and says what it found.

Arguments: directory. Each line on stdin is a question; the answer is a line of ids between blanks.
"""

import sys
from pathlib import Path

from odek.index.engine import open_index

if __name__ == "__main__":
    index = open_index(Path(sys.argv[1]), "test", list)
    for line in sys.stdin:
        found = index.search(line, 10_000, floor=0)
        sys.stdout.write(" ".join(hit.id for hit in found) + "\n")
        sys.stdout.flush()
