"""What waits for the first answer, so that the first request does not wait for it."""

import pytest

from odek.events import (
    AnswerDelta,
    Event,
    ModelFinished,
    ModelRetrying,
    ModelStarted,
    Notice,
    ReasoningDelta,
    TurnFinished,
    Usage,
)
from odek.first_answer import FirstAnswer

BEFORE: tuple[Event, ...] = (Notice("hello"), ModelStarted(1, 10))


@pytest.mark.parametrize(
    "sign",
    [
        AnswerDelta("a"),
        ReasoningDelta("hm"),
        ModelRetrying(1, 1.0, "down"),
        ModelFinished(Usage(), "stop", 0, 1.0),
        TurnFinished("s", "failed", "", Usage(), 1.0, 1),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_waits_begins_once_with_the_first_sign_of_an_answer(sign: Event) -> None:
    """However the request goes; every event is passed on, the sign after what it has begun."""
    seen: list[object] = []
    first = FirstAnswer(seen.append)
    first.then(lambda: seen.append("begun"))

    for event in (*BEFORE, sign, sign):
        first.emit(event)

    assert seen == [*BEFORE, "begun", sign, sign]


def test_what_comes_after_the_first_answer_begins_at_once() -> None:
    """There is nothing left to wait for."""
    begun: list[str] = []
    first = FirstAnswer(lambda _: None)
    first.emit(AnswerDelta("a"))
    first.then(lambda: begun.append("late"))

    assert begun == ["late"]
