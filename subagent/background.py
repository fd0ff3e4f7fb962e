"""Process trees that outlive their command, such as a server that it left running."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from subagent.process import ProcessTree

__all__ = ["Background", "open_background"]

DRAIN_ROUND_BYTES = 65_536
DRAIN_ROUND_SECONDS = 0.01
"""One round each: 6 MB a second. A server is never held up by that, and a flood costs us little."""


class Background:
    """Keeps process trees until it closes. Built by ``open_background``."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    def adopt(self, tree: ProcessTree) -> None:
        """Take over ``tree``: it survives its own block, and ends when this closes.

        Its output is read and dropped, so that it neither blocks nor meets a closed pipe.
        """
        self._nursery.start_soon(self._keep, tree)
        tree.detach()

    async def _keep(self, tree: ProcessTree) -> None:
        try:
            async with trio.open_nursery() as readers:
                for stream in (tree.stdout, tree.stderr):
                    if stream is not None:
                        readers.start_soon(_discard, stream)
                await tree.wait_gone()
                readers.cancel_scope.cancel()
        finally:
            await tree.end()


@asynccontextmanager
async def open_background() -> AsyncGenerator[Background]:
    """Yield a keeper of background processes; on exit all of them are ended at once."""
    async with trio.open_nursery() as nursery:
        try:
            yield Background(nursery)
        finally:
            nursery.cancel_scope.cancel()


async def _discard(stream: trio.abc.ReceiveStream) -> None:
    while await stream.receive_some(DRAIN_ROUND_BYTES):  # noqa: ASYNC110 - a speed limit, not a wait
        await trio.sleep(DRAIN_ROUND_SECONDS)
