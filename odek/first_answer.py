"""What can wait until the model answers, so that nothing delays the first request."""

from collections.abc import Callable

from odek.events import AnswerDelta, Event, ModelFinished, ModelRetrying, ReasoningDelta, TurnFinished

__all__ = ["FirstAnswer"]


class FirstAnswer:
    """Passes events on. With the first that comes of a request it begins what has waited for that."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._waiting: list[Callable[[], None]] | None = []

    def then(self, begin: Callable[[], None]) -> None:
        """Call ``begin``, which must not wait, with the first answer; at once if that has come."""
        if self._waiting is None:
            begin()
        else:
            self._waiting.append(begin)

    def emit(self, event: Event) -> None:
        """Pass ``event`` on."""
        if self._waiting is not None and isinstance(
            event, AnswerDelta | ReasoningDelta | ModelRetrying | ModelFinished | TurnFinished
        ):
            waiting, self._waiting = self._waiting, None
            for begin in waiting:
                begin()
        self._emit(event)
