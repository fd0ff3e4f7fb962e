"""What Extended Memory does beside the answer: a fault there is told of, and ends nothing else."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVarTuple, Unpack

import trio

from odek.events import Event, Notice
from odek.text import first_line

__all__ = ["Background", "Starter", "fault_line"]

_Args = TypeVarTuple("_Args")


class Starter(Protocol):
    """Begins work that goes on by itself; a nursery is one."""

    def start_soon(self, work: Callable[[Unpack[_Args]], Awaitable[object]], /, *args: *_Args) -> None:
        """Begin ``work``; returns at once."""
        ...


class Background:
    """Begins work in ``nursery``. What it raises unforeseen is counted and becomes one line."""

    def __init__(self, nursery: trio.Nursery, emit: Callable[[Event], None], counters: Counter[str]) -> None:
        self._nursery = nursery
        self._emit = emit
        self._counters = counters
        self._told: set[str] = set()

    def start_soon(self, work: Callable[[Unpack[_Args]], Awaitable[object]], /, *args: *_Args) -> None:
        """Begin ``work``; returns at once."""

        async def guarded() -> None:
            try:
                await work(*args)
            except Exception as error:  # noqa: BLE001 - a fault beside the answer must not end the answer
                self._counters["background_failed"] += 1
                self._tell(f"Extended Memory: {fault_line(error)}")

        self._nursery.start_soon(guarded)

    def _tell(self, line: str) -> None:
        """Tell a person, of the same fault once."""
        if line not in self._told:
            self._told.add(line)
            self._emit(Notice(line, "warning"))


def fault_line(error: Exception) -> str:
    """Return an exception that nobody foresaw in one line."""
    return first_line(f"internal error: {type(error).__name__}: {error}")
