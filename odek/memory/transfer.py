"""Everything that is remembered as one value, and taking such a value in again."""

import codecs

import msgspec

from odek.errors import MemoryRefusedError, StoreCorruptError, StoreError
from odek.memory.episodes import Episode, EpisodeStore, Provenance
from odek.memory.facts import TARGETS, FactStore
from odek.memory.journal import Origin
from odek.memory.places import is_episode_id
from odek.text import clip_line, first_line

__all__ = ["Export", "Imported", "export", "import_all"]

VERSION = 1


class ExportedEpisode(Episode, frozen=True, kw_only=True):
    """An episode with its whole text."""

    text: str


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """All facts by file, and all episodes, oldest first."""

    version: int = VERSION
    user: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    episodes: tuple[ExportedEpisode, ...] = ()


class Imported(msgspec.Struct, frozen=True):
    """How much was added, how much was there already, and what was left out and why."""

    facts: int
    episodes: int
    known: int
    left_out: tuple[str, ...]


def export(facts: FactStore, episodes: EpisodeStore) -> tuple[Export, list[str]]:
    """Return everything that can be read, and a line for what cannot.

    Raises:
        StoreError: a file of facts or the index cannot be read.
    """
    exported: list[ExportedEpisode] = []
    problems = list(episodes.index().problems)
    for episode in reversed(episodes.read_index()):
        try:
            text = episodes.read_text(episode.session_id)
        except StoreError as error:
            problems.append(str(error))
            continue
        exported.append(ExportedEpisode(**msgspec.structs.asdict(episode), text=text))
    entries = {target: tuple(fact.text for fact in facts.read(target).entries) for target in TARGETS}
    return Export(user=entries["user"], env=entries["env"], episodes=tuple(exported)), problems


def import_all(
    data: bytes, facts: FactStore, episodes: EpisodeStore, *, name: str, trust: bool, origin: Origin
) -> Imported:
    """Add what ``data``, an encoded export, holds; each entry on its own, as if it were new.

    ``name`` says in an error where the data are from.

    Entries that are there stay. Without ``trust`` no episode is recalled before a person
    promotes it: whoever made the file could have written anything into it.

    Raises:
        StoreCorruptError: ``data`` is no export.
        StoreError: a file cannot be written; what was added before stays.
    """
    try:
        given = msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8), type=Export)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise StoreCorruptError(
            f"{name} is no exported memory, as `odek memory export` makes it: {error}"
        ) from error
    if given.version != VERSION:
        raise StoreCorruptError(f"{name} has version {given.version}; version {VERSION} can be read")
    added = known = stored = 0
    left_out: list[str] = []
    for target in TARGETS:
        for text in given.user if target == "user" else given.env:
            try:
                changed = facts.add(target, text, origin=origin).changed
                added, known = added + changed, known + (not changed)
            except MemoryRefusedError as error:
                left_out.append(f"{target} {clip_line(text, 60)!r}: {first_line(str(error))}")
    there = {episode.session_id for episode in episodes.read_index()}
    for episode in given.episodes:
        if episode.session_id in there:
            known += 1
            continue
        if not is_episode_id(episode.session_id):
            left_out.append(f"{ascii(episode.session_id)[:80]} is no episode id")
            continue
        try:
            episodes.write(
                episode.session_id,
                episode.text,
                turns=episode.turns,
                provenance=episode.provenance if trust else _untrusted(episode.provenance),
                created_at=episode.created_at if episode.created is not None else "",
                origin=origin,
            )
            stored += 1
        except MemoryRefusedError as error:
            left_out.append(f"{episode.session_id}: {first_line(str(error))}")
    return Imported(added, stored, known, tuple(left_out))


def _untrusted(provenance: Provenance) -> Provenance:
    return Provenance(untrusted=True, sources=tuple(dict.fromkeys((*provenance.sources, "import"))))
