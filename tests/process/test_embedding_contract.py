"""What every embedder promises, whatever makes its vectors."""

import importlib.util
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from odek.config.embedding_settings import EmbeddingSettings
from odek.embedding.embedder import Embedder
from odek.embedding.http import HttpEmbedder
from odek.embedding.local import ProjectionEmbedder
from odek.embedding.static import StaticEmbedder
from tests.support.model_server import (
    Answer,
    RecordedRequest,
    by_request,
    json_answer,
    open_model_server,
)

TEXTS = [
    "Prefers tabs over spaces",
    "",
    " \n\t",
    "Prefers tabs over spaces",
    "日本語のテスト と английский",
    "\ud800 half a character",
    "\x00",
    "🎉",
    "word " * 40_000,
    "x" * 50_000,
]


def letters() -> Answer:
    """Answer with how often each text has some letters."""

    def choose(request: RecordedRequest) -> Answer:
        return json_answer(
            {
                "data": [
                    {"index": place, "embedding": [text.count(letter) for letter in "prefstabo"]}
                    for place, text in enumerate(request.json["input"])
                ]
            }
        )

    return by_request(choose)


@pytest.fixture(params=["rp", "static", "http"])
async def embedder(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Embedder]:
    """Yield each embedder in turn."""
    match request.param:
        case "rp":
            yield ProjectionEmbedder()
        case "static":
            if importlib.util.find_spec("wordllama") is None:
                pytest.skip("the word vectors of odek[semantic] are not installed")
            yield StaticEmbedder()
        case _:
            async with open_model_server(default=letters()) as server:
                settings = EmbeddingSettings(provider="http", base_url=server.base_url, model="letters")
                yield HttpEmbedder(settings, tmp_path)


async def test_each_text_has_a_vector_of_its_own(embedder: Embedder) -> None:
    """One float32 vector for each text, in order, all of one size, of length 1 or 0."""
    vectors = await embedder.embed(TEXTS)

    assert len(vectors) == len(TEXTS)
    assert {(vector.dtype, vector.shape) for vector in vectors} == {(np.dtype(np.float32), vectors[0].shape)}
    lengths = [float(np.linalg.norm(vector)) for vector in vectors]
    assert all(length == pytest.approx(1, abs=1e-5) or length == 0 for length in lengths)
    assert lengths[0] == pytest.approx(1, abs=1e-5)
    assert lengths[1] == lengths[2] == 0


async def test_a_text_means_the_same_alone_and_in_company(embedder: Embedder) -> None:
    """The vector of a text depends on it alone."""
    together = await embedder.embed(TEXTS)

    assert (together[0] == together[3]).all()
    for text, vector in zip(TEXTS, together, strict=True):
        (alone,) = await embedder.embed([text])
        assert (alone == vector).all()


async def test_nothing_has_no_vectors(embedder: Embedder) -> None:
    """No texts, no vectors, and no question to anybody."""
    assert await embedder.embed([]) == []


async def test_the_space_has_a_name(embedder: Embedder) -> None:
    """It does not change while vectors are made, and begins with what makes them."""
    before = embedder.fingerprint
    await embedder.embed(["text"])

    assert embedder.fingerprint == before
    assert before.split("/")[0] in {"rp", "static", "http"}
