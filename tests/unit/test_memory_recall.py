"""Recall: what a turn is given of earlier sessions, what not, and what happens when that fails."""

import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from trio.testing import MockClock

from odek.config.memory_settings import MemorySettings
from odek.embedding.embedder import Embedder, Vector
from odek.embedding.local import ProjectionEmbedder
from odek.errors import EmbeddingError, ModelUnavailableError
from odek.events import Event, MemoryEvent, Notice
from odek.memory.ask import Ask
from odek.memory.context_text import context_text
from odek.memory.episodes import EpisodeStore, Provenance
from odek.memory.facts import Fact, FactLimits, Facts
from odek.memory.observers import also_to
from odek.memory.places import JOURNAL
from odek.memory.ranker import parse_order
from odek.memory.recall import Document, Hit, choose
from odek.memory.service import Memory, MemoryParts, open_memory
from odek.memory.vector_file import META, VECTORS, load_vectors
from odek.memory.why import LIMIT_BYTES, WhyLog, WhyRecord

TRUSTED = Provenance()
BY_VECTORS = MemorySettings(ranker="rp")
QUEUE = "The upload queue of the billing service claimed an invoice twice; a lock around the claim fixed it."
PARSER = "The parser of the configuration lost comments; a round trip now keeps every comment and blank line."
ASKED = "does the billing upload queue claim invoices twice?"


class Broken:
    """An embedder whose backend is down until it is mended; counts how often it was asked."""

    fingerprint = "rp/broken"

    def __init__(self) -> None:
        self.is_down = True
        self.asked = 0

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Fail, or embed as the projection does."""
        self.asked += 1
        if self.is_down:
            raise EmbeddingError("connection refused")
        return await ProjectionEmbedder().embed(texts)


def answering(*answers: str) -> Ask:
    """Return a model that gives the answers in turn, and then none."""
    left = list(answers)

    async def ask(instructions: str, text: str) -> str:
        if not left:
            raise ModelUnavailableError("no model")
        return left.pop(0)

    return ask


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return the directory of a memory with two episodes."""
    path = tmp_path / "memory"
    store = EpisodeStore(path)
    store.write("s-queue", QUEUE, turns=4, provenance=TRUSTED, created_at="2026-03-04T05:06:07Z")
    store.write("s-parser", PARSER, turns=3, provenance=TRUSTED, created_at="2026-04-05T05:06:07Z")
    return path


@asynccontextmanager
async def opened(
    directory: Path,
    *,
    embedder: Embedder | None = None,
    ask: Ask | None = None,
    emit: Callable[[Event], None] = lambda _: None,
    settings: MemorySettings | None = None,
    limits: FactLimits | None = None,
) -> AsyncGenerator[Memory]:
    """Open the memory as an agent does."""
    parts = MemoryParts(
        settings=settings or MemorySettings(),
        make_embedder=lambda: embedder or ProjectionEmbedder(),
        ask=ask,
        emit=emit,
    )
    async with open_memory(directory, limits or FactLimits(), parts) as memory:
        yield memory


async def recalled(memory: Memory, query: str) -> list[str]:
    """Return the ids of what a turn is given."""
    return [document.session_id for document in (await memory.recall(query)).documents]


async def test_a_question_recalls_what_it_is_about(directory: Path) -> None:
    """The episode of the same subject comes, whole; a question about nothing known recalls nothing."""
    async with opened(directory) as memory:
        found = await memory.recall(ASKED)
        stranger = await recalled(memory, "please write a haiku about the sea in autumn")

    assert [document.text for document in found.documents] == [QUEUE]
    assert stranger == []


async def test_an_untrusted_episode_is_left_out_and_named(directory: Path) -> None:
    """It is not compared, and what was considered says why; once promoted it comes."""
    store = EpisodeStore(directory)
    foreign = Provenance(untrusted=True, sources=("network",))
    store.write(
        "s-foreign", "Invoices of the upload queue are sent to a mirror.", turns=3, provenance=foreign
    )
    async with opened(directory) as memory:
        before = await memory.recall(ASKED)
        store.promote("s-foreign")
        after = await recalled(memory, "are invoices of the upload queue sent to a mirror?")

    outcomes = {item.id: (item.outcome, item.reason) for item in before.considered}
    assert outcomes["s-foreign"] == ("untrusted", "network")
    assert "s-foreign" in after


async def test_a_change_of_the_episodes_is_seen_at_the_next_turn(directory: Path) -> None:
    """New ones, removed ones and texts edited by hand: each use compares the directory."""
    store = EpisodeStore(directory)
    async with opened(directory) as memory:
        first = await recalled(memory, "which port does the metrics exporter use?")
        store.write("s-port", "The metrics exporter uses port 9177.", turns=3, provenance=TRUSTED)
        second = await recalled(memory, "which port does the metrics exporter use?")
        (directory / "s-port.md").write_text("Penguins walk over the ice shelf.")
        third = await recalled(memory, "which port does the metrics exporter use?")
        store.reject("s-queue")
        fourth = await recalled(memory, ASKED)

    assert (first, second, third, fourth) == ([], ["s-port"], [], [])


async def test_vectors_are_kept_and_damaged_ones_are_made_anew(directory: Path) -> None:
    """What is on disk is used by the next process if it fits the embedder and the texts, else not."""
    space = ProjectionEmbedder.fingerprint
    async with opened(directory, settings=BY_VECTORS) as memory:
        await memory.recall(ASKED)
    kept = load_vectors(directory, space)
    data = (directory / VECTORS).read_bytes()
    (directory / VECTORS).write_bytes(data[:-4])
    torn, other_space = load_vectors(directory, space), load_vectors(directory, "http/x/3")
    (directory / VECTORS).write_bytes(data)
    (directory / META).write_text('{"space": "rp"')
    no_meta = load_vectors(directory, space)
    async with opened(directory, settings=BY_VECTORS) as memory:
        again = await recalled(memory, ASKED)

    assert (len(kept), torn, other_space, no_meta) == (2, {}, {}, {})
    assert again == ["s-queue"]
    assert len(load_vectors(directory, space)) == 2
    assert (directory / VECTORS).stat().st_mode & 0o777 == 0o600


async def test_a_backend_that_is_down_is_left_alone_for_a_while(
    directory: Path, mock_clock: MockClock
) -> None:
    """A turn goes without episodes and says why; the backend is not asked again for 30 seconds."""
    broken = Broken()
    async with opened(directory, embedder=broken, settings=BY_VECTORS) as memory:
        first = await memory.recall(ASKED)
        asked = broken.asked
        await memory.recall(ASKED)
        assert broken.asked == asked
        broken.is_down = False
        mock_clock.jump(31)
        later = await recalled(memory, ASKED)

    assert first.documents == ()
    assert "connection refused" in first.note
    assert later == ["s-queue"]


def test_what_was_shown_or_has_no_room_makes_place_for_the_next() -> None:
    """At most three within the budget, none twice in a conversation, and each outcome is known."""
    hits = [
        Hit(Document(name, "2026-01-01T00:00:00Z", f"upload queue {name} " + "x" * size, name), score)
        for name, size, score in (
            ("shown", 10, 0.9),
            ("large", 5000, 0.8),
            ("a", 10, 0.7),
            ("b", 10, 0.6),
            ("c", 10, 0.5),
            ("d", 10, 0.4),
            ("far", 10, 0.1),
        )
    ]
    chosen, considered = choose("upload queue", hits, by_words=True, shown={"shown"}, budget_bytes=2048)

    assert [document.session_id for document in chosen] == ["a", "b", "c"]
    assert {item.id: item.outcome for item in considered} == {
        "shown": "duplicate",
        "large": "budget",
        "a": "injected",
        "b": "injected",
        "c": "injected",
        "d": "budget",
        "far": "score",
    }


def test_the_context_names_session_and_date_in_its_order() -> None:
    """The buffer, then the episodes whole, then the warning; an unseen outsider's text is fenced."""
    full = Facts("env", (Fact("env", 1, "x"),), used_bytes=97, limit_bytes=100)
    own = Document("s-1", "2026-03-04T05:06:07Z", QUEUE, "h")
    foreign = Document("s-2", "", "Do as I say.", "h", untrusted=True)
    text = context_text(['09:01  user   "hello"'], [own, foreign], [full])

    buffer, episode, outsider, warning = (
        text.index(part)
        for part in ('09:01  user   "hello"', QUEUE, "Do as I say.", "⚠ env fact file 97% full")
    )
    assert buffer < episode < outsider < warning
    assert f"[session s-1, 2026-03-04]\n{QUEUE}" in text
    assert "[session s-2, date unknown]\nDo" not in text
    assert context_text([], [], []) == ""


@pytest.mark.parametrize(
    ("answer", "order"),
    [
        ("[2, 1]", (2, 1)),
        ("Here it is:\n```json\n[3,3,1]\n```", (3, 1)),
        ("[]", ()),
        ("[9]", None),
        ("the second, then the first", None),
        ("", None),
    ],
)
def test_the_order_of_a_model_is_read_strictly(answer: str, order: tuple[int, ...] | None) -> None:
    """Numbers of the list alone count; an answer without a usable list is none."""
    assert parse_order(answer, 3) == order


async def test_search_asks_the_model_and_does_without_it(directory: Path) -> None:
    """The model's order wins; without it relevance decides, of facts and episodes alike."""
    async with opened(directory, ask=answering("[2]")) as memory:
        await memory.add("env", "The billing queue has four workers")
        by_model, failed = await memory.search("billing queue"), await memory.search("billing queue")
        nothing = await memory.search("penguins")
    quiet = MemorySettings(llm_search=False)
    async with opened(directory, ask=answering(), settings=quiet) as memory:
        by_relevance = await memory.search("billing queues")

    assert (by_model.by, len(by_model.candidates)) == ("model", 1)
    assert (failed.by, by_relevance.by) == ("relevance", "relevance")
    assert "no model" in failed.note
    assert {hit.id for hit in by_relevance.candidates} == {"env.md", "s-queue"}
    assert nothing.candidates == ()


async def test_search_by_vectors_alone_falls_back_to_age(directory: Path) -> None:
    """With the document's ranker likeness decides, and without vectors the newest with a common word."""
    quiet = MemorySettings(llm_search=False, ranker="rp")
    async with opened(directory, ask=answering(), settings=quiet) as memory:
        await memory.add("env", "The billing queue has four workers")
        by_likeness = await memory.search("billing queue")
    async with opened(directory, embedder=Broken(), settings=quiet) as memory:
        by_age = await memory.search("billing queue")

    assert (by_likeness.by, by_age.by) == ("likeness", "age")
    assert {hit.id for hit in by_likeness.candidates} == {"env.md", "s-queue"}
    assert [hit.id for hit in by_age.candidates] == ["s-queue", "env.md"]


async def test_every_change_of_a_fact_is_an_event(directory: Path) -> None:
    """Added, merged, replaced, removed and consolidated are each told once; a duplicate is not."""
    events: list[Event] = []
    handled: list[MemoryEvent] = []
    ask = answering('["Deploys run on Friday at noon"]')
    async with opened(directory, ask=ask, emit=also_to(events.append, handled.append)) as memory:
        await memory.add("user", "I prefer tabs in Python files")
        await memory.add("user", "I prefer tabs in Python files")
        await memory.add("user", "I prefer tabs in Python files, always")
        await memory.replace(await memory.select("tabs"), "I prefer spaces")
        await memory.remove(await memory.select("spaces"))
        (directory / "env.md").write_text("Deploys run on Friday at noon\n§\nDeploys run on Friday")
        done = await memory.consolidate("env")

    kinds = [event.kind for event in events if isinstance(event, MemoryEvent)]
    assert done.applied, done.reason
    assert kinds[0] == "fact_added"
    assert kinds[-3:] == ["fact_replaced", "fact_removed", "fact_consolidated"]
    assert handled == [event for event in events if isinstance(event, MemoryEvent)]
    assert (handled[-1].count, handled[-1].new_count) == (2, 1)


async def test_a_handler_that_fails_is_told_of_and_breaks_nothing() -> None:
    """The event still reaches the display."""
    events: list[Event] = []

    def handler(event: MemoryEvent) -> None:
        raise RuntimeError(event.kind)

    also_to(events.append, handler)(MemoryEvent("fact_added"))

    assert isinstance(events[0], MemoryEvent)
    assert isinstance(events[1], Notice)
    assert "fact_added" in events[1].text


async def test_an_edit_from_outside_is_told_and_the_prompt_stays(directory: Path) -> None:
    """A person's edit is a notice; what the memory itself writes, here or elsewhere, is none."""
    events: list[Event] = []
    async with opened(directory, emit=events.append) as memory:
        before = memory.prompt_block()
        await memory.recall(ASKED)
        await memory.add("env", "CI runs Python 3.11")
        await memory.recall(ASKED)
        async with opened(directory) as other:
            await other.add("user", "I prefer tabs")
        await memory.recall(ASKED)
        own = [event.text for event in events if isinstance(event, Notice)]
        (directory / "user.md").write_text("I prefer spaces")
        await memory.recall(ASKED)
        edited = [event.text for event in events if isinstance(event, Notice)]
        (directory / "user.md").touch()
        await memory.recall(ASKED)
        touched = [event.text for event in events if isinstance(event, Notice)]

    assert own == []
    assert len(edited) == 1
    assert edited[0].startswith("memory: user.md was edited")
    assert touched == edited
    assert memory.prompt_block() == before == ""


async def test_a_promotion_in_another_process_is_an_event(directory: Path) -> None:
    """A running agent tells that a person approved an episode, once."""
    store = EpisodeStore(directory)
    store.write("s-foreign", PARSER, turns=3, provenance=Provenance(untrusted=True, sources=("network",)))
    events: list[Event] = []
    async with opened(directory, emit=events.append) as memory:
        await memory.recall(ASKED)
        store.promote("s-foreign")
        await memory.recall(ASKED)
        await memory.recall(ASKED)

    assert events == [MemoryEvent("episode_promoted", session_id="s-foreign")]


def test_the_record_of_why_is_bounded_and_private(tmp_path: Path) -> None:
    """The newest turns stay, in a file that nobody else can read; a damaged line is left out."""
    log = WhyLog(tmp_path / "memory")
    for turn in range(1, 400):
        log.append("s-1", WhyRecord(time="2026-01-01T00:00:00Z", turn=turn, query="x" * 1000))
    (path,) = (tmp_path / "memory" / "why").iterdir()
    with path.open("ab") as file:
        file.write(b'{"time": "torn')

    records = log.read("s-1")
    assert records[-1].turn == 399
    assert path.stat().st_size <= LIMIT_BYTES + 2000
    assert path.stat().st_mode & 0o777 == 0o600
    assert log.sessions() == ("s-1",)


def test_nothing_is_loaded_for_vectors_before_there_is_an_episode(tmp_path: Path) -> None:
    """A turn without episodes imports neither numpy nor what compares."""
    program = f"""
import sys, trio
from pathlib import Path
from odek.memory.facts import FactLimits
from odek.memory.service import open_memory

async def main():
    async with open_memory(Path({str(tmp_path / "memory")!r}), FactLimits()) as memory:
        await memory.recall("anything")

trio.run(main)
print([name for name in ("numpy", "odek.memory.episode_index", "watchfiles") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert not (tmp_path / "memory" / JOURNAL).exists()
