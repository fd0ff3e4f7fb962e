"""The format of a fact file: entries between lines that hold only `§`. Pure.

What a person or another program wrote stays as it is, byte for byte: a byte order
mark, the kind of line ends, bytes that are no UTF-8, a missing final line end. Only
the entry that is changed is written anew.
"""

import re
from functools import lru_cache

import msgspec

from odek.patterns import late_pattern

__all__ = ["FactFile", "canonical"]

_BOM = b"\xef\xbb\xbf"
_MARK = "§".encode()
_SEPARATOR = late_pattern(rb"(?:\A|\r?\n)" + _MARK + rb"(?=\r?\n|\r?\Z)")


def canonical(text: str) -> str:
    r"""Return ``text`` as an entry holds it: line ends are ``\n``, none and no blank at the edges."""
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(r"\A[\s\ufeff]+|\s+\Z", "", unix)


class FactFile(msgspec.Struct, frozen=True):
    """A parsed file; ``segments`` are its entries as they are on disk."""

    segments: tuple[bytes, ...] = ()
    head: bytes = b""
    newline: bytes = b"\n"
    tail: bytes = b""

    @classmethod
    def parse(cls, data: bytes) -> "FactFile":
        """Read any bytes; there are no wrong ones. Segments without text are left out."""
        head = _BOM if data.startswith(_BOM) else b""
        body = data[len(head) :]
        newline = b"\r\n" if b"\r\n" in body else b"\n"
        first, *others = _SEPARATOR.split(body)
        segments = [first, *(re.sub(rb"\A\r?\n", b"", segment) for segment in others)]
        last = segments[-1].rstrip(b"\r\n")
        tail = segments[-1][len(last) :]
        segments[-1] = last
        return cls(tuple(segment for segment in segments if _text(segment)), head, newline, tail)

    def encode(self) -> bytes:
        """Return the bytes of the file; without an entry there are none."""
        if not self.segments:
            return b""
        separator = self.newline + _MARK + self.newline
        return self.head + separator.join(self.segments) + self.tail

    @property
    def texts(self) -> tuple[str, ...]:
        """The entries as canonical text; a byte that is no UTF-8 reads as the replacement character."""
        return tuple(_text(segment) for segment in self.segments)

    def with_added(self, text: str) -> "FactFile":
        """Return the file with the canonical ``text`` as its last entry."""
        return self._with((*self.segments, self._segment(text)))

    def with_replaced(self, old: str, new: str) -> "FactFile":
        """Return the file with ``new`` in the place of the first entry equal to ``old``, once.

        Other entries equal to either go: equal entries are stored once.
        """
        place = self.texts.index(old)
        pairs = zip(self.segments, self.texts, strict=True)
        kept = [
            self._segment(new) if index == place else segment
            for index, (segment, text) in enumerate(pairs)
            if index == place or text not in {old, new}
        ]
        return self._with(tuple(kept))

    def without(self, text: str) -> "FactFile":
        """Return the file without any entry equal to ``text``."""
        pairs = zip(self.segments, self.texts, strict=True)
        return self._with(tuple(segment for segment, found in pairs if found != text))

    def with_only(self, texts: tuple[str, ...]) -> "FactFile":
        """Return the file with exactly these entries; those that are there keep their bytes."""
        known = dict(zip(self.texts, self.segments, strict=True))
        return self._with(tuple(known.get(text) or self._segment(text) for text in texts))

    def _with(self, segments: tuple[bytes, ...]) -> "FactFile":
        return FactFile(segments, self.head, self.newline, self.tail)

    def _segment(self, text: str) -> bytes:
        """Encode an entry; a line that would end it gets a backslash more than it has."""
        escaped = re.sub(r"^(\\*§)$", r"\\\1", text, flags=re.MULTILINE)
        return escaped.encode().replace(b"\n", self.newline)


@lru_cache(maxsize=4096)  # a change looks at each entry several times, and the next one at most of them again
def _text(segment: bytes) -> str:
    text = canonical(segment.decode("utf-8", "replace"))
    return re.sub(r"^\\(\\*§)$", r"\1", text, flags=re.MULTILINE)
