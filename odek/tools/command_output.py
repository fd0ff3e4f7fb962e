"""The output of a command as text: cleaned, bounded, with its newest line at hand."""

import codecs

from odek.text import last_state, plain
from odek.trust.secrets import Masker, SecretSpan, mask_spans

__all__ = ["CommandOutput"]

LINE_LIMIT_CHARS = 65_536
"""A line that is longer is cleaned in pieces of this size, so that memory stays bounded."""

MARGIN_BYTES = 16 * 1024
"""Kept beyond both cuts, so that a credential on a cut is known for one: the longest is about 12 KB."""

LIVE_BYTES = 4096
"""Looked at for the newest line: enough to see that it is a line of a key."""


class CommandOutput:
    """Takes a command's output in chunks and keeps what is worth reading.

    Escape sequences and control characters go, invalid UTF-8 is replaced, and of a line
    that carriage returns wrote again and again the last state stays. Of the result the
    first and the last half of ``limit_bytes`` are kept, whatever the whole amounts to.
    ``masker`` hides credentials that lie on these cuts, and those in the newest line. How
    the output is cut into chunks makes no difference, unless a line is longer than
    ``LINE_LIMIT_CHARS``.
    """

    def __init__(self, limit_bytes: int, masker: Masker) -> None:
        self._masker = masker
        self.received_bytes = 0
        self._head_bytes = limit_bytes // 2
        self._tail_bytes = limit_bytes - self._head_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head = bytearray()
        self._tail = bytearray()
        self._cleaned_bytes = 0
        self._unfinished = ""
        self._newest = ""  # the text that ends in the newest line

    def feed(self, chunk: bytes | bytearray) -> None:
        """Take the next bytes as they came."""
        self.received_bytes += len(chunk)
        text = self._unfinished + self._decoder.decode(chunk)
        end = text.rfind("\n") + 1
        self._keep(text[:end])
        self._unfinished = text[end:]
        if len(self._unfinished) > LINE_LIMIT_CHARS:
            self._shorten_unfinished()

    def newest_line(self) -> str:
        """Return the newest line that says something, or ""; a progress bar counts as it stands."""
        if "\r" in self._unfinished:
            for state in reversed(self._unfinished.split("\r")):
                if line := plain(state).strip():
                    return self._masker.mask(line)
        said = mask_spans(self._newest, self._masker.spans(self._newest)).rstrip()
        return said[said.rfind("\n") + 1 :].strip()

    def finish(self) -> str:
        """Return the text, without the white space at its end; nothing may be fed after that."""
        self._keep(self._unfinished + self._decoder.decode(b"", final=True))
        self._unfinished = ""
        if self._cleaned_bytes <= self._head_bytes + self._tail_bytes:
            return (self._head + self._tail).decode().rstrip()
        untrimmed = self._cleaned_bytes == len(self._head) + len(self._tail)
        end = self._head + self._tail if untrimmed else self._tail
        head, head_bytes = self._masked_head(bytes(self._head))
        tail, tail_bytes = self._masked_tail(bytes(end))
        left_out = self._cleaned_bytes - head_bytes - tail_bytes
        if left_out <= 0:  # one credential lay on both cuts
            return self._masker.mask((self._head + self._tail).decode().rstrip())
        return f"{head}\n[… {left_out:,} bytes left out …]\n{tail.rstrip()}"

    def _masked_head(self, data: bytes) -> tuple[str, int]:
        """Return the first half of the limit, masked, and how many bytes of ``data`` that is."""
        text = data.decode("utf-8", "ignore")
        cut = len(data[: self._head_bytes].decode("utf-8", "ignore"))
        spans = [span for span in self._masker.spans(text) if span.start < cut]
        cut = max([cut, *(span.end for span in spans)])
        return mask_spans(text[:cut], spans), len(text[:cut].encode())

    def _masked_tail(self, data: bytes) -> tuple[str, int]:
        """Return the last half of the limit, masked, and how many bytes of ``data`` that is."""
        text = data.decode("utf-8", "ignore")
        cut = len(text) - len(data[-self._tail_bytes :].decode("utf-8", "ignore"))
        spans = [span for span in self._masker.spans(text) if span.end > cut]
        cut = min([cut, *(span.start for span in spans)])
        moved = [SecretSpan(span.start - cut, span.end - cut, span.kind) for span in spans]
        return mask_spans(text[cut:], moved), len(text[cut:].encode())

    def _shorten_unfinished(self) -> None:
        """Bound a line that does not end: drop what was overwritten, keep the rest in pieces."""
        returned = "\r" if self._unfinished.endswith("\r") else ""
        self._unfinished = last_state(self._unfinished) + returned
        while len(self._unfinished) > LINE_LIMIT_CHARS:
            self._keep(self._unfinished[:LINE_LIMIT_CHARS])
            self._unfinished = self._unfinished[LINE_LIMIT_CHARS:]

    def _keep(self, text: str) -> None:
        cleaned = plain(text)
        if cleaned and not cleaned.isspace():
            self._newest = (self._newest + cleaned)[-LIVE_BYTES:]
        encoded = cleaned.encode()
        self._cleaned_bytes += len(encoded)
        room = self._head_bytes + MARGIN_BYTES - len(self._head)
        self._head += encoded[:room]
        self._tail += encoded[room:]
        kept_bytes = self._tail_bytes + MARGIN_BYTES
        if len(self._tail) > 2 * kept_bytes:  # not each time: that would copy it for each chunk
            del self._tail[:-kept_bytes]
