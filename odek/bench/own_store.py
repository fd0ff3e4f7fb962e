"""The person's own store as a corpus: each episode is asked for by what its session began with. Reads alone.

Nothing is locked, written or kept: whoever works with the store goes on undisturbed. The
message that is asked is left out of what is searched, or it would find itself.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from odek.bench.corpus import BenchInputError, Corpus, Question
from odek.index.document import Document
from odek.memory.episode_reader import EpisodeReader
from odek.memory.extract import without_outside
from odek.memory.index_texts import EpisodeTexts, document_id
from odek.messages import UserMessage
from odek.sessions.texts import SessionTexts

__all__ = ["own_corpora"]

_ASKED = "Person: "


class _WithoutFirstMessage:
    """What was said in the sessions behind their first message."""

    def __init__(self, sessions: SessionTexts) -> None:
        self._sessions = sessions

    def stamps(self, only: Collection[str] | None = None) -> Mapping[str, str]:
        return self._sessions.stamps(only)

    def is_open(self, session_id: str) -> bool:
        return self._sessions.is_open(session_id)

    def said(self, session_id: str) -> list[str]:
        lines = self._sessions.said(session_id)
        first = next((at for at, line in enumerate(lines) if line.startswith(_ASKED)), -1)
        return lines[:first] + lines[first + 1 :] if first >= 0 else lines


def own_corpora(home: Path) -> list[Corpus]:
    """Return the episodes that may be recalled, without and with what else their sessions said.

    Raises:
        BenchInputError: there is none, or none whose session is there to ask.
        StoreError: the store cannot be read.
    """
    memory, sessions = home / "memory", SessionTexts(home / "sessions")
    reader = EpisodeReader(memory)
    texts = EpisodeTexts(memory, reader, _WithoutFirstMessage(sessions))
    documents: list[Document] = []
    episodes = reader.read_index()
    for episode in episodes:
        document = texts.read(document_id("episode", episode.session_id))
        if document is not None and document.trusted:
            documents.append(document)
    questions = _questions(sessions, documents)
    if not questions:
        raise BenchInputError(
            f"--mine: {memory} has {len(documents):,} episodes that may be recalled, "
            "and no session of theirs to ask with"
        )
    left_out = len(episodes) - len(documents)
    note = "Each session's first message is the question, and is not among the texts."
    if left_out:
        note += f" {left_out:,} episodes may not be recalled, and are left out."
    bare = tuple(msgspec.structs.replace(document, transcript="") for document in documents)
    return [
        Corpus("summaries", f"{memory}, the summaries alone", bare, questions, note),
        Corpus("and sessions", f"{memory}, with what was said", tuple(documents), questions, note),
    ]


def _questions(sessions: SessionTexts, documents: list[Document]) -> tuple[Question, ...]:
    """Return what sessions began with, each once: several may have begun alike."""
    from odek.index.query import ask

    answers: dict[str, list[str]] = {}
    for document in documents:
        reading = sessions.reading(document.id.partition("/")[2])
        messages = reading.messages if reading is not None else ()
        first = next((m.content for m in messages if isinstance(m, UserMessage) and m.content.strip()), "")
        text = " ".join(without_outside(first).split())
        if ask(text).is_telling:  # "go on" is about nothing
            answers.setdefault(text, []).append(document.id)
    return tuple(Question(text, tuple(names)) for text, names in answers.items())
