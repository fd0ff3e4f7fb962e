"""Which atoms are put before a model to be made one."""

import random
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest

from odek.config.embedding_settings import EmbeddingSettings
from odek.embedding.choice import choose_embedder
from odek.embedding.embedder import Embedder, cosine
from odek.memory.extended.atom import Atom, AtomType
from odek.memory.extended.consolidate import COMPARED_AT_ONCE, MAX_GROUP, groups_of

KINDS: tuple[AtomType, ...] = ("preference", "convention", "fact")
WORDS = (
    "tea",
    "coffee",
    "tabs",
    "blanks",
    "dark",
    "screen",
    "editor",
    "harbour",
    "pilot",
    "release",
    "notes",
)


@pytest.fixture
def embedder(tmp_path: Path) -> Embedder:
    """Return what compares texts where nothing is configured."""
    return choose_embedder(EmbeddingSettings(), "embedding", tmp_path)[0]


def atoms(count: int) -> list[Atom]:
    """Return statements of a few words each, of which many share most."""
    draw = random.Random(count)
    return [
        Atom(
            id=f"{number:032x}",
            text=" ".join(draw.sample(WORDS, 5)),
            type=draw.choice(KINDS),
            created_at="2026-01-01T00:00:00Z",
            project=draw.choice(["", "/a", "/b"]),
        )
        for number in range(count)
    ]


async def one_by_one(known: Sequence[Atom], threshold: float, embedder: Embedder) -> list[list[Atom]]:
    """Return the groups as they are defined: each atom joins the first of whose members all are alike."""
    vectors = await embedder.embed([atom.text for atom in known])
    groups: list[list[int]] = []
    for at, atom in enumerate(known):

        def fits(other: int, at: int = at, atom: Atom = atom) -> bool:
            bound = "convention" in (atom.type, known[other].type)
            same_place = not bound or atom.project == known[other].project
            return cosine(vectors[at], vectors[other]) >= threshold and same_place

        fitting = next((group for group in groups if len(group) < MAX_GROUP and all(map(fits, group))), None)
        if fitting is None:
            groups.append([at])
        else:
            fitting.append(at)
    return [[known[at] for at in group] for group in groups if len(group) > 1]


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8])
async def test_groups_are_those_of_comparing_each_with_each(threshold: float, embedder: Embedder) -> None:
    """However many are compared at once; conventions of different projects never come together."""
    known = atoms(2 * COMPARED_AT_ONCE + 30)

    groups = await groups_of(known, threshold=threshold, embedder=embedder)

    assert groups == await one_by_one(known, threshold, embedder)
    assert any(len(group) > 2 for group in groups)
    for group in groups:
        for one, other in combinations(group, 2):
            assert "convention" not in (one.type, other.type) or one.project == other.project
