"""Telling a program that embeds the agent what happens to the memory."""

from collections.abc import Callable

from odek.events import Event, MemoryEvent, Notice

__all__ = ["also_to"]


def also_to(emit: Callable[[Event], None], handler: Callable[[MemoryEvent], None]) -> Callable[[Event], None]:
    """Return what passes events on, and those of the memory to ``handler`` as well.

    A handler that fails is told of; it breaks nothing.
    """

    def both(event: Event) -> None:
        emit(event)
        if isinstance(event, MemoryEvent):
            try:
                handler(event)
            except Exception as error:  # noqa: BLE001 - a foreign handler must not break a turn
                emit(Notice(f"memory_event_handler failed: {type(error).__name__}: {error}", "warning"))

    return both
