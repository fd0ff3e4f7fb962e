"""Work behind the agent's back that outlives a cancelled turn, and is waited for at the end, not for long."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import trio

__all__ = ["DRAIN_SECONDS", "Drain", "open_drained_jobs"]

DRAIN_SECONDS = 15.0
"""Most models answer one question within it, and a person may still wait for a command that long."""

SLOW_SECONDS = 1.0
"""Nobody minds a shorter wait; a longer one is explained."""


class Drain:
    """How long leaving may wait for background work, and the way to cut that short.

    ``is_waiting`` says that work is being waited for, ``is_given_up`` that nobody wants to.
    ``on_slow`` is called when the wait is a long one, ``on_left`` when it is over.
    """

    def __init__(self, limit_seconds: float = DRAIN_SECONDS) -> None:
        self.limit_seconds = limit_seconds
        self.on_slow: Callable[[], None] | None = None
        self.on_left: Callable[[], None] | None = None
        self.is_waiting = False
        self.is_given_up = False
        self._scope: trio.CancelScope | None = None

    def give_up(self) -> None:
        """Do not wait, or no longer: what is not done stays owed."""
        self.is_given_up = True
        if self._scope is not None:
            self._scope.cancel()

    def remind(self) -> None:
        """Say again what is being waited for."""
        if self.on_slow is not None:
            self.on_slow()

    async def wait(self, finished: trio.Event) -> None:
        """Wait for ``finished`` as long as this allows; a cancelled caller waits as well."""
        self.is_waiting = True
        try:
            with trio.move_on_after(self.limit_seconds, shield=True) as self._scope:
                if self.is_given_up:
                    self._scope.cancel()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._tell_if_slow)
                    await finished.wait()
                    nursery.cancel_scope.cancel()
        finally:
            self.is_waiting = False
            self._scope = None

    async def _tell_if_slow(self) -> None:
        await trio.sleep(SLOW_SECONDS)
        self.remind()


@asynccontextmanager
async def open_drained_jobs(drain: Drain) -> AsyncGenerator[trio.Nursery]:
    """Yield a nursery whose tasks a cancelled caller does not reach.

    When the block is left they get the time of ``drain`` to finish, and are then cancelled.
    """
    scope = trio.CancelScope(shield=True)  # bounded by the drain below
    opened, closing, finished = trio.Event(), trio.Event(), trio.Event()
    nurseries: list[trio.Nursery] = []

    async def host() -> None:
        with scope:
            async with trio.open_nursery() as jobs:
                nurseries.append(jobs)
                opened.set()
                await closing.wait()
        finished.set()

    try:
        async with trio.open_nursery() as nursery:
            # Not `start`: for a caller that is cancelled already it would wait for the end of the host.
            nursery.start_soon(host)
            try:
                with trio.CancelScope(shield=True):  # one step of the event loop
                    await opened.wait()
                yield nurseries[0]
            finally:
                closing.set()
                await drain.wait(finished)
                scope.cancel()
    finally:
        if drain.on_left is not None:
            drain.on_left()
