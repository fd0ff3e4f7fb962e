"""A process that changes a memory by a plan of its own, and says each change that is made on stdout.

Arguments: directory, name, number of rounds, limit of episodes. Each line of the output is a
change that was acknowledged: ``add TEXT``, ``replace OLD NEW``, ``remove TEXT`` or ``episode ID``.
"""

import os
import sys
from pathlib import Path

from odek.memory.episodes import EpisodeLimits, EpisodeStore, Provenance
from odek.memory.facts import FactLimits, FactStore

__all__ = ["LIMITS"]

LIMITS = FactLimits(user=10_000_000, env=10_000_000)


def _acknowledge(*words: str) -> None:
    os.write(1, ("\t".join(words) + "\n").encode())


def _work(directory: Path, name: str, rounds: int) -> None:
    facts = FactStore(directory, LIMITS)
    episodes = EpisodeStore(directory, EpisodeLimits(max_episodes=0))
    for number in range(rounds):
        text = f"fact {number} of {name}"
        facts.add("user", text)
        _acknowledge("add", text)
        if number % 3 == 0:
            changed = f"changed {text}"
            facts.replace(facts.select(text, "user"), changed)
            _acknowledge("replace", text, changed)
            text = changed
        if number % 8:  # the file stays small, as a real one does
            facts.remove(facts.select(text, "user"))
            _acknowledge("remove", text)
        if number % 4 == 0:
            session_id = f"20260101-{name}-{number}"
            episodes.write(session_id, f"The person did {number}.", turns=3, provenance=Provenance())
            _acknowledge("episode", session_id)


if __name__ == "__main__":
    sys.stdin.readline()  # all begin together
    _work(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    _acknowledge("done")
