"""Events carry no credential, however the text of an answer is cut into pieces."""

import pytest

from odek.events import (
    AnswerDelta,
    ChildrenChanged,
    ChildState,
    Event,
    ModelFinished,
    ModelRetrying,
    Notice,
    ReasoningDelta,
    ToolFinished,
    ToolRunning,
    TurnFinished,
    TurnStarted,
    Usage,
)
from odek.masked_events import MaskedEvents
from odek.trust.secrets import Masker

TOKEN = "ghp" + "_" + "a1B2c3D4e5F6" * 3
KNOWN = "correct horse battery"


def passed(*events: Event) -> list[Event]:
    """Return what comes out."""
    out: list[Event] = []
    masked = MaskedEvents(out.append, Masker([KNOWN]))
    for event in events:
        masked.emit(event)
    return out


@pytest.mark.parametrize(
    "event",
    [
        TurnStarted("s", 1, f"use {TOKEN}"),
        ModelRetrying(1, 0.5, f"host answered 500: bad key {TOKEN}"),
        ToolFinished("c", "shell", f"echo {TOKEN}", "ok", 0.1, TOKEN, f"+{TOKEN}"),
        ChildrenChanged("c", (ChildState("task 1", "failed", action=f"said {KNOWN}"),)),
        Notice(f"cannot write {TOKEN}", "warning"),
        TurnFinished("s", "failed", f"it is {KNOWN}", Usage(), 1.0, 1, f"401 {TOKEN}"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_every_text_of_an_event_is_masked(event: Event) -> None:
    """Tasks, reasons, previews, diffs, answers, states of subagents: none is left out."""
    shown = repr(passed(event))

    assert "[REDACTED:" in shown
    assert TOKEN not in shown
    assert KNOWN not in shown


def test_an_event_without_secrets_passes_as_it_is() -> None:
    """What needs no change is not copied."""
    event = ToolRunning("c", "shell", 2.0)

    assert passed(event)[0] is event


@pytest.mark.parametrize("kind", [AnswerDelta, ReasoningDelta])
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_credential_cut_by_the_stream_is_masked(kind: type[AnswerDelta], size: int) -> None:
    """The pieces join to the masked text, all of it before the end of the answer is told."""
    text = f"it is {TOKEN}, or {KNOWN}.\npassword: kjQx9vWmPz ok"
    end = ModelFinished(Usage(), "stop", 0, 1.0)

    out = passed(*(kind(text[at : at + size]) for at in range(0, len(text), size)), end)

    assert out[-1] is end
    assert "".join(event.text for event in out if isinstance(event, kind)) == (
        "it is [REDACTED:github-token], or [REDACTED:known-secret].\npassword: [REDACTED:assigned-secret] ok"
    )
