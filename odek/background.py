"""What is done beside the answer: a fault there costs one line, never the run or what is to be saved."""

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
    """Begins work in ``nursery``. What it raises unforeseen becomes one line that begins with ``whose``.

    ``on_fault`` is called for each fault, told or not.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        emit: Callable[[Event], None],
        whose: str,
        *,
        on_fault: Callable[[], None] | None = None,
    ) -> None:
        self._nursery = nursery
        self._emit = emit
        self._whose = whose
        self._on_fault = on_fault
        self._told: set[str] = set()

    def start_soon(self, work: Callable[[Unpack[_Args]], Awaitable[object]], /, *args: *_Args) -> None:
        """Begin ``work``; returns at once."""
        self._nursery.start_soon(self.run, work, *args)

    async def run(self, work: Callable[[Unpack[_Args]], Awaitable[object]], /, *args: *_Args) -> None:
        """Do ``work`` here and now, its faults told as well."""
        try:
            await work(*args)
        except Exception as error:  # noqa: BLE001 - a fault beside the answer must not end the answer
            if self._on_fault is not None:
                self._on_fault()
            self._tell(f"{self._whose}: {fault_line(error)}")

    def _tell(self, line: str) -> None:
        """Tell a person, of the same fault once."""
        if line not in self._told:
            self._told.add(line)
            self._emit(Notice(line, "warning"))


def fault_line(error: Exception) -> str:
    """Return an exception that nobody foresaw in one line."""
    return first_line(f"internal error: {type(error).__name__}: {error}")
