"""Shows the events of an agent while it works, beside it and never in its way."""

import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import trio

from odek.cli.renderer import STEADY_TICK_SECONDS, TICK_SECONDS, Renderer
from odek.event_queue import EventQueue
from odek.events import Event

__all__ = ["Display", "open_display"]

LAST_WORDS_SECONDS = 5.0
"""A terminal that takes no more output, such as one stopped with Ctrl-S, must not hold the exit for ever."""


class Display:
    """Feeds a renderer from a queue.

    Writing happens in a worker thread: a terminal that takes no output stops the
    picture, not the agent.
    """

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._queue = EventQueue()
        self._lock = trio.Lock()  # the renderer is used by one thread at a time
        self._idle = trio.Event()
        self._ended = trio.Event()
        self._wait = trio.CancelScope()  # for the next event; cancelled when there is something to redraw
        self._is_fresh = False  # something happened since the last tick
        self._task = trio.CancelScope(shield=True)  # what a cancelled agent still has to say is shown
        self._idle.set()

    def emit(self, event: Event) -> None:
        """Queue ``event`` to be shown."""
        if self._idle.is_set():
            self._idle = trio.Event()
        self._queue.emit(event)

    async def settle(self) -> None:
        """Wait until everything emitted so far is shown."""
        await self._idle.wait()

    @asynccontextmanager
    async def paused(self) -> AsyncGenerator[None]:
        """Hold the picture while somebody else uses the terminal; what happens is shown later."""
        async with self._lock:
            await trio.to_thread.run_sync(self._renderer.suspend)
        try:
            yield
        finally:
            with trio.CancelScope(shield=True):  # one redraw
                async with self._lock:
                    await trio.to_thread.run_sync(self._renderer.resume)
                self._wait.cancel()

    async def run(self) -> None:
        """Show events until the display is closed and everything is shown.

        Raises:
            OutputClosedError: nobody reads the output any more.
            OutputFailedError: the output could not be written.
        """
        try:
            with self._task:
                while await self._show_next():
                    pass
        finally:
            self._idle.set()
            self._ended.set()

    async def finish(self) -> None:
        """Show what is left, leave the terminal clean, and let ``run`` end."""
        self._queue.close()
        with trio.move_on_after(LAST_WORDS_SECONDS, shield=True):
            await self._ended.wait()
        self._task.cancel()

    async def _show_next(self) -> bool:
        """Show the events that wait, or a tick; False after the last."""
        events: Sequence[Event] | None = None
        with trio.move_on_after(self._patience_seconds()) as self._wait:
            events = await self._queue.take()
        self._is_fresh = events is not None
        async with self._lock:
            await trio.to_thread.run_sync(self._show, events, abandon_on_cancel=True)
        if self._queue.is_empty:
            self._idle.set()
        return events is None or bool(events)

    def _patience_seconds(self) -> float:
        """Return how long to wait for an event: for ever while nothing moves, which costs nothing."""
        if not self._renderer.is_moving:
            return math.inf
        return TICK_SECONDS if self._is_fresh else STEADY_TICK_SECONDS

    def _show(self, events: Sequence[Event] | None) -> None:
        if events is None:
            self._renderer.tick()
        elif events:
            for event in events:
                self._renderer.handle(event)
        else:
            self._renderer.close()


@asynccontextmanager
async def open_display(renderer: Renderer) -> AsyncGenerator[Display]:
    """Yield a display that shows events until the block is left; then everything left is shown.

    Output that fails cancels the block: an agent that nobody can follow stops.
    """
    display = Display(renderer)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(display.run)
        try:
            yield display
        finally:
            await display.finish()
