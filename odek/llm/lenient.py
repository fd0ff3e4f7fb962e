"""JSON and text as servers really send them."""

from typing import Any

import msgspec

__all__ = ["LeadingSurrogate", "decode_json", "encode_json", "joined"]


def decode_json(data: str | bytes) -> Any:
    """Decode JSON; beyond the standard, lone surrogates, NaN and long numbers are taken.

    Raises:
        ValueError: this is not JSON, or nested too deeply.
    """
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeError):
        import json

        try:
            return json.loads(data)
        except RecursionError:
            raise ValueError("nested too deeply") from None


def encode_json(value: Any) -> str:
    """Encode to JSON text; lone surrogates become U+FFFD."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        import json

        return joined(json.dumps(value, ensure_ascii=False))


def joined(text: str) -> str:
    """Return ``text`` with surrogate pairs joined, and lone surrogates as U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class LeadingSurrogate:
    r"""Joins a character whose two ``\u`` escapes arrive in different pieces."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what can be shown of ``piece``; a first half at its end waits for the next piece."""
        text = self._held + piece
        self._held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._held, text = text[-1], text[:-1]
        return joined(text)

    def close(self) -> str:
        """Return what still waited, as U+FFFD."""
        held, self._held = self._held, ""
        return joined(held)
