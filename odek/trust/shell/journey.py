"""What all walks over one command line share: its functions, numbers of its commands, the work left."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Journey"]

# A command that a person wrote takes some hundred steps; beyond this it is one that loops in
# loops, and nobody could say what it does. Measured: 20,000 steps take about 0.3 s.
_STEPS_LIMIT = 20_000


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
        self._numbers: dict[tuple[int, int], int] = {}

    @property
    def is_over(self) -> bool:
        """Whether the command has taken more work than one that can be judged."""
        return self._steps > _STEPS_LIMIT

    def step(self, cost: int = 1) -> bool:
        """Take a step; False when there is none left."""
        self._steps += cost
        return not self.is_over

    def number(self, outer: int, start: int) -> int:
        """Return the number of the command at byte ``start`` inside the command ``outer``."""
        return self._numbers.setdefault((outer, start), len(self._numbers) + 1)
