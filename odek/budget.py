"""Budgets of one task: iterations, tokens, money, time. Counting only; the loop asks."""

from collections.abc import Callable
from typing import Literal

import msgspec

from odek.errors import LimitReachedError
from odek.events import BudgetWarning, Usage

__all__ = ["Budget", "Limits"]

WARN_PERCENTS = (90, 75, 50)

FEWEST_WARNED_ITERATIONS = 4
"""Of fewer requests the last is there at once, and a warning says nothing."""

Kind = Literal["tokens", "cost", "iterations", "time"]


class Limits(msgspec.Struct, frozen=True):
    """What one turn may use; 0 means no limit."""

    iterations: int = 90
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0


class Budget:
    """Counts what a turn used and warns once at 50, 75 and 90 percent of each limit.

    Args:
        limits: The limits.
        clock: Seconds of a clock that never goes back.
        emit: Takes the warnings.
    """

    def __init__(
        self, limits: Limits, clock: Callable[[], float], emit: Callable[[BudgetWarning], None]
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._emit = emit
        self._started = clock()
        self._warned: dict[Kind, int] = {}
        self.iterations = 0
        self.usage = Usage()

    @property
    def seconds(self) -> float:
        """Seconds since the turn began."""
        return self._clock() - self._started

    def spend(self, usage: Usage) -> None:
        """Add the usage of one request."""
        self.usage += usage
        self._warn()

    def begin_iteration(self) -> None:
        """Count one more request to the model.

        Raises:
            LimitReachedError: a budget is spent.
        """
        for kind, used, limit in self._meters():
            if limit and used >= limit:
                raise LimitReachedError(f"{_describe(kind, limit)} used up")
        self.iterations += 1
        self._warn()

    def share(self, count: int) -> Limits:
        """Return what each of ``count`` others may use so that all of them stay within the rest.

        Raises:
            LimitReachedError: nothing is left to share.
        """
        rest: dict[Kind, float] = {}
        for kind, used, limit in self._meters():
            if limit and used >= limit:
                raise LimitReachedError(f"{_describe(kind, limit)} used up")
            rest[kind] = limit - used if limit else 0
        return Limits(
            tokens=max(int(rest["tokens"] / count), 1) if rest["tokens"] else 0,
            cost_usd=rest["cost"] / count,
            seconds=rest["time"],
        )

    def rest(self) -> Limits:
        """Return what one more turn may use so that both stay within the limits.

        Raises:
            LimitReachedError: nothing is left.
        """
        rest = self.share(1)
        iterations = self._limits.iterations - self.iterations if self._limits.iterations else 0
        return msgspec.structs.replace(rest, iterations=iterations)

    def _meters(self) -> list[tuple[Kind, float, float]]:
        tokens = (self.usage.prompt_tokens or 0) + (self.usage.completion_tokens or 0)
        return [
            ("iterations", self.iterations, self._limits.iterations),
            ("tokens", tokens, self._limits.tokens),
            ("cost", self.usage.cost_usd or 0.0, self._limits.cost_usd),
            ("time", self.seconds, self._limits.seconds),
        ]

    def _warn(self) -> None:
        for kind, used, limit in self._meters():
            if not limit or (kind == "iterations" and limit < FEWEST_WARNED_ITERATIONS):
                continue
            reached = next((p for p in WARN_PERCENTS if used * 100 >= limit * p), 0)
            if reached > self._warned.get(kind, 0):
                self._warned[kind] = reached
                self._emit(BudgetWarning(kind, reached, used, limit))


def _describe(kind: Kind, limit: float) -> str:
    match kind:
        case "iterations":
            return f"the budget of {limit:g} model requests (max_iterations) is"
        case "tokens":
            return f"the budget of {limit:,.0f} tokens (budget.tokens) is"
        case "cost":
            return f"the budget of ${limit:.2f} (budget.cost_usd) is"
        case "time":
            return f"the budget of {limit:g} s (budget.seconds) is"
