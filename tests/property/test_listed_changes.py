"""A store too vast to look at each file: what the list says changed is compared alone, and that is enough."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from odek.memory.catalogue import Catalogue
from odek.memory.episode import Provenance
from odek.memory.episodes import EpisodeStore
from odek.memory.eviction import EpisodeLimits
from odek.memory.index_upkeep import EPISODES, INDEX_DIRECTORY, IndexUpkeep, upkeep_of
from odek.memory.watch import Scan

LIST_ALONE = Scan(is_whole=False)
UNTRUSTED = Provenance(untrusted=True, sources=("network",))

episodes = st.sampled_from(["a", "b", "c", "d"])
changes = st.one_of(
    st.tuples(st.just("store"), episodes, st.sampled_from(["tea", "rum", "milk"])),
    st.tuples(st.just("distrust"), episodes, st.sampled_from(["tea", "rum"])),
    st.tuples(st.sampled_from(["promote", "reject", "list"]), episodes, st.just("")),
    st.tuples(st.sampled_from(["here", "there", "one"]), episodes, st.just("")),
)


class Store:
    """A home, changed by one process and indexed by two, which look at the list alone."""

    def __init__(self, home: Path) -> None:
        self.memory = home / "memory"
        self.episodes = EpisodeStore(self.memory, EpisodeLimits(max_episodes=0))
        self.processes = {"here": upkeep_of(self.memory, None), "there": upkeep_of(self.memory, None)}

    def change(self, what: str, session_id: str, drink: str) -> None:
        """Do one thing to an episode, or bring the index up to the list."""
        is_there = any(each.session_id == session_id for each in self.episodes.read_index())
        match what:
            case "store" | "distrust":
                text = f"The pilot {session_id} drinks {drink}."
                provenance = Provenance() if what == "store" else UNTRUSTED
                self.episodes.write(session_id, text, turns=1, provenance=provenance)
            case "promote" if is_there:
                self.episodes.promote(session_id)
            case "reject" if is_there:
                self.episodes.reject(session_id)
            case "list" if is_there:
                listed = self.memory / "index.json"
                listed.write_bytes(listed.read_bytes().replace(b"drinks", b"sips"))
            case "one":
                catch_up(self.processes["here"], [f"episode/{session_id}"])
            case "here" | "there":
                catch_up(self.processes[what])


def catch_up(upkeep: IndexUpkeep, only: list[str] | None = None) -> None:
    """Index what changed, by the list."""
    assert upkeep.catch_up(EPISODES, seconds=20, seen=LIST_ALONE, only=only).texts == 0


@settings(max_examples=25, deadline=None)
@given(st.lists(changes, max_size=14))
def test_what_the_list_says_changed_is_all_that_differs(done: list[tuple[str, str, str]]) -> None:
    """Whoever stores and whoever indexes: a process that compares all of it finds nothing left to do."""
    with tempfile.TemporaryDirectory() as home:
        store = Store(Path(home))
        store.change("store", "a", "tea")
        store.processes["here"].build()
        for change in done:
            store.change(*change)
        catch_up(store.processes["here"])

        catalogue = Catalogue(store.memory / INDEX_DIRECTORY)
        known = dict(catalogue.read())
        catalogue.replace(known)  # without marks: a process that begins compares every text
        catch_up(upkeep_of(store.memory, None))
        assert catalogue.read() == known
        assert known.keys() == {f"episode/{each.session_id}" for each in store.episodes.read_index()}
