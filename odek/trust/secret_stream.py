"""Text that arrives in pieces, masked on its way: no cut between pieces hides a credential."""

from odek.trust.secrets import Masker, SecretSpan, mask_spans

__all__ = ["StreamMasker"]

HELD_CHARS = 16 * 1024
"""What waits for the rest of a credential at most. The longest, a private key, is about 12 KB."""

CONTEXT_CHARS = 1024
"""Of what is out already and may tell what comes next, such as ``password:`` before the value."""


class StreamMasker:
    """Masks a text piece by piece; all that ``feed`` and ``flush`` return is the masked text.

    Held back are the word under way and a credential that may go on. They are out with the
    next white space, or when more than ``HELD_CHARS`` wait.
    """

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._context = ""
        self._pending = ""

    def feed(self, piece: str) -> str:
        """Take the next piece; return what is certain so far."""
        self._pending += piece
        if len(self._pending) <= HELD_CHARS and not any(char.isspace() for char in piece):
            return ""
        return self._release(is_last=False)

    def flush(self) -> str:
        """Return the masked rest. What is fed after that is a new text."""
        out = self._release(is_last=True)
        self._context = ""
        return out

    def _release(self, *, is_last: bool) -> str:
        text, begin = self._context + self._pending, len(self._context)
        spans = [span for span in self._masker.spans(text) if span.end > begin]
        cut = len(text) if is_last else max(self._safe_cut(text, spans), begin)
        inside = [
            SecretSpan(max(span.start - begin, 0), span.end - begin, span.kind)
            for span in spans
            if span.end <= cut
        ]
        self._context, self._pending = text[max(cut - CONTEXT_CHARS, 0) : cut], text[cut:]
        return mask_spans(text[begin:cut], inside)

    def _safe_cut(self, text: str, spans: list[SecretSpan]) -> int:
        """Return up to where nothing that comes later can change what is masked."""
        word = len(text)
        while word > 0 and not text[word - 1].isspace():
            word -= 1
        cut = min(word, len(text) - self._masker.begun_chars(text))
        for span in reversed(spans):
            if span.end > cut or span.end == len(text):
                cut = min(cut, span.start)
        if len(text) - cut <= HELD_CHARS:
            return cut
        cut = len(text) - HELD_CHARS // 2
        return max([cut, *(span.end for span in spans if span.start < cut)])
