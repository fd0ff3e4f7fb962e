"""Vectors in an index: what they find that words do not, what they may not, and when words decide alone."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from odek.embedding.embedder import Vector
from odek.index.document import Document, Filter, Hit, Kind
from odek.index.engine import Index, open_index
from odek.index.vectors import MIN_ROWS, VectorIndex
from tests.support.index_texts import documents

TOPICS = ("login", "cake", "rain", "music", "paint", "train", "dogs", "tax", "moon", "bread")


def about(topic: str, *, near: str = "", share: float = 0.0) -> Vector:
    """Return the vector of a topic, or one somewhere between it and another."""
    vector = np.zeros(len(TOPICS), np.float32)
    vector[TOPICS.index(topic)] = 1 - share
    if near:
        vector[TOPICS.index(near)] = share
    return vector


def note(topic: str, text: str, **fields: object) -> Document:
    """Return a document about a topic, which is its id."""
    kind = fields.pop("kind", "episode")
    return Document(id=topic, kind=kind, text=text, **fields)  # type: ignore[arg-type]


NOTES = [
    note("login", "fixed the authentication bug"),
    note("cake", "whipped cream on a sponge"),
    note("rain", "wet weather all afternoon"),
    note("music", "a concert for two violins"),
    note("paint", "blue walls in the kitchen"),
    note("train", "the express to Vienna was late"),
    note("dogs", "puppies at the shelter"),
    note("tax", "the form is due in July"),
    note("moon", "an eclipse at midnight"),
    note("bread", "sourdough with rye"),
]


def index_of(directory: Path, texts: Iterable[Document] = NOTES, *, filled: bool = True) -> Index:
    """Return an index of ``texts`` whose vectors are those of the topics that are their ids."""
    kept = list(texts)
    index = open_index(directory, "test", lambda: kept, space="topics")
    assert index.rebuild()
    if filled:
        fill(index, kept)
    return index


def fill(index: Index, texts: Iterable[Document]) -> None:
    """Give all documents that have none the vector of their topic."""
    topics = {document.text: document.id.split("/")[0] for document in texts}
    index.set_vectors({version: about(topics[text]) for version, text in index.without_vectors(1_000)})


def ids(hits: Iterable[Hit]) -> list[str]:
    """Return the ids of ``hits`` in order."""
    return [hit.id for hit in hits]


def test_other_words_for_the_same_are_found(tmp_path: Path) -> None:
    """A text that shares no word with the question is found by its vector, and shown."""
    index = index_of(tmp_path)

    assert index.search("sign-in trouble", 3) == []
    (hit,) = index.search("sign-in trouble", 3, vector=about("login"))
    assert (hit.id, hit.passage) == ("login", "fixed the authentication bug")


def test_words_and_vectors_are_weighed_together(tmp_path: Path) -> None:
    """What both find comes first, then what one of them finds."""
    index = index_of(tmp_path)

    found = index.search("puppies at midnight", 3, vector=about("dogs", near="cake", share=0.4))

    assert ids(found)[0] == "dogs"
    assert set(ids(found)) == {"dogs", "moon", "cake"}


def test_what_is_neither_said_nor_meant_is_not_found(tmp_path: Path) -> None:
    """A question whose vector is as far from all documents as strangers are finds nothing."""
    index = index_of(tmp_path)

    assert index.search("sign-in trouble", 3, vector=np.ones(len(TOPICS), np.float32)) == []


@pytest.mark.parametrize("strangers", [0.0, 0.7])
def test_a_space_may_be_narrow(tmp_path: Path, strangers: float) -> None:
    """What counts is how much closer a document is than others, not the cosine itself."""
    usual = np.full(len(TOPICS), np.sqrt(strangers / len(TOPICS) / (1 - strangers)), np.float32)
    index = index_of(tmp_path, filled=False)
    index.set_vectors({version: about(topic_of(text)) + usual for version, text in index.without_vectors(99)})

    assert ids(index.search("sign-in trouble", 3, vector=about("login") + usual)) == ["login"]
    assert index.search("sign-in trouble", 3, vector=usual + np.float32(0.01)) == []


def topic_of(text: str) -> str:
    """Return the topic of a note."""
    return next(document.id for document in NOTES if document.text == text)


@pytest.mark.parametrize(
    "vector",
    [
        np.zeros(len(TOPICS), np.float32),
        np.full(len(TOPICS), np.nan, np.float32),
        np.full(len(TOPICS), 1e38, np.float32),
        np.ones(3, np.float32),
        np.ones(0, np.float32),
    ],
)
def test_a_useless_vector_leaves_it_to_the_words(tmp_path: Path, vector: Vector) -> None:
    """A vector that says nothing, or of another size, changes nothing of what words find."""
    index = index_of(tmp_path)
    by_words = index.search("the concert in Vienna", 3)

    assert index.search("the concert in Vienna", 3, vector=vector) == by_words
    assert by_words


def test_a_handful_of_vectors_says_nothing_yet(tmp_path: Path) -> None:
    """While nobody can tell how close strangers are, words decide alone."""
    index = index_of(tmp_path, NOTES[: MIN_ROWS - 1])

    assert index.search("sign-in trouble", 3, vector=about("login")) == []

    index.add(NOTES)
    fill(index, NOTES)
    assert ids(index.search("sign-in trouble", 3, vector=about("login"))) == ["login"]


def test_a_document_without_a_vector_is_found_by_its_words(tmp_path: Path) -> None:
    """What was written a moment ago is neither hidden nor put behind by those that have vectors."""
    index = index_of(tmp_path)
    index.add([note("new", "the express from Vienna was cancelled")])

    found = index.search("Was the express to Vienna cancelled?", 2, vector=about("train"))

    assert ids(found)[0] == "new"


def test_a_changed_document_loses_its_vector(tmp_path: Path) -> None:
    """Its old meaning finds it no more, and it asks for a new vector."""
    index = index_of(tmp_path)
    index.add([note("login", "an entirely other subject")])

    assert index.search("sign-in trouble", 3, vector=about("login")) == []
    assert [text for _, text in index.without_vectors(9)] == ["an entirely other subject"]


def test_a_removed_document_is_not_found_by_its_vector(tmp_path: Path) -> None:
    """It takes nobody's place either, and its vector goes with the next look for what has none."""
    more = [note(f"login/{n}", f"text {n}") for n in range(40)]
    index = index_of(tmp_path, [*NOTES, *more])
    index.remove(document.id for document in more)

    assert ids(index.search("sign-in trouble", 1, vector=about("login"))) in ([], ["login"])
    assert index.without_vectors(9) == []
    assert ids(index.search("sign-in trouble", 1, vector=about("login"))) == ["login"]
    assert len(VectorIndex(tmp_path / "vectors", "topics").versions()) == len(NOTES)


KINDS: tuple[Kind, ...] = ("episode", "atom", "session")
MIXED = [
    Document(
        id=f"login/{kind}{project}{facet}{trusted:d}",
        kind=kind,
        text=f"{kind}{project}{facet}{trusted:d}"[::-1],
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
def test_a_filter_holds_for_vectors(tmp_path: Path, where: Filter) -> None:
    """Kind, project, facet and trust bar a document however close it is."""
    index = index_of(tmp_path, [*MIXED, *NOTES[1:], *(note(f"cake/{n}", f"cake {n}") for n in range(200))])

    found = index.search("sign-in trouble", 100, where, vector=about("login"))

    assert sorted(ids(found)) == sorted(document.id for document in MIXED if where.admits(document))


def test_barred_documents_take_nobodys_place(tmp_path: Path) -> None:
    """A thousand untrusted documents that are as close do not hide the one that may be found."""
    barred = [note(f"login/{n}", f"text {n}", trusted=False) for n in range(1_000)]
    index = index_of(tmp_path, [*barred, *NOTES])

    found = index.search("sign-in trouble", 3, Filter(trusted_only=True), vector=about("login"))

    assert ids(found) == ["login"]


def test_another_space_begins_without_vectors(tmp_path: Path) -> None:
    """A switched embedder finds none of the old ones, and asks for all anew; words answer meanwhile."""
    index_of(tmp_path)
    other = open_index(tmp_path, "test", lambda: NOTES, space="another")

    assert len(other.without_vectors(99)) == len(NOTES)
    assert ids(other.search("the concert", 3, vector=about("login"))) == ["music"]
    assert other.damage == ""


def test_another_size_of_vectors_takes_the_place_of_the_old(tmp_path: Path) -> None:
    """When a server means another model by the same name, all documents get its vectors."""
    index = index_of(tmp_path)
    other = open_index(tmp_path, "test", list, space="nobody's")
    index.set_vectors({other.without_vectors(1)[0][0]: np.ones(3, np.float32)})

    assert len(index.without_vectors(99)) == len(NOTES) - 1
    index.set_vectors({version: np.ones(3, np.float32) for version, _ in index.without_vectors(99)})
    assert index.without_vectors(99) == []


def test_vectors_that_say_nothing_are_kept_as_such(tmp_path: Path) -> None:
    """Such a document does not ask again, and is found by its words alone."""
    index = index_of(tmp_path, filled=False)
    useless: Sequence[float] = (0.0, np.nan, np.inf, 1e38)
    vectors = {
        version: np.full(len(TOPICS), useless[number % 4], np.float32)
        for number, (version, _) in enumerate(index.without_vectors(99))
    }
    index.set_vectors(vectors)

    assert index.without_vectors(99) == []
    assert ids(index.search("the concert", 3, vector=about("login"))) == ["music"]


def test_a_rebuilt_index_keeps_the_vectors(tmp_path: Path) -> None:
    """Documents that did not change need no new ones."""
    index = index_of(tmp_path)
    index.rebuild()

    assert index.without_vectors(99) == []
    assert ids(index.search("sign-in trouble", 3, vector=about("login"))) == ["login"]


@pytest.mark.parametrize("space", ["topics", "another", ""])
def test_compacting_leaves_nothing_of_what_was_removed(tmp_path: Path, space: str) -> None:
    """Neither its vector nor, when another embedder compacts, any of the old ones is in the files."""
    index = index_of(tmp_path)
    numbers = about("login").tobytes()
    kept = NOTES[1:]
    index.remove(["login"])
    before = (tmp_path / "vectors").read_bytes()

    assert open_index(tmp_path, "test", lambda: kept, space=space).compact()

    after = (tmp_path / "vectors").read_bytes() if (tmp_path / "vectors").exists() else b""
    assert numbers in before
    assert numbers not in after
    index = open_index(tmp_path, "test", lambda: kept, space="topics")
    assert len(index.without_vectors(99)) == (0 if space == "topics" else len(kept))


def test_what_is_asked_for_is_bounded_and_newest_first(tmp_path: Path) -> None:
    """A large store is filled in steps."""
    index = index_of(tmp_path, documents(30), filled=False)
    index.add(documents(3, start=50))

    first = index.without_vectors(3)
    assert sorted(text.split()[0] for _, text in first) == ["mark50x", "mark51x", "mark52x"]
    assert index.without_vectors(0) == []
    assert len(index.without_vectors(1_000)) == 33


def test_a_long_text_is_embedded_by_its_beginning(tmp_path: Path) -> None:
    """The first passage stands for all; an episode's summary for its transcript."""
    long = "\n".join(document.text for document in documents(200))
    index = index_of(
        tmp_path,
        [
            Document(id="long", kind="session", text=long),
            Document(id="talk", kind="episode", text="the summary", transcript=long),
        ],
        filled=False,
    )

    texts = sorted((text for _, text in index.without_vectors(9)), key=len)

    assert texts[0] == "the summary"
    assert long.startswith(texts[1])
    assert 500 < len(texts[1]) < 2_000


@pytest.mark.parametrize("damage", ["cut", "foreign", "directory"])
def test_damaged_vectors_leave_it_to_the_words(tmp_path: Path, damage: str) -> None:
    """Whatever is in the place of the file, words answer, and the vectors that can be read."""
    index = index_of(tmp_path)
    path = tmp_path / "vectors"
    data = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "foreign":
        path.write_bytes(b"\x00" * len(data))
    else:
        path.mkdir()
    index = open_index(tmp_path, "test", list, space="topics")

    assert ids(index.search("the concert", 3, vector=about("music"))) == ["music"]
    assert ("vectors" in index.damage) is (damage == "directory")
    assert "\n" not in index.damage
