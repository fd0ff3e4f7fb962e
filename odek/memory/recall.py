"""Which episodes a question is about, and which of those are put before the model. Pure.

The index says how relevant a text is, and what is below its floor stays away. A likeness
alone is a weak sign: of two texts without a common subject some are always more alike
than others. So there is a floor too; and where vectors are made of words, an episode must
also share telling words with the question.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal

import msgspec

from odek.embedding.features import STOP_WORDS, stem, words

__all__ = [
    "BUDGET_BYTES",
    "KEEP",
    "OVER_FETCH",
    "Considered",
    "Document",
    "Hit",
    "Outcome",
    "choose",
    "choose_relevant",
    "corpus_fingerprint",
    "telling_words",
]

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

Outcome = Literal["injected", "score", "duplicate", "budget", "untrusted", "withheld", "offered"]


class Document(msgspec.Struct, frozen=True):
    """An episode that may be recalled, with its whole text.

    ``untrusted`` says that it is from an untrusted session and no person has seen it.
    ``quotation`` is what was said in the session about the question, in its own words.
    """

    session_id: str
    created_at: str
    text: str
    content_hash: str
    untrusted: bool = False
    quotation: str = ""


class Hit(msgspec.Struct, frozen=True):
    """A document and its cosine to the question, or as the index has it, its relevance.

    ``passage`` is what matches best of what was said in its session.
    """

    document: Document
    score: float
    passage: str = ""


class Considered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one thing that was considered for a turn.

    ``kind`` says of what; ``id`` is the session's id, the file and the number of the entry, the
    atom's id, or which part of what is known of the person. ``score`` is the cosine, or what an atom
    counts; ``relevance`` is that of the index; None when it was not computed. ``words`` counts the
    telling words shared with the question. ``reason`` explains an outcome.
    """

    kind: Literal["episode", "fact", "atom", "person"]
    id: str
    outcome: Outcome
    score: float | None = None
    words: int = 0
    reason: str = ""
    relevance: float | None = None


def choose(
    query: str,
    hits: Sequence[Hit],
    *,
    by_words: bool,
    shown: Collection[str] = (),
    budget_bytes: int = BUDGET_BYTES,
) -> tuple[list[Document], list[Considered]]:
    """Return what the model is given of the most alike, best first, and what became of each hit.

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
    table = _Table(shown, budget_bytes)
    considered: list[Considered] = []
    for hit in hits:
        common = len(wanted & telling_words(hit.document.text))
        is_far = hit.score < floor or common < needed or not wanted
        outcome = "score" if is_far else table.take(hit.document)
        considered.append(
            Considered("episode", hit.document.session_id, outcome, round(hit.score, 4), words=common)
        )
    return table.taken, considered


def choose_relevant(
    hits: Sequence[Hit],
    *,
    quote: Callable[[str], str],
    shown: Collection[str] = (),
    budget_bytes: int = BUDGET_BYTES,
) -> tuple[list[Document], list[Considered]]:
    """Return what the model is given of what the index found, best first, and what became of each hit.

    Args:
        hits: What is relevant enough, best first; its scores are relevances.
        quote: Returns the part of a passage that is worth quoting.
        shown: Ids of episodes that the conversation holds already.
        budget_bytes: Room for the texts together; quotations get what these leave.
    """
    table = _Table(shown, budget_bytes)
    considered: list[Considered] = []
    for hit in hits:
        outcome = table.take(hit.document)
        considered.append(
            Considered("episode", hit.document.session_id, outcome, relevance=round(hit.score, 2))
        )
    passages = {hit.document.session_id: hit.passage for hit in hits}
    for at, document in enumerate(table.taken):
        passage = passages[document.session_id]
        quotation = quote(passage) if passage else ""
        if quotation and table.takes(quotation):
            table.taken[at] = msgspec.structs.replace(document, quotation=quotation)
    return table.taken, considered


class _Table:
    """What a turn is given, as far as there is room."""

    def __init__(self, shown: Collection[str], room_bytes: int) -> None:
        self.taken: list[Document] = []
        self._shown = shown
        self._room_bytes = room_bytes

    def take(self, document: Document) -> Outcome:
        """Take a document if it is new and fits."""
        if document.session_id in self._shown:
            return "duplicate"
        if len(self.taken) == KEEP or not self.takes(document.text):
            return "budget"
        self.taken.append(document)
        return "injected"

    def takes(self, text: str) -> bool:
        """Use room for a text, if there is enough."""
        size = len(text.encode())
        if size > self._room_bytes:
            return False
        self._room_bytes -= size
        return True


def telling_words(text: str) -> set[str]:
    """Return the words of ``text`` that carry meaning, as the vectors see them."""
    return set(words(text)) - _STOPPED


def corpus_fingerprint(documents: Iterable[Document]) -> str:
    """Name a set of documents: another one, or another text of one, gives another name."""
    import hashlib

    parts = sorted(f"{document.session_id}\0{document.content_hash}" for document in documents)
    joined = "\n".join(parts).encode()
    return f"{len(parts)}/{hashlib.sha256(joined).hexdigest()}"
