"""Waiting for what goes on outside of this program, on machines of any speed.

Time is counted in looks at it. A machine that is busy, or stands still for a moment, holds up this program
as much as what it waits for, and the looks that it did not get to make do not count.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import trio

__all__ = ["HANG_SECONDS", "LIMITS_SECONDS", "Stopwatch", "open_stopwatch", "wait_until"]

HANG_SECONDS = 60.0
"""After which something is taken to hang: it takes a few seconds at most on an idle machine."""

LIMITS_SECONDS = (0.4, 2.0, 10.0)
"""Time limits to try in turn, until a command had time to begin; mostly the first will do."""

LOOK_SECONDS = 0.01


async def wait_until(condition: Callable[[], bool], *, seconds: float = HANG_SECONDS) -> None:
    """Return as soon as ``condition`` is true, which nobody tells of.

    Raises:
        trio.TooSlowError: it is not, after ``seconds`` in looks.
    """
    for _ in range(round(seconds / LOOK_SECONDS)):
        if condition():
            return
        await trio.sleep(LOOK_SECONDS)
    raise trio.TooSlowError(f"not so after {seconds:g} s: {condition}")


class Stopwatch:
    """Measures how long processes take, while the loop of this one is free to look.

    What this program itself does meanwhile without letting the loop go on counts as one look.
    """

    def __init__(self) -> None:
        self._looks = 0

    @property
    def seconds(self) -> float:
        """The time since the last start, in looks."""
        return self._looks * LOOK_SECONDS

    def start(self) -> None:
        """Begin anew."""
        self._looks = 0

    async def run(self) -> None:
        """Go on for ever; ``open_stopwatch`` does this."""
        while True:
            await trio.sleep(LOOK_SECONDS)
            self._looks += 1


@asynccontextmanager
async def open_stopwatch() -> AsyncGenerator[Stopwatch]:
    """Yield a running stopwatch; it stops when the block is left."""
    watch = Stopwatch()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        try:
            yield watch
        finally:
            nursery.cancel_scope.cancel()
