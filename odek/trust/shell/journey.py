"""What all walks over one command line share: its functions, numbers of its commands, the work left."""

import time
from typing import TYPE_CHECKING

from odek.trust.shell.grammar import parse

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Journey"]

# A command that a person wrote takes some hundred steps; beyond this it is one that loops in
# loops, and nobody could say what it does. Measured: 300 everyday commands take 7,000 steps and
# 0.1 s.
_STEPS_LIMIT = 15_000
# Of processor time. Measured: 100 KB of everyday commands take 0.03 s.
_PARSING_SECONDS = 0.1


class Journey:
    """Counts steps over all nested walks, and gives each simple command a number of its own.

    Attributes:
        functions: The bodies that each function may have, by its name.
        visited: The bodies that have been visited, by their ids, and
        running: those that are being visited.
    """

    def __init__(self) -> None:
        self.functions: dict[str, list[Node]] = {}
        self.visited: set[int] = set()
        self.running: set[int] = set()
        self._steps = 0
        self._parsing_seconds = _PARSING_SECONDS
        self._numbers: dict[tuple[int, int], int] = {}

    @property
    def is_over(self) -> bool:
        """Whether the command has taken more work than one that can be judged."""
        return self._steps > _STEPS_LIMIT

    def parse(self, text: str) -> "tuple[Node | None, bool]":
        """Parse ``text`` within the time that is left; see ``grammar.parse``."""
        started = time.thread_time()
        parsed = parse(text, self._parsing_seconds)
        self._parsing_seconds -= time.thread_time() - started
        return parsed

    def step(self, cost: int = 1) -> bool:
        """Take a step; False when there is none left."""
        self._steps += cost
        return not self.is_over

    def number(self, outer: int, start: int) -> int:
        """Return the number of the command at byte ``start`` inside the command ``outer``."""
        return self._numbers.setdefault((outer, start), len(self._numbers) + 1)
