"""JSON whose text may be the name of a file, which need not be UTF-8.

Python's text of such a name holds lone surrogates. No UTF-8 has bytes for them, but JSON has
an escape: they are written as that, and read as they were. All other values cost what they
cost without them.
"""

from typing import Final, TypeVar

import msgspec

__all__ = ["dump", "load"]

_ENCODER: Final = msgspec.json.Encoder()

T = TypeVar("T")


def dump(value: object) -> bytes:
    """Return ``value`` as JSON, without a line break of its own.

    Raises:
        TypeError: it is no JSON.
        ValueError: the same.
        RecursionError: it is nested too deeply.
    """
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        import json

        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode("ascii")


def load(data: bytes, decoder: "msgspec.json.Decoder[T]") -> T:
    """Return what ``decoder`` finds in ``data``.

    Raises:
        ValueError: it is no JSON, or not of the decoder's type; msgspec's errors are of this kind.
        RecursionError: it is nested too deeply.
    """
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if b"\\ud" not in data:  # the beginning of each lone surrogate
            raise
        import json

        value: T = msgspec.convert(json.loads(data), decoder.type)
        return value
