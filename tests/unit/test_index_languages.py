"""Notes in many languages, found by questions in other words or inflections than theirs."""

from pathlib import Path

import msgspec
import pytest

from odek.index.document import Document
from odek.index.engine import RELEVANCE_FLOOR, Index, open_index

DATA = Path(__file__).parents[1] / "data" / "recall_languages.jsonl"
SHARE = 0.85


class Question(msgspec.Struct):
    """A question, and the place of the note that answers it."""

    text: str
    note: int


class Language(msgspec.Struct):
    """Notes in one language, and questions about some of them."""

    language: str
    notes: list[str]
    questions: list[Question]


LANGUAGES = [msgspec.json.decode(line, type=Language) for line in DATA.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Return an index that holds the notes of all languages."""
    notes = [
        Document(id=f"{each.language}-{at}", kind="episode", text=note)
        for each in LANGUAGES
        for at, note in enumerate(each.notes)
    ]
    made = open_index(tmp_path_factory.mktemp("index"), "test", lambda: notes)
    assert made.rebuild()
    return made


def hits(index: Index, asked: Language, floor: float) -> list[bool]:
    """Return for each question whether its note is among the first three."""
    return [
        f"{asked.language}-{question.note}" in [hit.id for hit in index.search(question.text, 3, floor=floor)]
        for question in asked.questions
    ]


@pytest.mark.parametrize("asked", LANGUAGES, ids=lambda each: str(each.language))
def test_notes_are_found_in_their_language(index: Index, asked: Language) -> None:
    """Nearly all questions of a language have their note among the first three."""
    found = hits(index, asked, 0)

    assert len(found) >= 8
    assert sum(found) / len(found) >= SHARE


def test_what_answers_a_question_is_relevant_in_any_language(index: Index) -> None:
    """The floor, measured in English, takes few right notes away from the others."""
    found = [found for asked in LANGUAGES for found in hits(index, asked, RELEVANCE_FLOOR)]

    assert sum(found) / len(found) >= SHARE
