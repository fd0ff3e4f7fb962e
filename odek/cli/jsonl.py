"""Events as JSON lines, for programs."""

from typing import Final

import msgspec

from odek.cli.screen import Screen
from odek.events import Event

__all__ = ["JsonRenderer", "json_line"]

_ENCODER: Final = msgspec.json.Encoder()


class JsonRenderer:
    """Writes each event to ``out`` as one line of JSON, its kind in ``type``, and nothing else."""

    def __init__(self, out: Screen) -> None:
        self._out = out

    def handle(self, event: Event) -> None:
        """Write ``event``.

        Raises:
            OutputClosedError: nobody reads any more.
            OutputFailedError: the line could not be written.
        """
        self._out.write(json_line(event) + "\n")

    @property
    def is_moving(self) -> bool:
        """Nothing moves here."""
        return False

    def tick(self) -> None:
        """Nothing moves here."""

    def suspend(self) -> None:
        """Nothing to put away."""

    def resume(self) -> None:
        """Nothing was put away."""

    def close(self) -> None:
        """Everything is written already."""


def json_line(event: Event) -> str:
    """Return ``event`` as one line of JSON, its kind in ``type``, without the line's end."""
    try:
        line = _ENCODER.encode(event)
    except UnicodeEncodeError:  # a file name that is not UTF-8, for instance
        line = _ENCODER.encode(_encodable(msgspec.to_builtins(event)))
    return line.decode()


def _encodable(value: object) -> object:
    """Replace lone surrogates in every string of ``value``."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode("utf-8")
        case dict():
            return {key: _encodable(item) for key, item in value.items()}
        case list() | tuple():
            return [_encodable(item) for item in value]
        case _:
            return value
