"""A process that works on the atoms of a memory: adds, forgets, promotes, consolidates, by a seed.

    python -m tests.support.atom_worker MEMORY NAME ROUNDS

It writes a line for each thing that was acknowledged: ``+ID``, ``-ID``, ``^ID``.
"""

import random
import sys
from pathlib import Path

import trio

from odek.errors import StoreError
from odek.memory.extended.write import Draft
from tests.support.extended import open_extended

COLOURS = ("red", "blue", "green", "grey")


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def work(memory: Path, name: str, rounds: int) -> None:
    """Do ``rounds`` things."""
    chance = random.Random(name)
    mine: list[str] = []
    async with open_extended(memory, semantic_dedup_threshold=0.0) as atoms:

        async def merged(_: str, text: str) -> str:
            return '{"text": ""}' if "worker" in text else "{}"

        for number in range(rounds):
            what = chance.random()
            if what < 0.6 or not mine:
                text = f"worker {name} noted number {number} about the {chance.choice(COLOURS)} team"
                (written,) = await atoms.add([Draft(text)])
                mine.append(written.atom.id)
                say(f"+{written.atom.id}")
            elif what < 0.7:
                (written,) = await atoms.add(
                    [Draft(f"a page told worker {name} {number}", source_class="web")]
                )
                await atoms.promote(written.atom.id)
                say(f"^{written.atom.id}")
            elif what < 0.85:
                gone = mine.pop(chance.randrange(len(mine)))
                await atoms.forget(gone, purge=False)
                say(f"-{gone}")
            else:
                await atoms.recall(f"number {number} of the blue team")
        try:
            await atoms.consolidate(merged)
        except StoreError as error:
            say(f"!{error}")


if __name__ == "__main__":
    trio.run(work, Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
