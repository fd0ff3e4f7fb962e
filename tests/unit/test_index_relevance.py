"""The relevance of a hit means the same in an index of one text and of thousands."""

from pathlib import Path

import pytest

from odek.index.document import ANY, Document
from odek.index.engine import RELEVANCE_FLOOR, open_index
from odek.index.scan import scan

NOTE = "The person moved the staging database to a host called heron and wrote the runbook."
OTHERS = [
    f"Note {number}: the {colour} team shipped {part} and met with {name} about {place}."
    for number, (colour, part, name, place) in enumerate(
        (colour, part, name, place)
        for colour in ("red", "blue", "green", "grey", "black")
        for part in ("the parser", "a cache", "billing", "search", "exports")
        for name in ("Ada", "Ben", "Cleo", "Dora")
        for place in ("Lyon", "Oslo", "Kyoto")
    )
]


def test_a_summary_is_as_relevant_in_other_words_than_its_session(tmp_path: Path) -> None:
    """What a session said in words of its own does not hide that its summary is about the question."""
    said = "Person: please have a look at it\nAgent: done, all of it is over there now\n" * 3
    documents = [Document("note", "episode", NOTE, said), Document("plain", "episode", NOTE + " Twice.")]
    index = open_index(tmp_path, "test", lambda: documents)
    index.rebuild()
    question = "which host has the staging database?"

    assert {hit.id for hit in index.search(question, 3)} == {"note", "plain"}
    assert {hit.id for hit in scan(documents, question, 3, ANY) if hit.relevance >= RELEVANCE_FLOOR} == {
        "note",
        "plain",
    }


@pytest.mark.parametrize("others", [0, 2, 20, 300])
def test_a_right_hit_is_relevant_and_a_chance_one_is_not_at_any_size(tmp_path: Path, others: int) -> None:
    """With one text as with hundreds a question about it finds it, and small talk finds nothing."""
    documents = [Document("note", "episode", NOTE)]
    documents += [Document(str(at), "episode", text) for at, text in enumerate(OTHERS[:others])]
    index = open_index(tmp_path, "test", lambda: documents)
    index.rebuild()
    for question in ("which host has the staging database?", "heron", "where is the runbook for staging?"):
        assert [hit.id for hit in index.search(question, 3)][:1] == ["note"]
        by_scan = scan(documents, question, 1, ANY)[0]
        assert index.search(question, 1)[0].relevance == pytest.approx(by_scan.relevance, rel=0.15)
    for talk in ("thanks a lot", "ok, go on please", "yes do that", "and what about the weather tomorrow?"):
        assert index.search(talk, 3) == []


CHATTER = """
thanks / go on / yes please / ok do it / do that again / looks good to me / what do you think? / that works
never mind / perfect, thanks a lot / can you explain that once more? / try something else / is it done yet?
danke, weiter / ja bitte / merci beaucoup / oui, continue / vale, sigue / grazie, va bene / да, продолжай
谢谢 / 好的 / 继续 / はい、お願いします / ありがとう / 네, 계속 / شكرا / धन्यवाद / ขอบคุณครับ
"""


@pytest.mark.parametrize(
    "phrase", [phrase.strip() for phrase in CHATTER.replace("\n", "/").split("/") if phrase.strip()]
)
def test_what_is_said_to_go_on_recalls_nothing(tmp_path: Path, phrase: str) -> None:
    """Even where a text holds the very words, a pleasantry is about none."""
    texts = [phrase, f"The person said: {phrase}, and then left.", *OTHERS[:40]]
    documents = [Document(str(at), "episode", text) for at, text in enumerate(texts)]

    assert [hit for hit in scan(documents, phrase, 3, ANY) if hit.relevance >= RELEVANCE_FLOOR] == []


def test_a_statement_is_relevant_by_fewer_words_than_a_text() -> None:
    """An atom's relevance is higher than that of an episode with its text."""
    documents = [Document("a", "atom", NOTE), Document("e", "episode", NOTE)]
    atom, episode = sorted(scan(documents, "staging host", 2, ANY), key=lambda hit: hit.id)

    assert atom.relevance > episode.relevance > RELEVANCE_FLOOR
