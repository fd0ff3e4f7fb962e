"""Whether everything in the directory of the memory is as it should be, and mending what is not.

Only what can be derived is mended: the index from the texts, modes, temporaries, the
journal's lines. What a person wrote is never changed; it is named, with what to do.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.memory.commit import Committer, read_intent
from odek.memory.episodes import EpisodeLimits, EpisodeStore
from odek.memory.facts import TARGETS, FactLimits, FactStore, Target
from odek.memory.journal import Journal, digest
from odek.memory.modes import loose, tighten
from odek.memory.places import INDEX, INTENT, JOURNAL, read_bounded, real_directory
from odek.storage.files import abandoned_temporaries

__all__ = ["Finding", "Report", "check", "repair"]


class Finding(msgspec.Struct, frozen=True):
    """Something that is not as it should be; ``mendable`` by ``repair``, or only by a person."""

    file: str
    problem: str
    mendable: bool = False


class Report(msgspec.Struct, frozen=True):
    """What was looked at, what is wrong, and what was mended before looking."""

    findings: tuple[Finding, ...]
    mended: tuple[str, ...] = ()
    facts: int = 0
    episodes: int = 0
    changes: int = 0


class _Look:
    """One pass over a memory; counts what it sees."""

    def __init__(self, directory: Path, limits: FactLimits, episode_limits: EpisodeLimits) -> None:
        self._directory = directory
        self._facts = FactStore(directory, limits)
        self._episodes = EpisodeStore(directory, episode_limits)
        self.facts = self.episodes = self.changes = 0

    def findings(self) -> Iterator[Finding]:
        """Yield everything that is wrong."""
        try:
            real = real_directory(self._directory)
        except StoreError as error:
            yield Finding(self._directory.name, str(error))
            return
        if not os.path.lexists(real):
            return
        if not real.is_dir():
            yield Finding(real.name, f"{real} is no directory")
            return
        for path in loose(self._directory, every_file=True):
            yield Finding(path.name, "can be read or written by others", mendable=True)
        if os.path.lexists(real / INTENT):
            problem = "an interrupted change waits to be completed"
            yield Finding(INTENT, problem if read_intent(self._directory) else "is damaged", mendable=True)
        for path in abandoned_temporaries(real):
            yield Finding(path.name, "is left over from an interrupted write", mendable=True)
        for target in TARGETS:
            yield from self._fact_findings(target)
        yield from self._episode_findings()
        yield from self._journal_findings()

    def _fact_findings(self, target: Target) -> Iterator[Finding]:
        name = f"{target}.md"
        try:
            facts = self._facts.read(target)
        except StoreError as error:
            yield Finding(name, str(error))
            return
        self.facts += len(facts.entries)
        if facts.used_bytes > facts.limit_bytes:
            problem = f"has {facts.used_bytes:,} bytes, more than its cap of {facts.limit_bytes:,}"
            yield Finding(name, f"{problem}; remove entries")
        try:
            read_bounded(self._directory, name, limit_bytes=1 << 30).decode()
        except UnicodeDecodeError as error:
            yield Finding(
                name, f"is no UTF-8 at byte {error.start:,}; that entry reads with replacement characters"
            )
        except FileNotFoundError:
            return
        seen: set[str] = set()
        for fact in facts.entries:
            if fact.rejection:
                yield Finding(name, f"entry {fact.index} is withheld from the model: {fact.rejection}")
            if fact.text in seen:
                yield Finding(name, f"entry {fact.index} is there twice; remove one")
            seen.add(fact.text)

    def _episode_findings(self) -> Iterator[Finding]:
        try:
            index = self._episodes.index()
            orphans = self._episodes.orphans()
        except StoreError as error:
            yield Finding(INDEX, str(error))
            return
        for problem in index.problems:
            yield Finding(INDEX, problem, mendable=not index.is_newer)
        self.episodes = len(index.entries)
        for session_id in orphans:
            if self._episodes.text_or_none(session_id):
                yield Finding(f"{session_id}.md", "is not listed in the index", mendable=True)
            else:
                yield Finding(f"{session_id}.md", "is not listed in the index and cannot be read")
        for entry in index.entries:
            yield from self._text_findings(entry.episode.session_id, entry.episode.content_hash)

    def _text_findings(self, session_id: str, content_hash: str) -> Iterator[Finding]:
        name = f"{session_id}.md"
        if not self._episodes.exists(name):
            yield Finding(INDEX, f"lists {session_id}, whose text is gone", mendable=True)
            return
        try:
            found = self._episodes.read(session_id)
        except StoreError as error:
            yield Finding(name, str(error))
            return
        if content_hash and digest(found.text) != content_hash:
            yield Finding(name, "was edited since it was stored", mendable=True)
        if found.rejection and found.episode.provenance.is_recallable:
            yield Finding(name, f"is withheld from the model: {found.rejection}")

    def _journal_findings(self) -> Iterator[Finding]:
        try:
            history = Journal(self._directory).read()
        except StoreError as error:
            yield Finding(JOURNAL, str(error))
            return
        self.changes = len(history.records)
        if history.damaged_lines:
            yield Finding(JOURNAL, f"{history.damaged_lines} lines cannot be read", mendable=True)


def check(directory: Path, limits: FactLimits, episode_limits: EpisodeLimits) -> Report:
    """Look at everything below ``directory``; nothing is changed."""
    look = _Look(directory, limits, episode_limits)
    findings = tuple(look.findings())
    return Report(findings, (), look.facts, look.episodes, look.changes)


def repair(directory: Path, limits: FactLimits, episode_limits: EpisodeLimits) -> Report:
    """Mend what can be mended, then look at everything.

    Raises:
        StoreError: something cannot be written; what was mended before stays so.
    """
    before = check(directory, limits, episode_limits)
    mended: list[str] = []
    if any(finding.mendable for finding in before.findings):
        committer = Committer(directory, notify=mended.append)
        mended += committer.recover() + tighten(directory, every_file=True)
        index_is_readable = not any(f.file == INDEX and not f.mendable for f in before.findings)
        if index_is_readable or before.episodes:
            mended += EpisodeStore(directory, episode_limits, notify=mended.append).repair()
        if any(finding.file == JOURNAL and finding.mendable for finding in before.findings):
            with committer.change():
                committer.journal.rewrite()
            mended.append(f"memory: unreadable lines of {JOURNAL} were removed")
    after = check(directory, limits, episode_limits)
    return msgspec.structs.replace(after, mended=tuple(mended))
