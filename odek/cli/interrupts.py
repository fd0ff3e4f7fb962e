"""Ctrl-C once ends the turn, twice leaves; a hang-up or a request to end leaves at once."""

import os
import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from odek.memory.drain import Drain

__all__ = ["Interrupts"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_T = TypeVar("_T")


class Interrupts:
    """What the person or the system asked to end.

    ``leaving`` is the scope of everything: it is cancelled to leave. ``received`` is the
    signal that ended the last turn or the program, or None. ``drain`` is the wait for
    background work on leaving: one Ctrl-C is answered by what it is for, two end it.
    """

    def __init__(self) -> None:
        self.leaving = trio.CancelScope()
        self.drain = Drain()
        self.received: signal.Signals | None = None
        self._turn: trio.CancelScope | None = None
        self._count = 0
        self._drain_count = 0

    @property
    def exit_status(self) -> int:
        """The exit status of a program that a signal ended: 130 for Ctrl-C."""
        return 128 + (self.received or signal.SIGINT)

    async def run_turn(self, turn: Callable[[], Awaitable[_T]]) -> _T | None:
        """Run a turn that Ctrl-C cancels; None when it was cancelled."""
        self.received, self._count = None, 0
        try:
            with trio.CancelScope() as self._turn:
                return await turn()
        finally:
            self._turn = None
        return None

    async def watch(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """React to signals until cancelled."""
        with trio.open_signal_receiver(*_SIGNALS) as signals:
            task_status.started()
            async for number in signals:
                self._react(signal.Signals(number))

    def _react(self, number: signal.Signals) -> None:
        if self.drain.is_waiting and not self.drain.is_given_up:
            self._cut_drain(number)
            return
        self.received = number
        self._count += 1
        if self._count > 2:
            # Clean-up is under way and bounded, but the person has said it three times. Nothing is
            # left running: the kernel closes the pipes that the commands' wardens watch.
            os._exit(self.exit_status)
        if self._turn is not None:
            self._turn.cancel()
        if number != signal.SIGINT or self._count > 1:
            self.drain.give_up()
        if number != signal.SIGINT or self._count > 1 or self._turn is None:
            self.leaving.cancel()

    def _cut_drain(self, number: signal.Signals) -> None:
        """The task itself is over: its exit status stays."""
        self._drain_count += 1
        if number == signal.SIGINT and self._drain_count == 1:
            self.drain.remind()
        else:
            self.drain.give_up()
