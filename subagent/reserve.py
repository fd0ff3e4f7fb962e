"""Children started ahead of their tasks: what a child does before it has one is done while nobody waits."""

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import trio

from subagent.errors import ChildError
from subagent.process import ProcessTree
from subagent.spawner import Launch, Spawner

__all__ = ["Reserve", "open_reserve"]

IDLE_SECONDS = 120.0
"""For a child to wait for a task. No measurement behind this: a model writes its tasks in less."""


class Reserve:
    """A ``Spawner`` that keeps children of another waiting. Built by ``open_reserve``.

    A waiting child has been given its launch and no task. Who asks for a launch that none
    was started with gets a new child.
    """

    def __init__(self, spawner: Spawner, nursery: trio.Nursery, idle_seconds: float) -> None:
        self._spawner = spawner
        self._nursery = nursery
        self._idle_seconds = idle_seconds
        self._waiting: deque[_Waiting] = deque()

    def fill(self, launch: Launch, count: int) -> None:
        """Begin to start children until ``count`` wait for this very launch."""
        there = sum(waiting.launch == launch for waiting in self._waiting)
        for _ in range(count - there):
            waiting = _Waiting(launch)
            self._waiting.append(waiting)
            self._nursery.start_soon(self._keep, waiting)

    @asynccontextmanager
    async def open_child(self, launch: Launch) -> AsyncGenerator[ProcessTree]:
        """Yield a child that waits or is about to, or a new one."""
        waiting = next((each for each in self._waiting if each.launch == launch), None)
        if waiting is not None:
            self._waiting.remove(waiting)
            waiting.take()
            try:
                await waiting.settled.wait()
                if waiting.tree is not None:
                    yield waiting.tree
                    return
            finally:
                await waiting.end()
        async with self._spawner.open_child(launch) as tree:
            yield tree

    async def _keep(self, waiting: "_Waiting") -> None:
        """Start a child, have it wait, and hold it until whoever has taken it needs it no more."""
        try:
            with waiting.life, suppress(ChildError):  # who then gets a new child instead is told why not
                async with self._spawner.open_child(waiting.launch) as tree:
                    waiting.tree = tree
                    waiting.settled.set()
                    with trio.move_on_after(self._idle_seconds), waiting.idle:
                        await tree.wait_exited()
                    if waiting.is_taken:
                        await trio.sleep_forever()
                    self._waiting.remove(waiting)  # before it is ended: nobody is to take it now
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            waiting.settled.set()
            waiting.ended.set()


class _Waiting:
    """One child of the reserve: started or about to be, and then taken or not."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.tree: ProcessTree | None = None
        self.is_taken = False
        self.settled = trio.Event()  # it runs, or never will
        self.idle = trio.CancelScope()
        self.life = trio.CancelScope()
        self.ended = trio.Event()

    def take(self) -> None:
        """Let nobody else have it, and not end it for its idleness."""
        self.is_taken = True
        self.idle.cancel(reason="taken")

    async def end(self) -> None:
        """End it, and return when that is done; cannot be cancelled."""
        self.life.cancel(reason="no longer needed")
        with trio.CancelScope(shield=True):  # bounded as the end of a process tree is
            await self.ended.wait()


@asynccontextmanager
async def open_reserve(spawner: Spawner, *, idle_seconds: float = IDLE_SECONDS) -> AsyncGenerator[Reserve]:
    """Yield a reserve of children of ``spawner``; leaving the block ends those that still wait.

    A child that has waited for ``idle_seconds`` is ended.
    """
    async with trio.open_nursery() as nursery:
        yield Reserve(spawner, nursery, idle_seconds)
        nursery.cancel_scope.cancel()
