"""An index whose vectors come from a server: filled, searched, and left alone when the server fails."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio
from trio.testing import MockClock

from odek.config.embedding_settings import EmbeddingSettings
from odek.embedding.http import HttpEmbedder
from odek.index.document import Document
from odek.index.engine import Index, open_index
from odek.memory.index_vectors import BACK_OFF_SECONDS, QUESTION_SECONDS, IndexVectors
from tests.support.model_server import (
    Answer,
    ModelServer,
    RecordedRequest,
    by_request,
    error_answer,
    json_answer,
    open_model_server,
    stall,
)
from tests.support.waiting import open_stopwatch

MEANINGS = [
    ("authentication", "sign-in"),
    ("sponge", "dessert"),
    ("wet", "weather"),
    ("violins", "orchestra"),
    ("walls", "decorating"),
    ("express", "railway"),
    ("puppies", "pets"),
    ("form", "revenue"),
    ("eclipse", "astronomy"),
    ("sourdough", "loaf"),
]
NOTES = [Document(id=words[0], kind="episode", text=f"it was about {words[0]}") for words in MEANINGS]

Run = Callable[[Callable[[], Any]], Awaitable[Any]]


def model(dims: int = len(MEANINGS)) -> Answer:
    """Answer with vectors that are alike when texts are about the same."""

    def choose(request: RecordedRequest) -> Answer:
        data = [
            {"index": place, "embedding": [float(any(word in text for word in words)) for words in MEANINGS]}
            for place, text in enumerate(request.json["input"])
        ]
        for item in data:
            item["embedding"] = (item["embedding"] + [0.25] * dims)[:dims]  # type: ignore[operator]
        return json_answer({"data": data})

    return by_request(choose)


class Setup:
    """An index and the vectors of a server."""

    def __init__(self, directory: Path, server: ModelServer, **settings: Any) -> None:
        given = {"timeout_seconds": 5.0, "model": "m", **settings}
        embedder = HttpEmbedder(
            EmbeddingSettings(provider="http", base_url=server.base_url, **given), directory / "cache"
        )
        self.told: list[str] = []
        self.vectors = IndexVectors(embedder, self.told.append)
        self.index: Index = open_index(directory, "test", lambda: NOTES, space=self.vectors.space)
        if self.index.needs_rebuild:
            self.index.rebuild()

    async def fill(self) -> None:
        """Make what vectors are missing."""
        await self.vectors.fill(self.index, run)

    async def find(self, query: str) -> list[str]:
        """Return the ids of what is found."""
        vector = await self.vectors.of_question(query)
        return [hit.id for hit in self.index.search(query, 3, vector=vector)]


async def run(work: Callable[[], Any]) -> Any:
    """Do blocking work."""
    return await trio.to_thread.run_sync(work)


async def test_what_is_said_in_other_words_is_found(tmp_path: Path) -> None:
    """Each text is sent once, in one request, and a question once."""
    async with open_model_server(default=model()) as server:
        setup = Setup(tmp_path, server)
        assert await setup.find("an orchestra played") == []
        await setup.fill()
        await setup.fill()

        assert await setup.find("an orchestra played") == ["violins"]
        assert await setup.find("an orchestra played") == ["violins"]
        assert [len(request.json["input"]) for request in server.requests] == [1, len(NOTES)]
    assert setup.told == []


async def test_a_server_that_fails_and_recovers(tmp_path: Path, mock_clock: MockClock) -> None:
    """After a 500 words decide, told once; half a minute later the vectors are made."""
    mock_clock.rate = 0.1  # no limit is reached on a slow machine
    failures = [error_answer(500, "loading"), error_answer(502, "still loading")]
    async with open_model_server(failures, default=model()) as server:
        setup = Setup(tmp_path, server)
        await setup.fill()
        await setup.fill()
        assert await setup.find("about the eclipse") == ["eclipse"]
        assert len(server.requests) == 1
        (told,) = setup.told
        assert "500" in told
        assert "words alone decide" in told

        for _ in failures:
            mock_clock.jump(BACK_OFF_SECONDS + 1)
            await setup.fill()
        assert await setup.find("an orchestra played") == ["violins"]
    assert len(setup.told) == 1


async def test_a_server_that_is_silent(tmp_path: Path, mock_clock: MockClock) -> None:
    """A turn waits for it once and no longer than it may; then words decide at once."""
    mock_clock.rate = 10
    async with open_model_server(default=stall()) as server:
        setup = Setup(tmp_path, server)
        started = trio.current_time()
        async with open_stopwatch() as watch:
            assert await setup.find("about the eclipse") == ["eclipse"]
            assert watch.seconds < 5
        assert trio.current_time() - started >= QUESTION_SECONDS
        assert await setup.find("about the violins") == ["violins"]

        assert len(server.requests) == 1
        assert len(setup.told) == 1


async def test_a_server_that_answers_another_size(tmp_path: Path) -> None:
    """Vectors that are not of the size that was set are refused; words decide."""
    async with open_model_server(default=model(3)) as server:
        setup = Setup(tmp_path, server, dims=4)
        await setup.fill()

        assert await setup.find("about the eclipse") == ["eclipse"]
    (told,) = setup.told
    assert "vectors of 3 numbers, expected 4" in told


async def test_a_server_that_has_got_another_model(tmp_path: Path) -> None:
    """All texts get vectors of the new size, however many of the old are kept; then there is peace."""
    async with open_model_server(default=model()) as server:
        await Setup(tmp_path, server).fill()
    more = [*NOTES, Document(id="new", kind="episode", text="it was about orchestras")]
    async with open_model_server(default=model(13)) as server:
        setup = Setup(tmp_path, server)
        setup.index.add(more)
        await setup.fill()

        assert setup.index.without_vectors(99) == []
        assert set(await setup.find("an orchestra played")) == {"violins", "new"}
        asked = len(server.requests)
        await setup.fill()
        assert len(server.requests) == asked <= 4
    assert setup.told == []


async def test_another_embedder(tmp_path: Path) -> None:
    """Vectors of the old one are not compared with those of the new one, which are made behind."""
    async with open_model_server(default=model()) as server:
        await Setup(tmp_path, server).fill()
        setup = Setup(tmp_path, server, model="other")

        assert await setup.find("an orchestra played") == []
        assert await setup.find("about the eclipse") == ["eclipse"]
        await setup.fill()
        assert await setup.find("an orchestra played") == ["violins"]


async def test_a_server_that_dies_in_between(tmp_path: Path) -> None:
    """What has a vector is found by it, what has none by its words."""
    many = [Document(id=f"n{n}", kind="episode", text=f"number {n} was about cars") for n in range(400)]
    async with open_model_server([model(), model()], default=error_answer(503, "gone")) as server:
        setup = Setup(tmp_path, server)
        await setup.fill()
        vector = await setup.vectors.of_question("an orchestra played")
        setup.index.add(many)
        await setup.fill()

    assert [hit.id for hit in setup.index.search("an orchestra", 3, vector=vector)] == ["violins"]
    assert setup.index.search("number 399", 1, vector=vector)[0].id == "n399"
    assert len(setup.told) == 1
