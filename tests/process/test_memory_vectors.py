"""Recall with vectors of a real server: what is meant is found, and what fails costs that alone."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from odek.config.embedding_settings import EmbeddingSettings
from odek.embedding.http import HttpEmbedder
from odek.events import Event, Notice
from odek.memory.episodes import EpisodeStore, Provenance
from odek.memory.facts import FactLimits
from odek.memory.index_vectors import BACK_OFF_SECONDS
from odek.memory.memory_index import FILL_DELAY_SECONDS
from odek.memory.service import Memory, MemoryParts, open_memory
from odek.sessions.texts import SessionTexts
from tests.support.model_server import (
    Answer,
    ModelServer,
    RecordedRequest,
    by_request,
    error_answer,
    json_answer,
    open_model_server,
)
from tests.support.sessions import write_foreign

SUBJECTS = (
    ("authentication", "login"),
    ("dessert", "cake"),
    ("railway", "train"),
    ("violin", "concert"),
    ("puppy", "vet"),
    ("eclipse", "telescope"),
    ("sourdough", "yeast"),
    ("carpet", "vacuum"),
    ("tax", "receipt"),
    ("kayak", "paddle"),
    ("orchid", "soil"),
    ("chess", "opening"),
)
EPISODES = {f"s-{number:02}": f"It was about the {subject[0]}." for number, subject in enumerate(SUBJECTS)}
WORDS = "what about the railway?"
ASKED = "why does my login fail?"
LIMIT_SECONDS = 20


def vectors(dims: int = 16) -> Answer:
    """Answer with vectors that are alike when texts have the same subject."""

    def choose(request: RecordedRequest) -> Answer:
        data = []
        for place, text in enumerate(request.json["input"]):
            about = [float(any(word in text for word in subject)) for subject in SUBJECTS]
            data.append({"index": place, "embedding": (about + [0.25] * dims)[:dims]})
        return json_answer({"data": data})

    return by_request(choose)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with episodes and a session that is none of the server's business."""
    store = EpisodeStore(tmp_path / "memory")
    for name, text in EPISODES.items():
        store.write(name, text, turns=3, provenance=Provenance())
    foreign = Provenance(untrusted=True, sources=("network",))
    store.write("s-foreign", "A stranger wrote this.", turns=3, provenance=foreign)
    write_foreign(tmp_path / "sessions", "s-00", [{"role": "user", "content": "a private word"}])
    return tmp_path


@asynccontextmanager
async def opened(
    home: Path, server: ModelServer, emit: Callable[[Event], None] = lambda _: None, model: str = "m"
) -> AsyncGenerator[Memory]:
    """Open the memory with the vectors of a server."""
    settings = EmbeddingSettings(provider="http", base_url=server.base_url, model=model, timeout_seconds=5)
    embedder = HttpEmbedder(settings, home / "memory" / "embedding_cache")
    parts = MemoryParts(
        make_embedder=lambda: embedder, emit=emit, sessions=lambda: SessionTexts(home / "sessions")
    )
    async with open_memory(home / "memory", FactLimits(), parts) as memory:
        yield memory


async def ids_of(memory: Memory, query: str) -> list[str]:
    """Return the ids of what a turn is given."""
    return [document.session_id for document in (await memory.recall(query)).documents]


async def until_found(memory: Memory, query: str, name: str) -> None:
    """Ask until the vectors that are made behind the agent let an episode be found."""
    with trio.fail_after(LIMIT_SECONDS):
        while name not in await ids_of(memory, query):
            await trio.lowlevel.checkpoint()
            await memory.index().freshen(memory.index().upkeep.kinds)


async def first_answer(memory: Memory) -> list[str]:
    """Ask, while time stands still, until something is found."""
    for _ in range(5_000):
        if found := await ids_of(memory, ASKED):
            return found
        await memory.index().freshen(memory.index().upkeep.kinds)
    return []


async def test_what_is_meant_is_found_and_only_summaries_are_sent(home: Path) -> None:
    """Without a common word; what sessions said, and what nobody promoted, stays on this machine."""
    async with open_model_server(default=vectors()) as server:
        async with opened(home, server) as memory:
            await until_found(memory, ASKED, "s-00")
            by_words = await ids_of(memory, WORDS)
        sent = {text for request in server.requests for text in request.json["input"]}

    assert by_words[:1] == ["s-02"]
    assert sent == {*EPISODES.values(), ASKED, WORDS}


async def test_another_model_has_its_vectors_made_while_words_answer(home: Path) -> None:
    """What one model meant says nothing to the next, whatever the size of its vectors."""
    async with open_model_server(default=vectors()) as server, opened(home, server) as memory:
        await until_found(memory, ASKED, "s-00")
    async with open_model_server(default=vectors(24)) as server, opened(home, server, model="n") as memory:
        at_once = await ids_of(memory, WORDS)
        await until_found(memory, ASKED, "s-00")

    assert at_once == ["s-02"]


async def test_a_server_that_fails_costs_its_vectors_and_one_line(home: Path) -> None:
    """Words answer, the person is told once, and no turn asks the server again for a while."""
    events: list[Event] = []
    async with open_model_server(default=error_answer(500, "overloaded")) as server:
        async with opened(home, server, events.append) as memory:
            answers = [await ids_of(memory, WORDS) for _ in range(3)]
        asked = len(server.requests)

    assert answers == [["s-02"]] * 3
    assert asked <= 3
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert "words alone decide" in notice.text


async def test_a_server_that_is_well_again_is_asked_again(home: Path, mock_clock: MockClock) -> None:
    """Words answer in between, and the person is told once."""
    events: list[Event] = []
    async with (
        open_model_server([error_answer(500, "overloaded")], default=vectors()) as server,
        opened(home, server, events.append) as memory,
    ):
        failed = [await ids_of(memory, query) for query in (WORDS, ASKED)]
        for seconds in (BACK_OFF_SECONDS + 1, FILL_DELAY_SECONDS + 1):
            mock_clock.jump(seconds)
            await memory.recall(WORDS)
        well = await first_answer(memory)

    assert failed == [["s-02"], []]
    assert well == ["s-00"]
    assert len(events) == 1
