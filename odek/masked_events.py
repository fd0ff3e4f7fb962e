"""Events without secrets: what a screen, a log or a program reads shows no credential."""

from collections.abc import Callable
from typing import Any

import msgspec

from odek.events import (
    AnswerDelta,
    Event,
    ModelFinished,
    ModelRetrying,
    ModelStarted,
    ReasoningDelta,
    TurnFinished,
)
from odek.trust.secret_stream import StreamMasker
from odek.trust.secrets import Masker

__all__ = ["MaskedEvents"]


class MaskedEvents:
    """Passes events on with every text in them masked.

    The pieces of an answer are one text: the end of what has arrived is held back as far as
    it may be the beginning of a credential, until the next piece or the end of the answer.
    """

    def __init__(self, emit: Callable[[Event], None], masker: Masker) -> None:
        self._emit = emit
        self._mask = masker.mask
        self._answer = StreamMasker(masker)
        self._reasoning = StreamMasker(masker)

    def emit(self, event: Event) -> None:
        """Mask ``event`` and pass it on, or hold it back; never waits."""
        match event:
            case AnswerDelta(text):
                self._pass_on(AnswerDelta(self._answer.feed(text)))
            case ReasoningDelta(text):
                self._pass_on(ReasoningDelta(self._reasoning.feed(text)))
            case ModelStarted() | ModelRetrying() | ModelFinished() | TurnFinished():
                self._pass_on(ReasoningDelta(self._reasoning.flush()))
                self._pass_on(AnswerDelta(self._answer.flush()))
                self._emit(_masked(event, self._mask))
            case _:
                self._emit(_masked(event, self._mask))

    def _pass_on(self, delta: AnswerDelta | ReasoningDelta) -> None:
        if delta.text:
            self._emit(delta)


def _masked(value: Any, mask: Callable[[str], str]) -> Any:
    """Return ``value`` with ``mask`` applied to all text in it; the same object where nothing changes."""
    match value:
        case str():
            return mask(value)
        case tuple():
            parts = tuple(_masked(part, mask) for part in value)
            return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
        case msgspec.Struct():
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            changes = {
                name: new
                for name, old in fields.items()
                if isinstance(old, str | tuple | msgspec.Struct) and (new := _masked(old, mask)) is not old
            }
            return msgspec.structs.replace(value, **changes) if changes else value
        case _:
            return value
