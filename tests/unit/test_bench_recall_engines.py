"""What the benchmark of recall compares: each engine finds, and says what it is."""

from pathlib import Path

import pytest

from benchmarks.recall_engines import ENGINES, missing, parameters
from odek.index.document import Document

TEXTS = {
    "boiler": "The boiler in the cellar was repaired; its valve leaked.",
    "dog": "The puppy was vaccinated by the vet in March.",
    "train": "Tickets for the night train to Vienna were booked.",
}


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_finds_what_another_handle_built(name: str, tmp_path: Path) -> None:
    """The best document is the one with the question's words, also for who opens it later."""
    if why := missing(name):
        pytest.skip(why)
    documents = [Document(key, "episode", text) for key, text in TEXTS.items()]
    ENGINES[name](tmp_path).build(lambda: documents)
    reader = ENGINES[name](tmp_path)

    assert reader.search("which night train was booked?", 2)[0] == "train"
    assert reader.search("the leaking valve", 3)[0] == "boiler"
    assert parameters(name)


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "bm25s"])
def test_an_open_reader_finds_what_was_added(name: str, tmp_path: Path) -> None:
    """After a look for what is new, at most."""
    if why := missing(name):
        pytest.skip(why)
    documents = [Document(key, "episode", text) for key, text in TEXTS.items()]
    ENGINES[name](tmp_path).build(lambda: documents)
    reader, writer = ENGINES[name](tmp_path), ENGINES[name](tmp_path)
    assert reader.search("zebra", 1) != ["new"]
    writer.add(Document("new", "episode", "a zebra in the garden"))
    reader.refresh()

    assert reader.search("zebra", 1) == ["new"]
