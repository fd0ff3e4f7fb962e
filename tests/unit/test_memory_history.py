"""The journal and undo: what is recorded, and what can be taken back."""

from pathlib import Path

import pytest

from odek.errors import MemoryRefusedError, StoreError, TargetChangedError
from odek.memory.episodes import EpisodeLimits, EpisodeStore, Provenance
from odek.memory.facts import FactLimits, FactStore
from odek.memory.journal import LIMIT_BYTES, Journal, Origin, make_record
from odek.memory.undo import undo


class Stores:
    """All parts of one memory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.said: list[str] = []
        self.facts = FactStore(directory, FactLimits(), notify=self.said.append)
        self.episodes = EpisodeStore(directory, EpisodeLimits(), notify=self.said.append)
        self.journal = Journal(directory)

    def texts(self) -> list[str]:
        """Return the entries of user.md."""
        return [fact.text for fact in self.facts.read("user").entries]

    def undo(self, record_id: str = "") -> str:
        """Undo a change and return what it was."""
        return undo(self.journal, self.facts, self.episodes, record_id).action


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    """Return an empty memory."""
    return Stores(tmp_path / "home" / "memory")


def test_a_change_is_recorded_with_its_origin(stores: Stores) -> None:
    """The record says who, when, for whom, and what was there before and after."""
    origin = Origin(session="20260101-a", turn=3, call_id="call_1", approval="person", tainted=True)
    stores.facts.add("user", "I prefer tabs")

    stores.facts.replace(stores.facts.select("tabs"), "I prefer spaces", origin=origin)

    added, replaced = stores.journal.read().records
    assert (added.action, added.before, added.after, added.session) == ("add", "", "I prefer tabs", "")
    assert (replaced.before, replaced.after) == ("I prefer tabs", "I prefer spaces")
    assert (replaced.session, replaced.turn, replaced.call_id) == ("20260101-a", 3, "call_1")
    assert (replaced.approval, replaced.tainted) == ("person", True)
    assert replaced.hash_before == added.hash_after


def test_what_changes_nothing_is_not_recorded(stores: Stores) -> None:
    """A fact that is there already, and a refusal, leave no record."""
    stores.facts.add("user", "I prefer tabs")
    stores.facts.add("user", "I prefer tabs")
    with pytest.raises(MemoryRefusedError):
        stores.facts.add("user", "x" * 3000)

    assert len(stores.journal.read().records) == 1


def test_undo_goes_back_step_by_step_and_forth_by_name(stores: Stores) -> None:
    """Each undo takes back the newest change that is left; naming an undo takes that back."""
    stores.facts.add("user", "one")
    stores.facts.replace(stores.facts.select("one"), "two")
    stores.facts.add("user", "three")
    stores.facts.remove(stores.facts.select("two"))

    assert [stores.undo(), stores.texts()] == ["remove", ["three", "two"]]
    undone = stores.journal.read().records[-1].id
    assert [stores.undo(), stores.texts()] == ["add", ["two"]]
    assert [stores.undo(), stores.texts()] == ["replace", ["one"]]
    assert [stores.undo(), stores.texts()] == ["add", []]
    with pytest.raises(MemoryRefusedError, match="no change"):
        stores.undo()
    with pytest.raises(TargetChangedError):
        stores.undo(undone)


def test_undo_needs_the_entry_as_the_change_left_it(stores: Stores) -> None:
    """What was edited since is not touched."""
    stores.facts.add("user", "I prefer tabs")
    (stores.directory / "user.md").write_text("I prefer tabs in Go")

    with pytest.raises(TargetChangedError):
        stores.undo()

    assert stores.texts() == ["I prefer tabs in Go"]


def test_undo_of_a_consolidation_brings_every_entry_back(stores: Stores) -> None:
    """The whole file returns, entries of several lines too, if nothing came after."""
    entries = ["I prefer tabs", "Tabs are four wide", "a\n---\n# b"]
    for text in entries:
        stores.facts.add("user", text)
    seen = stores.facts.read("user").content_hash

    stores.facts.replace_all("user", seen, ["I prefer tabs, four wide", "a\n---\n# b"])
    assert stores.texts() == ["I prefer tabs, four wide", "a\n---\n# b"]
    with pytest.raises(TargetChangedError):
        stores.facts.replace_all("user", seen, ["something"])

    assert stores.undo() == "consolidate"
    assert stores.texts() == entries


def test_undo_of_what_happened_to_an_episode(stores: Stores) -> None:
    """Promotion, removal, replacement and storing are taken back, origin and text alike."""
    untrusted = Provenance(untrusted=True, sources=("network",))
    stores.episodes.write("20260101-a", "The page said hello.", turns=3, provenance=untrusted)
    stores.episodes.write("20260101-a", "The page said goodbye.", turns=4, provenance=untrusted)
    stores.episodes.promote("20260101-a")
    promoted = stores.episodes.read("20260101-a")
    stores.episodes.reject("20260101-a")

    assert stores.undo() == "reject"
    assert stores.episodes.read("20260101-a") == promoted
    assert stores.undo() == "promote"
    assert not stores.episodes.read_index()[0].provenance.is_recallable
    assert stores.undo() == "store"
    assert stores.episodes.read_text("20260101-a") == "The page said hello."
    assert stores.undo() == "store"
    assert stores.episodes.read_index() == ()


def test_a_credential_is_not_kept_in_the_journal(stores: Stores) -> None:
    """What was removed by hand-made entries is masked, and therefore not brought back."""
    secret = "key sk-" + "a1B2" * 12
    stores.directory.mkdir(parents=True)
    (stores.directory / "user.md").write_text(secret)

    stores.facts.remove(stores.facts.read("user").entries[0])

    assert "a1B2a1B2" not in (stores.directory / "journal.jsonl").read_text()
    with pytest.raises(MemoryRefusedError, match="credential"):
        stores.undo()


@pytest.mark.parametrize("tail", [b'{"id":"ab', b"\0" * 100, b"\xff\xfe", b"{}\n[]\n"])
def test_a_torn_end_costs_nothing_but_itself(stores: Stores, tail: bytes) -> None:
    """Records before and after a line that a crash left unfinished are read."""
    stores.facts.add("user", "one")
    with (stores.directory / "journal.jsonl").open("ab") as file:
        file.write(tail)

    stores.facts.add("user", "two")

    history = stores.journal.read()
    assert [record.after for record in history.records] == ["one", "two"]
    assert history.damaged_lines >= 1


def test_the_journal_stays_within_its_bound(stores: Stores) -> None:
    """Beyond the limit the older half goes, never the newest record."""
    stores.directory.mkdir(parents=True, mode=0o700)
    batch = [make_record("add", "user", Origin(), after="x" * 2000) for _ in range(400)]
    size = 0
    while size <= LIMIT_BYTES:
        stores.journal.append(batch)
        size += 400 * 2200
    newest = make_record("add", "user", Origin(), after="newest")
    stores.journal.append([newest])

    assert (stores.directory / "journal.jsonl").stat().st_size < LIMIT_BYTES
    assert stores.journal.read().records[-1].id == newest.id


def test_a_journal_that_cannot_be_written_loses_history_only(stores: Stores) -> None:
    """The change is made and acknowledged; that it is not on record is said."""
    stores.directory.mkdir(parents=True, mode=0o700)
    (stores.directory / "journal.jsonl").mkdir()

    assert stores.facts.add("user", "one").changed

    assert stores.texts() == ["one"]
    assert len(stores.said) == 1
    assert "not recorded" in stores.said[0]
    with pytest.raises(StoreError):
        stores.journal.read()


def test_a_lost_journal_is_begun_anew(stores: Stores) -> None:
    """Facts and episodes do not depend on it."""
    stores.facts.add("user", "one")
    (stores.directory / "journal.jsonl").unlink()

    stores.facts.add("user", "two")

    assert stores.texts() == ["one", "two"]
    assert [record.after for record in stores.journal.read().records] == ["two"]
