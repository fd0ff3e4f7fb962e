"""From the loop to the screen without the loop ever waiting for the screen."""

from collections import deque

import msgspec
import trio

from odek.events import AnswerDelta, ChildrenChanged, Event, ReasoningDelta, ToolOutputLine, ToolRunning

__all__ = ["EventQueue"]


class EventQueue:
    """Holds events for one reader.

    ``emit`` never waits. What waits is merged instead of dropped: pieces of text join,
    and a newer line or tick of a call replaces an older one. So a stalled reader costs
    at most the size of what it will show.
    """

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._pieces: list[str] = []  # of the text that waits last, joined when it is taken or no longer last
        self._wakeup = trio.Event()
        self._closed = False

    def emit(self, event: Event) -> None:
        """Queue ``event``; from the trio thread only."""
        if not self._merged(event):
            self._join()
            self._events.append(event)
        self._wakeup.set()

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be read."""
        return not self._events

    def close(self) -> None:
        """Let the reader end once it has read everything."""
        self._closed = True
        self._wakeup.set()

    async def take(self) -> list[Event]:
        """Wait for events and return all that are there; an empty list means the end."""
        while not self._events and not self._closed:
            await self._wakeup.wait()
            self._wakeup = trio.Event()
        self._join()
        taken = list(self._events)
        self._events.clear()
        return taken

    def _merged(self, event: Event) -> bool:
        if not self._events:
            return False
        last = self._events[-1]
        if isinstance(event, AnswerDelta | ReasoningDelta) and type(event) is type(last):
            self._pieces = self._pieces or [last.text]
            self._pieces.append(event.text)
            return True
        if isinstance(event, ToolOutputLine | ToolRunning | ChildrenChanged):
            return self._replaced(event)
        return False

    def _join(self) -> None:
        """Make one text of the pieces that wait last."""
        if self._pieces:
            self._events[-1] = msgspec.structs.replace(self._events[-1], text="".join(self._pieces))
            self._pieces = []

    def _replaced(self, event: ToolOutputLine | ToolRunning | ChildrenChanged) -> bool:
        """Put ``event`` in the place of an older one of the same call, if one still waits."""
        for index in range(len(self._events) - 1, -1, -1):
            waiting = self._events[index]
            if type(waiting) is type(event) and getattr(waiting, "call_id", None) == event.call_id:
                self._events[index] = event
                return True
            if not isinstance(waiting, ToolOutputLine | ToolRunning | ChildrenChanged):
                return False  # never move progress across what else happened
        return False
