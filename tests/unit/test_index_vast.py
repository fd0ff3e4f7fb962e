"""An index of so many texts that frequent terms are looked up apart: what is found is the same."""

import random

import pytest

from odek.index.document import ANY, Document, Filter
from odek.index.engine import Index, open_index

TEXTS = 21_500
WORDS = 10
FREQUENT = ("harbour", "pilot", "lantern", "gravel")
RARE = [f"{first}{second}{third}" for first in "bdfgk" for second in ("ar", "en", "ol") for third in "lmnrst"]


def texts() -> list[Document]:
    """Return texts of the same length: frequent words, in some thrice, and others, in few and once."""
    source = random.Random(7)
    found = []
    for number in range(TEXTS):
        words = [word for word in FREQUENT if source.random() < 0.5]
        words += source.choices(words, k=source.choice((0, 0, 0, 2))) if words else []
        words += source.sample(RARE, source.choice((0, 1, 1, 2, 3)))
        if number % (TEXTS // 50) == 0:
            words.append("fiftieth")
        elif source.random() < 0.15:
            words.append("midway")
        words += ["filler"] * (WORDS - len(words))
        source.shuffle(words)
        project = source.choice(("here", "there", ""))
        found.append(Document(f"d{number}", "atom", " ".join(words), project=project, created_at=number))
    return found


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """An index of the texts."""
    made = open_index(tmp_path_factory.mktemp("vast"), "test", texts)
    assert made.rebuild()
    return made


def questions() -> list[str]:
    """Return questions of rare and frequent words, and of frequent ones alone."""
    source = random.Random(8)
    mixed = [" ".join([*source.sample(RARE, 3), *source.sample(FREQUENT, 3)]) for _ in range(5)]
    return [
        *mixed,
        f"{RARE[0]} midway pilot",
        "midway lantern",
        *[f"fiftieth midway {word}" for word in FREQUENT],
        "harbour pilot lantern",
    ]


@pytest.mark.parametrize("question", questions())
def test_the_best_few_are_the_first_of_all(index: Index, question: str) -> None:
    """The frequent words are looked up apart for some, and at once when all are asked for."""
    where = Filter(project="here") if question.endswith("pilot") else ANY
    scores = {hit.id: hit.score for hit in index.search(question, TEXTS, where, floor=0.0)}
    best = sorted(scores.values(), reverse=True)
    for count in (1, 3, 8):
        found = index.search(question, count, where, floor=0.0)

        assert [hit.score for hit in found] == pytest.approx(best[:count], rel=1e-5)
        assert [scores[hit.id] for hit in found] == pytest.approx(best[:count], rel=1e-5)
