"""The changes of a memory that the crash tests interrupt, and what a memory holds.

As a program it is a host: for each line ``CHANGE<TAB>DIRECTORY`` on stdin it forks a child, prints
its pid, and the child stops itself. Continued, the child makes the change, and the host prints how
it ended: ``acknowledged``, ``refused`` with the reason, or ``died``. A fork of a warm process makes no
system calls but those of the change.
"""

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from odek.errors import OdekError
from odek.memory.commit import Committer
from odek.memory.episodes import EpisodeLimits, EpisodeStore, Provenance, Similar
from odek.memory.facts import FactLimits, FactStore
from odek.memory.journal import Journal
from odek.memory.undo import undo

__all__ = ["CHANGES", "EPISODE_LIMITS", "FACT_LIMITS", "State", "prepare", "state_of"]

FACT_LIMITS = FactLimits()
EPISODE_LIMITS = EpisodeLimits(max_episodes=3)

State = tuple[tuple[str, ...], tuple[tuple[str, str, bool, int], ...]]
UNTRUSTED = Provenance(untrusted=True, sources=("network",))


def _facts(directory: Path) -> FactStore:
    return FactStore(directory, FACT_LIMITS)


def _episodes(directory: Path) -> EpisodeStore:
    return EpisodeStore(directory, EPISODE_LIMITS)


def _add(directory: Path) -> None:
    _facts(directory).add("user", "a new fact")


def _replace(directory: Path) -> None:
    facts = _facts(directory)
    facts.replace(facts.select("first fact"), "another first fact")


def _remove(directory: Path) -> None:
    facts = _facts(directory)
    facts.remove(facts.select("first fact"))


def _consolidate(directory: Path) -> None:
    facts = _facts(directory)
    facts.replace_all("user", facts.read("user").content_hash, ["first and second fact"])


def _store_and_evict(directory: Path) -> None:
    _episodes(directory).write("20260105-e", "The person did the fifth.", turns=5, provenance=Provenance())


def _rewrite(directory: Path) -> None:
    _episodes(directory).write("20260102-b", "The person went on.", turns=9, provenance=Provenance())


def _replace_duplicate(directory: Path) -> None:
    episodes = _episodes(directory)
    twin = episodes.find("20260103-c")
    similar = Similar(twin.session_id, 0.97, twin.content_hash)
    episodes.write("20260106-f", "The person did thirds.", turns=4, provenance=Provenance(), similar=similar)


def _promote(directory: Path) -> None:
    _episodes(directory).promote("20260102-b")


def _reject(directory: Path) -> None:
    _episodes(directory).reject("20260103-c")


def _undo(directory: Path) -> None:
    undo(Journal(directory), _facts(directory), _episodes(directory))


CHANGES: dict[str, Callable[[Path], None]] = {
    "add": _add,
    "replace": _replace,
    "remove": _remove,
    "consolidate": _consolidate,
    "store and evict": _store_and_evict,
    "rewrite": _rewrite,
    "replace a duplicate": _replace_duplicate,
    "promote": _promote,
    "reject": _reject,
    "undo": _undo,
}


def prepare(directory: Path) -> None:
    """Make the memory that every change begins with."""
    facts, episodes = _facts(directory), _episodes(directory)
    facts.add("user", "first fact")
    facts.add("user", "second fact")
    for number, name in enumerate(("a", "b", "c", "d"), start=1):
        episodes.write(
            f"2026010{number}-{name}",
            f"The person did {name}.",
            turns=number,
            provenance=UNTRUSTED if name == "b" else Provenance(),
            created_at=f"2026-01-0{number}T10:00:00Z",
        )
    episodes.reject("20260104-d")  # for undo


def state_of(directory: Path) -> State:
    """Return everything that the memory holds, as one who takes no lock sees it."""
    facts, episodes = _facts(directory), _episodes(directory)
    found = [episodes.read(episode.session_id) for episode in episodes.read_index()]
    return (
        tuple(fact.text for fact in facts.read("user").entries),
        tuple(
            (e.episode.session_id, e.text, e.episode.provenance.is_recallable, e.episode.turns)
            for e in found
            if not e.is_edited
        ),
    )


def _child(change: str, directory: Path, out: int) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)
    try:
        CHANGES[change](directory)
        os.write(out, b"acknowledged")
    except OdekError as error:
        os.write(out, f"refused {error}".replace("\n", " ").encode())
    except BaseException as error:  # noqa: BLE001 - the test is told of it
        os.write(out, f"escaped {error!r}".replace("\n", " ").encode())
    os._exit(0)


def _say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def _serve() -> None:
    with tempfile.TemporaryDirectory() as folder:  # load whatever is loaded late
        for make in CHANGES.values():
            warm = Path(tempfile.mkdtemp(dir=folder)) / "home" / "memory"
            prepare(warm)
            make(warm)
            Committer(warm).recover()
    _say("ready")
    for line in sys.stdin:
        change, directory = line.rstrip("\n").split("\t")
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            _child(change, Path(directory), write_end)
        os.close(write_end)
        os.waitpid(pid, os.WUNTRACED)
        _say(str(pid))
        said = os.read(read_end, 65536).decode()
        os.waitpid(pid, 0)
        os.close(read_end)
        _say(said or "died")


if __name__ == "__main__":
    _serve()
