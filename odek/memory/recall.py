"""Which episodes a question is about, and which of those are put before the model. Pure.

A likeness alone is a weak sign: of two texts without a common subject some are always
more alike than others. So there is a floor; and where vectors are made of words, an
episode must also share telling words with the question.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

import msgspec

from odek.embedding.features import STOP_WORDS, stem, words

__all__ = ["BUDGET_BYTES", "KEEP", "OVER_FETCH", "Considered", "Document", "Hit", "Outcome", "choose"]

OVER_FETCH = 8
"""Hits that are looked at; what was shown already or does not fit makes room for the next."""

KEEP = 3
"""Episodes that a turn is given at most."""

BUDGET_BYTES = 3 * 2048
"""Of all episodes of a turn: three of the longest."""

# Measured on two sets of about a thousand questions, each also put to the other's documents: at 0.16 with
# two common words 97 % of the hits among the first three stay, and 1 to 19 % of the foreign questions
# recall something; with the likeness alone 2 to 47 % do, and a floor of 0.2 costs a tenth of the hits.
_FLOOR_OF_WORDS = 0.16
_COMMON_WORDS = 2
# For a real embedding model. No measurement behind it: models differ, and most rate strangers below this.
_FLOOR_OF_MODELS = 0.3

_STOPPED = STOP_WORDS | {stem(word) for word in STOP_WORDS}

Outcome = Literal["injected", "score", "duplicate", "budget", "untrusted", "withheld"]


class Document(msgspec.Struct, frozen=True):
    """An episode that may be recalled, with its whole text.

    ``untrusted`` says that it is from an untrusted session and no person has seen it.
    """

    session_id: str
    created_at: str
    text: str
    content_hash: str
    untrusted: bool = False

    @property
    def size_bytes(self) -> int:
        """Size of the text in UTF-8."""
        return len(self.text.encode())


class Hit(msgspec.Struct, frozen=True):
    """A document and its cosine to the question."""

    document: Document
    score: float


class Considered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one thing that was considered for a turn.

    ``kind`` is ``episode`` or ``fact``; ``id`` the session's id, or the file and the number
    of the entry. ``score`` is the cosine, None when none was computed; ``words`` how many
    telling words it shares with the question. ``reason`` explains an outcome further.
    """

    kind: Literal["episode", "fact"]
    id: str
    outcome: Outcome
    score: float | None = None
    words: int = 0
    reason: str = ""


def choose(
    query: str,
    hits: Sequence[Hit],
    *,
    by_words: bool,
    shown: Collection[str] = (),
    budget_bytes: int = BUDGET_BYTES,
) -> tuple[list[Document], list[Considered]]:
    """Return what the model is given, best first, and what became of each hit.

    Args:
        query: The question.
        hits: The most alike documents, best first.
        by_words: Whether the vectors are made of words.
        shown: Ids of episodes that the conversation holds already.
        budget_bytes: Room for the texts together.
    """
    wanted = telling_words(query)
    needed = min(_COMMON_WORDS, len(wanted)) if by_words else 0
    floor = _FLOOR_OF_WORDS if by_words else _FLOOR_OF_MODELS
    chosen: list[Document] = []
    considered: list[Considered] = []
    room = budget_bytes
    for hit in hits:
        document = hit.document
        common = len(wanted & telling_words(document.text))
        outcome: Outcome = "injected"
        if hit.score < floor or common < needed or not wanted:
            outcome = "score"
        elif document.session_id in shown:
            outcome = "duplicate"
        elif len(chosen) == KEEP or document.size_bytes > room:
            outcome = "budget"
        else:
            chosen.append(document)
            room -= document.size_bytes
        considered.append(
            Considered("episode", document.session_id, outcome, round(hit.score, 4), words=common)
        )
    return chosen, considered


def telling_words(text: str) -> set[str]:
    """Return the words of ``text`` that carry meaning, as the vectors see them."""
    return set(words(text)) - _STOPPED


def corpus_fingerprint(documents: Iterable[Document]) -> str:
    """Name a set of documents: another one, or another text of one, gives another name."""
    import hashlib

    parts = sorted(f"{document.session_id}\0{document.content_hash}" for document in documents)
    joined = "\n".join(parts).encode()
    return f"{len(parts)}/{hashlib.sha256(joined).hexdigest()}"
