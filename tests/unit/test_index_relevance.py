"""The relevance of a hit means the same in an index of one text and of thousands."""

from pathlib import Path

import pytest

from odek.index.document import ANY, Document
from odek.index.engine import open_index
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
