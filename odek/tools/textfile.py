"""Bytes of a file as text: is it text at all, in which encoding, line by line."""

import codecs
from collections.abc import Iterable, Iterator

import msgspec

__all__ = [
    "SNIFFED_BYTES",
    "Line",
    "LineReader",
    "binary_kind",
    "decode_lines",
    "decode_text",
    "encode_text",
    "sniff",
    "utf8",
]

SNIFFED_BYTES = 8000
"""Git looks for a NUL in as many bytes; what is binary there is binary here."""

_BOMS = {  # UTF-32 first: its little-endian mark begins with that of UTF-16
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-8-sig": codecs.BOM_UTF8,
}
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "zip archive or office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x7fELF", "ELF program or library"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"\x00asm", "WebAssembly module"),
)


def sniff(head: bytes) -> str | None:
    """Return the codec that ``head``, the start of a file, promises, or None for binary.

    A byte order mark decides; without one it is "utf-8" until a byte proves otherwise.
    """
    for codec, mark in _BOMS.items():
        if head.startswith(mark):
            return codec
    return None if binary_kind(head) else "utf-8"


def binary_kind(head: bytes) -> str:
    """Name the binary format that ``head`` is the start of; "" when it looks like text."""
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    return "binary data" if b"\0" in head[:SNIFFED_BYTES] else ""


def utf8(pieces: Iterable[bytes], codec: str) -> Iterator[bytes]:
    """Yield a whole file's ``pieces`` without byte order mark, UTF-16 and UTF-32 turned into UTF-8."""
    skip = len(_BOMS.get(codec, b""))
    wide = codec.startswith(("utf-16", "utf-32"))
    decoder = codecs.getincrementaldecoder(codec if wide else "utf-8")("replace")
    for piece in pieces:
        body, skip = piece[skip:], max(skip - len(piece), 0)
        yield decoder.decode(body).encode() if wide else body
    if wide:
        yield decoder.decode(b"", final=True).encode()


def decode_text(data: bytes) -> tuple[str, str]:
    """Return a whole text file as (text without mark, codec); ``encode_text`` gives the same bytes back.

    Raises:
        ValueError: the mark promises an encoding that the rest does not keep.
    """
    codec = sniff(data[:SNIFFED_BYTES]) or "latin-1"
    body = data[len(_BOMS.get(codec, b"")) :]
    if codec == "utf-8":
        try:
            return body.decode(), codec
        except UnicodeDecodeError:
            return body.decode("latin-1"), "latin-1"
    return body.decode("utf-8" if codec == "utf-8-sig" else codec), codec


def encode_text(text: str, codec: str) -> bytes:
    """Return ``text`` as the bytes of a file in ``codec``, byte order mark included.

    Raises:
        UnicodeEncodeError: the codec has no such character.
    """
    return _BOMS.get(codec, b"") + text.encode("utf-8" if codec == "utf-8-sig" else codec)


class Line(msgspec.Struct, frozen=True):
    """One line without its end: its first bytes, its whole size, and how it ended."""

    head: bytes
    size_bytes: int
    end: bytes

    @property
    def clipped(self) -> bool:
        """Whether the line is longer than ``head``."""
        return self.size_bytes > len(self.head)


class LineReader:
    """Iterates over the lines of a stream in bounded memory, however long a line is.

    ``clip_bytes`` is how much of one line is kept. ``number`` counts the lines passed,
    skipped ones included.
    """

    def __init__(self, pieces: Iterable[bytes], clip_bytes: int) -> None:
        self.number = 0
        self._pieces = iter(pieces)
        self._clip_bytes = clip_bytes
        self._piece = b""
        self._position = 0  # in the piece: what lies before it is passed

    def __iter__(self) -> "LineReader":
        return self

    def __next__(self) -> Line:
        head, size, carriage = b"", 0, False
        while self._refill():
            start, newline = self._position, self._piece.find(b"\n", self._position)
            stop = newline if newline >= 0 else len(self._piece)
            if stop > start:
                carriage = self._piece[stop - 1] == 0x0D
            size += stop - start
            head += self._piece[start : min(stop, start + self._clip_bytes + 1 - len(head))]
            self._position = stop + 1
            if newline >= 0:
                self.number += 1
                size -= carriage
                return Line(head[: min(size, self._clip_bytes)], size, b"\r\n" if carriage else b"\n")
        if not size:
            raise StopIteration
        self.number += 1
        return Line(head[: self._clip_bytes], size, b"")

    def skip(self, count: int | None = None) -> None:
        """Pass over ``count`` lines, or all that are left; much faster than iterating."""
        left, unfinished = count, False
        while left is None or left > 0:
            if not self._refill():
                self.number += unfinished
                return
            found = self._piece.count(b"\n", self._position)
            if left is not None and found >= left:
                for _ in range(left):
                    self._position = self._piece.index(b"\n", self._position) + 1
                self.number += left
                return
            self.number += found
            left = None if left is None else left - found
            unfinished = not self._piece.endswith(b"\n")
            self._position = len(self._piece)

    def _refill(self) -> bool:
        """Make sure that there is a byte to look at; False at the end of the stream."""
        while self._position >= len(self._piece):
            try:
                self._piece, self._position = next(self._pieces), 0
            except StopIteration:
                return False
        return True


def decode_lines(heads: Iterable[bytes]) -> tuple[list[str], str]:
    """Return the starts of lines as (texts, codec): UTF-8, or latin-1 when one of them is not."""
    kept = list(heads)
    try:
        # Not final: a clipped line may end within a character.
        return [codecs.getincrementaldecoder("utf-8")().decode(head) for head in kept], "utf-8"
    except UnicodeDecodeError:
        return [head.decode("latin-1") for head in kept], "latin-1"
