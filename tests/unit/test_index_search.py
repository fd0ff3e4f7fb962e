"""The index as those who search see it: what is found, in which order, and what is barred."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from odek.errors import StoreError
from odek.index.document import Document, Filter, Hit, Kind
from odek.index.engine import Index, open_index
from tests.support.index_texts import documents
from tests.support.scratch import scratch

EVERYTHING = 1_000


def index_of(directory: Path, texts: Iterable[Document]) -> Index:
    """Return an index of ``texts`` that was built from them."""
    kept = list(texts)
    index = open_index(directory, "test", lambda: kept)
    assert index.rebuild()
    return index


def ids(hits: Iterable[Hit]) -> list[str]:
    """Return the ids of ``hits`` in order."""
    return [hit.id for hit in hits]


def note(name: str, text: str, **fields: object) -> Document:
    """Return an episode with ``text``."""
    kind = fields.pop("kind", "episode")
    return Document(id=name, kind=kind, text=text, **fields)  # type: ignore[arg-type]


def test_the_document_a_question_is_about_comes_first(tmp_path: Path) -> None:
    """A question in other forms of the words finds its note."""
    index = index_of(
        tmp_path,
        [
            *documents(50),
            note("house", "Caroline bought a house near the lake in May."),
            note("retry", "The client retries three times; see src/llm/retry.py."),
        ],
    )

    assert ids(index.search("When did Caroline buy her house?", 3))[0] == "house"
    assert ids(index.search("what is in retry.py about retrying", 3))[0] == "retry"


def test_misspelt_and_compound_words_are_found(tmp_path: Path) -> None:
    """Character n-grams find what no stem does."""
    index = index_of(
        tmp_path,
        [
            *documents(50),
            note("k", "The kubernetes cluster was upgraded."),
            note("d", "Die Donaudampfschiffahrt."),
        ],
    )

    assert ids(index.search("kuberentes clustre", 1, floor=0)) == ["k"]
    assert ids(index.search("Dampfschiffahrt", 1, floor=0)) == ["d"]


def test_equals_are_ordered_by_age_and_then_by_name(tmp_path: Path) -> None:
    """Of the same text the newer comes first; of the same age the one whose name sorts first."""
    index = index_of(
        tmp_path,
        [
            note("b", "the same words", created_at=5),
            note("a", "the same words", created_at=5),
            note("c", "the same words", created_at=9),
        ],
    )

    assert ids(index.search("same words", 3, floor=0)) == ["c", "a", "b"]
    assert ids(index.search("same words", 1, floor=0)) == ["c"]


KINDS: tuple[Kind, ...] = ("episode", "atom", "session")
MIXED = [
    note(
        f"{kind}-{project}-{facet}-{trusted:d}",
        "words that all of them share",
        kind=kind,
        project=project,
        facet=facet,
        trusted=trusted,
    )
    for kind in KINDS
    for project in ("", "/a", "/b")
    for facet in ("", "file")
    for trusted in (True, False)
]
FILTERS = [
    Filter(),
    Filter(kinds=("atom",)),
    Filter(kinds=("atom", "session"), trusted_only=True),
    Filter(project="/a"),
    Filter(project=""),
    Filter(project="/c"),
    Filter(project="/a", excluded_elsewhere=()),
    Filter(project="/a", excluded_elsewhere=("file",), trusted_only=True),
    Filter(project="/c", excluded_elsewhere=("file", ""), kinds=("session",)),
]


@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("built", [True, False])
def test_a_filter_admits_the_same_from_the_index_and_from_the_texts(
    tmp_path: Path, where: Filter, *, built: bool
) -> None:
    """Kind, project, facet and trust are held by the index and by the scan as the filter says."""
    index = open_index(tmp_path, "test", lambda: MIXED)
    if built:
        index.rebuild()

    found = index.search("words they share", EVERYTHING, where, floor=0)

    assert sorted(ids(found)) == sorted(document.id for document in MIXED if where.admits(document))
    assert index.needs_rebuild is not built


def test_barred_documents_take_nobodys_place(tmp_path: Path) -> None:
    """A thousand untrusted documents that match better do not hide the one that may be found."""
    better = [note(f"bad{n}", "the api key rotation", trusted=False) for n in range(1_000)]
    mine = note("mine", "once, long ago, there was talk of rotating some api key or other, they said")
    index = index_of(tmp_path, [*better, mine])

    assert ids(index.search("api key rotation", 3, Filter(trusted_only=True), floor=0)) == ["mine"]


def test_an_episode_is_found_by_what_its_session_said(tmp_path: Path) -> None:
    """Words of the transcript find the episode, and the hit shows the passage that has them."""
    lines = [f"user: question {n} about the {document.text}" for n, document in enumerate(documents(60))]
    lines[30] = "user: my sister Marguerite moved to Valparaíso"
    talk = Document(id="talk", kind="episode", text="They spoke about family.", transcript="\n".join(lines))
    index = index_of(tmp_path, [*documents(30, start=500), talk])

    (hit, *_) = index.search("Where does Marguerite live?", 3, floor=0)

    assert hit.id == "talk"
    assert "Valparaíso" in hit.passage
    assert len(hit.passage) < 3_000


def test_a_long_text_is_found_by_its_passage(tmp_path: Path) -> None:
    """The passage shown is the one that matches, whatever its place in the text."""
    filling = "\n".join(document.text for document in documents(200))
    index = index_of(tmp_path, [note("long", f"{filling}\nthe wifi password is on the fridge\n{filling}")])

    (hit,) = index.search("wifi password fridge", 1)

    assert "wifi password" in hit.passage


def test_one_long_text_takes_nobodys_place(tmp_path: Path) -> None:
    """A session of which a hundred passages match leaves room for all others that are asked for."""
    long = "\n".join(
        f"{number}. the kettle, the kettle and its lid " + "so on " * 120 for number in range(150)
    )
    short = [note(f"s{number}", "the kettle is in the cupboard of the kitchen") for number in range(7)]
    index = index_of(tmp_path, [note("long", long, kind="session"), *short])
    assert sorted(ids(index.search("kettle", 8, floor=0))) == ["long", *sorted(each.id for each in short)]


def test_replaced_and_removed_texts_are_gone(tmp_path: Path) -> None:
    """A document added again is found by its new words alone; a removed one not at all."""
    index = index_of(tmp_path, documents(20))
    index.add([note("d3", "entirely other subject: volcanoes")])
    index.remove(["d4", "never there"])

    assert ids(index.search("volcanoes", 5, floor=0)) == ["d3"]
    assert "d3" not in ids(index.search("mark3x", 5, floor=0))
    assert "d4" not in ids(index.search("mark4x", 5, floor=0))
    assert ids(index.search("mark5x", 1)) == ["d5"]


@pytest.mark.parametrize(
    "query", ["", "   ", "?!", "\ud800", "\x00", "the", "/", "x" * 100_000, "AND OR NOT (", '"*:^~']
)
def test_any_question_is_answered(tmp_path: Path, query: str) -> None:
    """No question is an error: it finds something or nothing."""
    index = index_of(tmp_path, documents(5))

    assert len(index.search(query, 3, floor=0)) <= 3
    assert index.damage == ""


def test_any_text_can_be_indexed(tmp_path: Path) -> None:
    """Empty, endless and broken texts are taken, and the others are still found."""
    odd = ["", "\ud800 lone", "\x00", "x" * 200_000, "🎉", "a b\u2028c", "\n" * 5_000, "日本" * 5_000]
    texts = [note(f"odd{n}\ud801", text, project="\ud802") for n, text in enumerate(odd)]
    index = index_of(tmp_path, [*texts, *documents(3)])
    index.add(texts)

    assert ids(index.search("mark2x", 1)) == ["d2"]
    assert len(index.search("日本", 1, floor=0)) == 1


def test_without_an_index_the_texts_answer(tmp_path: Path) -> None:
    """Before the first build a scan finds the same documents, in the same order."""
    texts = documents(80)
    unbuilt = open_index(tmp_path / "unbuilt", "test", lambda: texts)
    built = index_of(tmp_path / "built", texts)
    queries = [document.text for document in documents(10, start=70)]

    assert unbuilt.needs_rebuild
    for query in queries:
        assert ids(unbuilt.search(query, 1)) == ids(built.search(query, 1))


def test_documents_beside_the_index_are_found_as_if_they_were_in_it(tmp_path: Path) -> None:
    """What tells is what is rare in the index; a document that changed is found by its new words alone."""
    pilots = [note(f"p{n}", f"The harbour pilot number {n} prefers tea in a xylophone.") for n in range(100)]
    new = note("new", "The harbour pilot number 100 prefers tea in a xylophone.")
    changed = note("p7", "The lighthouse keeper collects barometers.")
    kept = index_of(tmp_path / "kept", [*pilots, *documents(100)])
    whole = index_of(tmp_path / "whole", [*pilots, *documents(100), new])

    asked = "which harbour pilot, number 100, drinks tea in a xylophone?"
    beside = kept.search(asked, 3, beside=[new, changed])
    (first, *_) = whole.search(asked, 3)
    assert beside[0].id == first.id == "new"
    assert beside[0].relevance == pytest.approx(first.relevance, rel=0.2)  # lengths count a little otherwise
    assert beside[1].relevance < beside[0].relevance / 2
    assert ids(kept.search("who collects barometers?", 3, beside=[new, changed])) == ["p7"]
    assert "p7" not in ids(kept.search("harbour pilot number 7", EVERYTHING, beside=[new, changed]))
    assert kept.search(asked, 3, Filter(kinds=("atom",)), beside=[new]) == []


def test_another_fingerprint_is_built_anew(tmp_path: Path) -> None:
    """Files that were made for other contents are not read."""
    index_of(tmp_path, documents(5))
    other = open_index(tmp_path, "other", list)

    assert other.needs_rebuild
    assert other.search("mark1x", 1) == []
    assert other.damage == ""


def test_reconciling_takes_over_what_changed_in_the_texts(tmp_path: Path) -> None:
    """New, changed and removed texts are found as they are now, and counted."""
    texts = {document.id: document for document in documents(20)}
    index = open_index(tmp_path, "test", texts.values)
    index.rebuild()
    del texts["d1"]
    texts["d2"] = note("d2", "zeppelin")
    texts["new"] = note("new", "submarine")

    assert index.reconcile() == 3
    assert index.reconcile() == 0
    assert ids(index.search("zeppelin submarine", 2)) == ["new", "d2"]
    assert "d1" not in ids(index.search("mark1x", 5, floor=0))


def test_compacting_keeps_what_is_found(tmp_path: Path) -> None:
    """After compaction the same documents answer."""
    texts = {document.id: document for document in documents(30)}
    index = open_index(tmp_path, "test", texts.values)
    index.rebuild()
    for name in list(texts)[:10]:
        del texts[name]
    index.remove([f"d{n}" for n in range(10)])

    assert index.compact()
    assert ids(index.search("mark20x", 1)) == ["d20"]
    assert "d5" not in ids(index.search("mark5x", 30, floor=0))


def test_reconciling_compacts_an_index_of_mostly_replaced_texts() -> None:
    """Texts that are gone do not grow without bound: what brings the index up to date drops them."""
    with scratch() as directory:
        texts = documents(1_100)
        index = open_index(directory, "test", lambda: texts)
        index.rebuild()
        for start in (1, 2):
            index.add(documents(1_100 - start, start=start))
        wanted = index.wants_compaction
        index.reconcile()

        assert (wanted, index.wants_compaction) == (True, False)
        assert ids(index.search("mark7x", 1)) == ["d7"]


def test_a_place_that_cannot_be_used_is_an_error_in_a_line(tmp_path: Path) -> None:
    """A file where the directory should be is named."""
    place = tmp_path / "file"
    place.write_bytes(b"")

    with pytest.raises(StoreError, match="file"):
        open_index(place, "test", list)


def test_the_files_are_the_owners_alone(tmp_path: Path) -> None:
    """Nobody else can read what the index keeps of the texts."""
    index = index_of(tmp_path / "index", documents(3))
    index.add(documents(5))

    everything = [tmp_path / "index", *(tmp_path / "index").rglob("*")]
    assert [path for path in everything if path.stat().st_mode & 0o077] == []
    assert len(everything) > 10
