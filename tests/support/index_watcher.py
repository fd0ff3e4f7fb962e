"""A process that asks an index for all documents until it has seen so many, and looks at each answer.

Arguments: directory, number of documents, size of a batch. The output is the number of different answers.
"""

import sys
from pathlib import Path

from tests.support.index_writer import opened

if __name__ == "__main__":
    directory, count, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    index = opened(directory, 0)
    answers = [0]
    while answers[-1] < count:
        found = {hit.id for hit in index.search("everywhere", count + 1, floor=0)}
        assert found == {f"d{number}" for number in range(len(found))}, "not a prefix"
        assert len(found) % size == 0, "half a batch"
        assert len(found) >= answers[-1], "something was lost"
        assert not index.damage, index.damage
        if len(found) > answers[-1]:
            answers.append(len(found))
    sys.stdout.write(f"{len(answers)}\n")
