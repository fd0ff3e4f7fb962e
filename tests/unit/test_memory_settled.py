"""What a question does not wait for: comparing what is as it was indexed, very many files, and merges."""

from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from odek.config.memory_settings import MemorySettings
from odek.events import Event, Notice
from odek.index.document import Kind
from odek.memory.episode import Entry, Episode, Provenance, encode_index, preview
from odek.memory.episodes import EpisodeStore
from odek.memory.eviction import EpisodeLimits
from odek.memory.facts import FactLimits
from odek.memory.index_upkeep import EPISODES, IndexUpkeep, Left, upkeep_of
from odek.memory.journal import digest
from odek.memory.memory_index import MemoryIndex
from odek.memory.places import INTENT
from odek.memory.service import Memory, MemoryParts, open_memory
from odek.memory.watch import VAST_LIST_BYTES, Scan, hot_stamps, is_vast
from odek.messages import AssistantMessage, UserMessage
from odek.sessions.indexed import take_up_episodes, take_up_sessions
from odek.sessions.store import SessionStore
from odek.sessions.texts import SessionTexts
from tests.support.waiting import HANG_SECONDS

TRUSTED = Provenance()
BOTH: tuple[Kind, ...] = ("episode", "session")
LIST_ALONE = Scan(is_whole=False)
ASKED = "what does the harbour pilot drink?"


@asynccontextmanager
async def opened(
    home: Path, emit: Callable[[Event], None] = lambda _: None, *, ranker: str = "bm25"
) -> AsyncGenerator[Memory]:
    """Open the memory of a home with its sessions."""
    settings = MemorySettings() if ranker == "bm25" else MemorySettings(ranker="rp")
    parts = MemoryParts(settings=settings, emit=emit, sessions=lambda: SessionTexts(home / "sessions"))
    async with open_memory(home / "memory", FactLimits(), parts) as memory:
        yield memory


def remember(home: Path, session_id: str, text: str, provenance: Provenance = TRUSTED) -> None:
    """Store the episode of a session, and evict none."""
    limits = EpisodeLimits(max_episodes=0)
    EpisodeStore(home / "memory", limits).write(session_id, text, turns=3, provenance=provenance)


async def session_of(home: Path, text: str) -> str:
    """Save a session of one turn, and return its id."""
    with SessionStore(home / "sessions").create("test-model", "a task") as session:
        session.append(UserMessage(text), AssistantMessage("Yes."))
        await session.save()
    return session.id


def upkeep(home: Path) -> IndexUpkeep:
    """Return the upkeep of a process that has just begun."""
    return upkeep_of(home / "memory", SessionTexts(home / "sessions"))


def is_settled(home: Path, seen: Scan | None = None) -> bool:
    """Tell whether a process that has just begun has nothing to compare before its first question."""
    return upkeep(home).is_settled("episode", seen)


async def ids_for(memory: Memory, query: str = ASKED) -> list[str]:
    """Return the ids of what a turn is given."""
    return [document.session_id for document in (await memory.recall(query)).documents]


def edit_in_place(path: Path) -> None:
    """Change a text as an editor does that keeps the file."""
    path.write_text("The harbour pilot drinks nothing but coffee.")


def touch(path: Path) -> None:
    """Write the same text again."""
    path.write_text(path.read_text())


def replace(path: Path) -> None:
    """Change a text as an editor does that renames."""
    new = path.with_suffix(".new")
    new.write_text("The harbour pilot drinks nothing but coffee.")
    new.replace(path)


def remove(path: Path) -> None:
    """Remove a text."""
    path.unlink()


def rename(path: Path) -> None:
    """Give a text another name."""
    path.rename(path.with_name("elsewhere.md"))


def edit_the_list(path: Path) -> None:
    """Write the list of the episodes anew, as it was."""
    listed = path.with_name("index.json")
    listed.write_bytes(listed.read_bytes())


def store_another(path: Path) -> None:
    """Store an episode and index nothing."""
    remember(path.parents[1], "another", "The lighthouse keeper likes rum.")


def begin_a_change(path: Path) -> None:
    """Leave a change under way."""
    (path.parent / INTENT).write_text("{}")


def forget_the_index(path: Path) -> None:
    """Remove what was noted of the index."""
    (path.parent / "index" / "texts.jsonl").unlink()


def save_the_session(path: Path) -> None:
    """Write the session of the episode anew, as it was."""
    session = path.parents[1] / "sessions" / f"{path.stem}.json"
    new = session.with_suffix(".new")
    new.write_bytes(session.read_bytes())
    new.replace(session)


CHANGES = (
    edit_in_place,
    touch,
    replace,
    remove,
    rename,
    edit_the_list,
    store_another,
    begin_a_change,
    forget_the_index,
    save_the_session,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
async def test_every_change_of_what_is_indexed_is_looked_into(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """Without one nothing is compared; whatever changes, the next look compares, and settles it again."""
    name = await session_of(tmp_path, "the ferret makes the port flaky")
    remember(tmp_path, name, "The harbour pilot prefers tea.")
    first = upkeep(tmp_path)
    first.build()
    assert first.catch_up(first.kinds, seconds=20).texts == 0
    assert is_settled(tmp_path)
    await session_of(tmp_path, "a session that has no episode by now")
    (tmp_path / "memory" / "user.md").write_text("- likes short answers\n")
    assert is_settled(tmp_path)

    change(tmp_path / "memory" / f"{name}.md")
    assert not is_settled(tmp_path)
    (tmp_path / "memory" / INTENT).unlink(missing_ok=True)
    upkeep(tmp_path).catch_up(EPISODES, seconds=20)
    assert is_settled(tmp_path)
    assert is_settled(tmp_path, LIST_ALONE)


async def test_a_session_that_somebody_goes_on_with_leaves_its_episode_unsettled(tmp_path: Path) -> None:
    """Its words are still to be taken up, whatever its file is by then."""
    name = await session_of(tmp_path, "the ferret makes the port flaky")
    remember(tmp_path, name, "The harbour pilot prefers tea.")
    first = upkeep(tmp_path)
    first.build()
    first.catch_up(first.kinds, seconds=20)
    with SessionStore(tmp_path / "sessions").open(name) as session:
        session.append(UserMessage("and what of the walrus?"), AssistantMessage("It paints."))
        await session.save()
        upkeep(tmp_path).catch_up(BOTH, seconds=20)
        assert not is_settled(tmp_path)
    upkeep(tmp_path).catch_up(BOTH, seconds=20)
    assert is_settled(tmp_path)


async def test_who_stores_an_episode_or_deletes_a_session_leaves_a_settled_store(tmp_path: Path) -> None:
    """So the first question of the next process compares nothing; unless somebody else left something."""
    name = await session_of(tmp_path, "the ferret makes the port flaky")
    remember(tmp_path, name, "The harbour pilot prefers tea.")
    async with opened(tmp_path) as memory:
        await ids_for(memory)
        second = await session_of(tmp_path, "the walrus paints the fence")
        remember(tmp_path, second, "The lighthouse keeper likes rum.")
        await memory.take_up([second])
    assert is_settled(tmp_path)

    (tmp_path / "sessions" / f"{second}.json").unlink()
    take_up_sessions(tmp_path, [second])
    assert is_settled(tmp_path)

    remember(tmp_path, "left", "The baker sells bread.")
    take_up_sessions(tmp_path, [second])
    assert not is_settled(tmp_path)
    take_up_episodes(tmp_path)
    assert is_settled(tmp_path)


def write_vast(home: Path) -> int:
    """Write so many episodes that a question does not wait for a look at each, and return how many."""
    memory = home / "memory"
    memory.mkdir(mode=0o700, parents=True)
    entries: list[Entry] = []
    size = 0
    while size <= VAST_LIST_BYTES:
        name, text = (
            f"many-{len(entries):05d}",
            f"Somebody counted the parcel number {len(entries)} " + "x" * 90,
        )
        (memory / f"{name}.md").write_text(text)
        episode = Episode(
            session_id=name,
            created_at="2026-05-01T10:00:00Z",
            summary=preview(text),
            provenance=TRUSTED,
            content_hash=digest(text),
        )
        entries.append(Entry.of(episode))
        size += len(entries[-1].raw)
    (memory / "index.json").write_bytes(encode_index(entries))
    remember(home, "pilot", "The harbour pilot prefers tea.")
    remember(home, "keeper", "The lighthouse keeper likes rum.")
    assert is_vast(hot_stamps(memory))
    return len(entries) + 2


@pytest.fixture(scope="module")
def vast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with very many episodes, all indexed, and the two that are asked for."""
    home = tmp_path_factory.mktemp("vast")
    count = write_vast(home)
    first = upkeep(home)
    first.build()
    while first.catch_up(first.kinds, seconds=60).texts:
        pass
    assert first.count("episode") == count
    assert is_settled(home)
    return home


async def test_in_a_vast_store_a_question_waits_for_no_look_at_each_file(vast: Path) -> None:
    """What is stored or gone is seen at once, by the list and by what is found; nothing old is given."""
    pilot, keeper = vast / "memory" / "pilot.md", vast / "memory" / "keeper.md"
    pilot.write_text("The harbour pilot drinks nothing but coffee.")
    async with opened(vast) as memory:
        seen = await memory.look()
        (document,) = (await memory.recall(ASKED)).documents
        remember(vast, "stored", "The oboist sleeps in a hammock.")
        stored = await ids_for(memory, "who sleeps in a hammock, the oboist?")
        keeper.unlink()
        gone = await ids_for(memory, "does the lighthouse keeper like rum?")
        await memory.take_up(["stored"])

    assert not seen.is_whole
    assert document.text == pilot.read_text()  # found by words that it had before
    assert (stored, gone) == (["stored"], [])
    assert is_settled(vast, LIST_ALONE)


async def test_in_a_vast_store_what_is_edited_in_place_is_found_soon(vast: Path) -> None:
    """By words that it did not have, behind a question: what was edited before, and while the agent runs."""
    first, second, third = (vast / "memory" / f"many-{number:05d}.md" for number in (7, 8, 9))
    events: list[Event] = []
    first.write_text("The glassblower bathes in lemonade.")
    async with opened(vast, events.append) as memory:
        await until_found(memory, "bathes lemonade", first)
        assert events == []
        with trio.fail_after(HANG_SECONDS):
            while not events:  # until two looks were compared
                second.write_text(second.read_text() + "!")
                await ids_for(memory)
                await trio.sleep(0.05)
        third.write_text("A beekeeper whistles.")
        await until_found(memory, "beekeeper whistles", third)

    assert Notice(f"memory: the text of episode {second.stem} was edited") in events


async def until_found(memory: Memory, query: str, path: Path) -> None:
    """Ask until the episode whose text is at ``path`` is given."""
    with trio.fail_after(HANG_SECONDS):
        while await ids_for(memory, query) != [path.stem]:  # noqa: ASYNC110 - each question begins a look
            await trio.sleep(0.05)


async def test_where_every_text_is_compared_each_is_looked_at_however_many(vast: Path) -> None:
    """The ranker that compares all texts needs all files."""
    async with opened(vast, ranker="rp") as memory:
        assert (await memory.look()).is_whole


async def test_no_question_waits_for_segments_to_be_merged_and_leaving_does(tmp_path: Path) -> None:
    """Each episode is found by the first question after it; who leaves in the midst leaves a whole index."""
    merging = 0
    for first in (0, 12):
        async with opened(tmp_path) as memory:
            for number in range(first, first + 12):
                remember(tmp_path, f"e-{number}", f"The harbour pilot number{number}x prefers tea.")
                assert f"e-{number}" in await ids_for(memory, f"who is number{number}x?")
                merging += memory.index().upkeep.is_merging
    after = upkeep(tmp_path)
    assert after.catch_up(after.kinds, seconds=5.0) == Left()
    assert after.count("episode") == 24
    assert not after.open().needs_rebuild
    assert merging


async def test_work_that_may_be_abandoned_begins_when_the_merge_is_finished(tmp_path: Path) -> None:
    """So nobody who is cancelled in the midst leaves the merge, and the lock, to a thread of its own."""
    merging: list[bool] = []

    class Watching(SessionTexts):
        def stamps(self, only: Collection[str] | None = None) -> dict[str, str]:
            merging.append(writer.is_merging)
            return super().stamps(only)

    writer = upkeep_of(
        tmp_path / "memory", Watching(tmp_path / "sessions"), poll=trio.from_thread.check_cancelled
    )
    writer.build()
    async with trio.open_nursery() as nursery:
        index = MemoryIndex(writer, nursery, trio.CapacityLimiter(2), lambda _: None, keeps_up=False)
        number = 0
        while not writer.is_merging:
            remember(tmp_path, f"e-{number}", f"The lighthouse keeper number{number}x likes rum.")
            await index.freshen(EPISODES, seconds=5.0)
            number += 1
        merging.clear()
        await index.settle(None)

    assert merging == [False]
    assert [hit.id for hit in writer.open().search(f"number{number - 1}x", 1)] == [f"episode/e-{number - 1}"]
