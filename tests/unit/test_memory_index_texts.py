"""What the index is told of a few texts is what it would be told of them among all."""

from pathlib import Path

from odek.index.document import Filter
from odek.memory.episode_reader import EpisodeReader
from odek.memory.episodes import EpisodeStore, Provenance
from odek.memory.facts import FactLimits
from odek.memory.index_texts import EpisodeTexts, Look, subject_of
from odek.memory.index_upkeep import IndexUpkeep, upkeep_of
from odek.memory.service import MemoryParts, open_memory
from odek.messages import AssistantMessage, UserMessage
from odek.sessions.store import SessionStore
from odek.sessions.texts import SessionTexts

ASKED = ("plain", "linked", "folder", "gone", "foreign", "unlisted", "never", "../outside", "", "index")


async def save_session(home: Path, text: str) -> str:
    """Save a session of one turn, and return its id."""
    with SessionStore(home / "sessions").create("test-model", "a task") as session:
        session.append(UserMessage(text), AssistantMessage("Yes."))
        await session.save()
    return session.id


def remember(
    home: Path, session_id: str, text: str = "The build is slow.", *, untrusted: bool = False
) -> None:
    """Store the episode of a session."""
    sources = ("network",) if untrusted else ()
    EpisodeStore(home / "memory").write(
        session_id, text, turns=3, provenance=Provenance(untrusted=untrusted, sources=sources)
    )


def indexed(upkeep: IndexUpkeep, query: str) -> set[str]:
    """Return the ids that the index has for a question."""
    return {hit.id for hit in upkeep.open().search(query, 9, Filter(), floor=0.0)}


async def test_some_versions_are_those_among_all(tmp_path: Path) -> None:
    """Links, directories, texts that are gone, unlisted or no ids: asked for alone, they are the same."""
    memory, sessions = tmp_path / "memory", tmp_path / "sessions"
    saved = await save_session(tmp_path, "the ferret makes the port flaky")
    for name in (saved, "plain", "linked", "folder", "gone"):
        remember(tmp_path, name)
    remember(tmp_path, "foreign", untrusted=True)
    (memory / "linked.md").rename(memory / "elsewhere.txt")
    (memory / "linked.md").symlink_to("elsewhere.txt")
    for name in ("folder", "gone"):
        (memory / f"{name}.md").unlink()
    (memory / "folder.md").mkdir()
    (memory / "unlisted.md").write_text("nobody listed this")
    (sessions / "linked.json").symlink_to(f"{saved}.json")
    (sessions / "folder.json").mkdir()
    (sessions / "index.json").write_text("{}")

    texts = SessionTexts(sessions)
    asked = {saved, *ASKED}
    look = Look(memory, texts)
    for kind in (EpisodeTexts(memory, EpisodeReader(memory), texts), texts):
        among_all = {
            name: version
            for name, version in kind.versions({}, look).by_id.items()
            if subject_of(name) in asked
        }
        assert kind.versions({}, look, asked).by_id == among_all
        assert f"{kind.kind}/{saved}" in among_all


async def test_taking_up_one_text_leaves_what_else_changed_to_the_next_question(tmp_path: Path) -> None:
    """The one is indexed and the one that is gone is not; another is found when somebody asks."""
    remember(tmp_path, "first", "The ferret chews the cable.")
    remember(tmp_path, "old", "The walrus paints the fence.")
    upkeep = upkeep_of(tmp_path / "memory", SessionTexts(tmp_path / "sessions"))
    upkeep.build()
    upkeep.catch_up(upkeep.kinds, seconds=5.0)
    remember(tmp_path, "wanted", "The harbour pilot prefers tea.")
    remember(tmp_path, "other", "The lighthouse keeper likes rum.")
    (tmp_path / "memory" / "old.md").unlink()
    asked = ["episode/wanted", "episode/old", "session/wanted"]

    left = upkeep.catch_up(upkeep.kinds, seconds=5.0, only=asked)
    found = [indexed(upkeep, query) for query in ("harbour pilot", "lighthouse keeper", "walrus", "ferret")]
    async with open_memory(tmp_path / "memory", FactLimits(), MemoryParts()) as memory:
        recalled = await memory.recall("does the lighthouse keeper like rum?")

    assert left.texts == 0
    assert found == [{"episode/wanted"}, set(), set(), {"episode/first"}]
    assert [document.session_id for document in recalled.documents] == ["other"]
