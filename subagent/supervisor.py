"""The fan-out: many tasks, a few children at once, results in the order of the tasks."""

from collections.abc import Callable, Sequence

import trio

from subagent.attempt import Attempt
from subagent.limits import Limits, sample_trees
from subagent.reports import ChildEnded, ChildTask, Outcome, SupervisorEvent
from subagent.spawner import Spawner

__all__ = ["Supervisor"]

SAMPLE_SECONDS = 0.25
"""Between two looks at what the children use. A look costs some milliseconds of a thread."""


DEFAULT_LIMITS = Limits()


class Supervisor:
    """Runs tasks in children of a spawner, ``max_concurrency`` at once over all its runs."""

    def __init__(self, spawner: Spawner, *, max_concurrency: int, limits: Limits = DEFAULT_LIMITS) -> None:
        self._spawner = spawner
        self._limits = limits
        self._slots = trio.CapacityLimiter(max_concurrency)

    async def run(
        self, tasks: Sequence[ChildTask], on_event: Callable[[SupervisorEvent], None]
    ) -> list[Outcome]:
        """Run every task in a child of its own; returns when nothing of any is left.

        Tasks start in their order. What one child does is its own outcome and nobody else's.
        Cancelling this ends all children, which takes a moment.

        Args:
            tasks: What to do; their ids tell them apart.
            on_event: Told what happens; it must not block.

        Returns:
            One outcome for each task, in the order of ``tasks``.
        """
        outcomes: dict[int, Outcome] = {}
        running: set[Attempt] = set()

        async def run_one(index: int, task: ChildTask, slot: object) -> None:
            attempt = Attempt(task, self._limits, on_event)
            running.add(attempt)
            try:
                outcomes[index] = await attempt.run(self._spawner)
            finally:
                running.remove(attempt)
                self._slots.release_on_behalf_of(slot)
            on_event(ChildEnded(task.id, outcomes[index]))

        async with trio.open_nursery() as sampling:
            sampling.start_soon(_sample, running)
            async with trio.open_nursery() as children:
                for index, task in enumerate(tasks):
                    slot = object()
                    await self._slots.acquire_on_behalf_of(slot)
                    children.start_soon(run_one, index, task, slot)
            sampling.cancel_scope.cancel()
        return [outcomes[index] for index in range(len(tasks))]


async def _sample(running: set[Attempt]) -> None:
    """Tell each attempt what its tree uses, until cancelled."""
    while True:
        await trio.sleep(SAMPLE_SECONDS)
        roots = {attempt.guard_pid: attempt for attempt in running}
        samples = await trio.to_thread.run_sync(sample_trees, [root for root in roots if root])
        for root, sample in samples.items():
            if roots[root] in running:
                roots[root].observe(sample)
