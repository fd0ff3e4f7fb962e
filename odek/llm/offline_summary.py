"""A summary made of sentences of the text itself, chosen by the words they share with it."""

import re
from collections import Counter

__all__ = ["summarize"]

# Enough to tell what a session was about; no measurement behind either.
_MAX_SENTENCES = 5
_MAX_SENTENCE_CHARACTERS = 300

_COMMON = """
a about after all also an and any are as at be been but by can could did do does for from had has have he
her his how i if in into is it its just me more my no not of on one or our she so some than that the their
them then there these they this to up us was we were what when which who will with would you your
"""
_COMMON_WORDS = frozenset(_COMMON.split())


def summarize(text: str) -> str:
    """Return the most informative sentences of ``text``, verbatim and in their order.

    A sentence counts by how often its words occur in the whole text, common words
    apart. The result is "" when there is no sentence with a word in it.
    """
    sentences = list(dict.fromkeys(_sentences(text)))
    frequency = Counter(word for sentence in sentences for word in _words(sentence))

    def weight(index: int) -> float:
        words = _words(sentences[index])
        # The root keeps long sentences from winning by length alone, short ones by a single word.
        return sum(frequency[word] for word in words) / len(words) ** 0.5 if words else 0.0

    ranked = sorted(range(len(sentences)), key=lambda index: (-weight(index), index))
    chosen = sorted(index for index in ranked[:_MAX_SENTENCES] if weight(index) > 0)
    return " ".join(sentences[index] for index in chosen)


def _sentences(text: str) -> list[str]:
    """Split at line ends and after sentence marks; what is too long for one sentence is left out."""
    pieces = re.split(r"\n+|(?<=[.!?])\s+|(?<=[。！？])", text)  # noqa: RUF001 - the full stops of CJK texts
    stripped = (piece.strip() for piece in pieces)
    return [piece for piece in stripped if piece and len(piece) <= _MAX_SENTENCE_CHARACTERS]


def _words(sentence: str) -> list[str]:
    return [word for word in re.findall(r"\w+", sentence.casefold()) if word not in _COMMON_WORDS]
