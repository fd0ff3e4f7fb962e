"""The index against a search by hand, through any sequence of changes, crashes and repairs."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.index.document import Document, Filter, Kind
from odek.index.engine import Index, open_index
from tests.support.scratch import scratch

# No two of them share a stem or four characters in a row, so that a word is found by itself alone.
WORDS = ("harbour", "kettle", "violin", "pebble", "falcon", "quartz", "timber", "yogurt")
KINDS: tuple[Kind, ...] = ("episode", "atom", "session")
FILTERS = (
    Filter(),
    Filter(kinds=("atom", "episode"), trusted_only=True),
    Filter(project="/a"),
    Filter(project="/a", excluded_elsewhere=("file",)),
)

texts = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
long_texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(
    lambda words: "\n".join(f"{word} and so on, for a while" for word in words * 40)
)
documents = st.builds(
    Document,
    id=st.sampled_from([f"d{number}" for number in range(6)]),
    kind=st.sampled_from(KINDS),
    text=texts | long_texts,
    transcript=st.just("") | long_texts,
    project=st.sampled_from(["", "/a", "/b"]),
    facet=st.sampled_from(["", "file"]),
    trusted=st.booleans(),
    created_at=st.integers(0, 3),
)
steps = st.one_of(
    st.tuples(st.just("add"), st.lists(documents, min_size=1, max_size=4)),
    st.tuples(
        st.just("remove"), st.lists(st.sampled_from([f"d{number}" for number in range(7)]), max_size=3)
    ),
    st.tuples(st.just("edit"), st.lists(documents, max_size=2)),
    st.tuples(st.sampled_from(["compact", "reopen", "reconcile", "crash", "forget"]), st.none()),
)


def apply(step: str, argument: object, texts: dict[str, Document], index: Index, directory: Path) -> Index:
    """Do a step to the texts and to the index; return the index that goes on."""
    match step, argument:
        case "add", list(added):
            texts.update({document.id: document for document in added})
            index.add(added)
        case "remove", list(ids):
            for name in ids:
                texts.pop(name, None)
            index.remove(ids)
        case "edit", list(added):  # by a program that knows of no index
            texts.update({document.id: document for document in added})
            index.reconcile()
        case "compact", _:
            assert index.compact()
        case "reconcile", _:
            index.reconcile()
        case "crash", _:  # of a writer, before its seal
            for seal in directory.glob("g-*/seal"):
                seal.unlink()
            index = opened(directory, texts)
            assert index.needs_rebuild
        case "forget", _:
            shutil.rmtree(directory, ignore_errors=True)
    return opened(directory, texts) if step == "reopen" else index


def opened(directory: Path, texts: dict[str, Document]) -> Index:
    """Return the index of ``texts``."""
    return open_index(directory, "test", lambda: list(texts.values()))


def by_hand(texts: dict[str, Document], word: str, where: Filter) -> set[str]:
    """Return the ids of the documents that have ``word``."""
    return {
        document.id
        for document in texts.values()
        if word in f"{document.text} {document.transcript}".split() and where.admits(document)
    }


def check(index: Index, texts: dict[str, Document]) -> None:
    """Compare what each word finds with a search by hand."""
    for word in WORDS:
        for where in FILTERS:
            hits = index.search(word, 100, where, floor=0)
            assert {hit.id for hit in hits} == by_hand(texts, word, where), (word, where)
            assert len({hit.id for hit in hits}) == len(hits)
            for hit in hits:
                assert (hit.kind, hit.created_at) == (texts[hit.id].kind, texts[hit.id].created_at)
                assert hit.passage in f"{texts[hit.id].text}\n{texts[hit.id].transcript}"


def run(sequence: list[tuple[str, object]]) -> None:
    """Do the steps to an empty index, comparing after each."""
    with scratch() as parent:
        directory = parent / "index"
        texts: dict[str, Document] = {}
        index = opened(directory, texts)
        index.rebuild()
        for step, argument in sequence:
            if step != "forget" and not directory.exists():
                index.rebuild()
            index = apply(step, argument, texts, index, directory)
            check(index, texts)
            if index.needs_rebuild and directory.exists():
                assert index.rebuild()
                check(index, texts)
        if directory.exists():
            assert index.reconcile() == 0
            assert not index.needs_rebuild


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, min_size=1, max_size=6))
def test_what_is_found_is_what_the_texts_hold(sequence: list[tuple[str, object]]) -> None:
    """After adding, replacing, removing, editing, compacting and crashing, each word finds its texts."""
    run(sequence)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.lists(steps, min_size=1, max_size=15))
def test_what_is_found_is_what_the_texts_hold_after_long_sequences(
    sequence: list[tuple[str, object]],
) -> None:
    """The long form of the above."""
    run(sequence)
