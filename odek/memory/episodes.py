"""The episodes: a summary of each session in a file of its own, and an index that lists them.

Blocking; callers that must not wait use ``service``. Readers take no lock and see every
change as a whole: an interrupted one counts as made from the moment it was decided.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from odek.errors import MemoryRefusedError, StoreCorruptError, StoreError, TargetChangedError
from odek.memory.commit import FILE_LIMIT_BYTES, Committer, Transaction
from odek.memory.episode import (
    SUMMARY_LIMIT_BYTES,
    Entry,
    Episode,
    Provenance,
    encode_index,
    preview,
)
from odek.memory.episode_reader import EpisodeReader, EpisodeText, decode_body, rejection
from odek.memory.eviction import EpisodeLimits, plan_eviction
from odek.memory.fact_file import canonical
from odek.memory.journal import Origin, Record, digest, make_record
from odek.memory.places import INDEX, body_name, read_bounded
from odek.timestamps import current_timestamp

__all__ = [
    "SUMMARY_LIMIT_BYTES",
    "Episode",
    "EpisodeLimits",
    "EpisodeStore",
    "EpisodeText",
    "Provenance",
    "Similar",
    "Stored",
    "rejection",
]


class Similar(msgspec.Struct, frozen=True):
    """An episode that says nearly the same as a new one; it counts while its text is the one compared."""

    session_id: str
    similarity: float
    content_hash: str


class Stored(msgspec.Struct, frozen=True):
    """What came of storing an episode.

    ``dropped`` means that a more trusted one says the same or is the session's, and stays;
    ``replaced`` is the near-duplicate that went; ``evicted`` those beyond age and number.
    """

    outcome: Literal["stored", "unchanged", "dropped"]
    episode: Episode
    replaced: str = ""
    similarity: float | None = None
    evicted: tuple[str, ...] = ()


class EpisodeStore(EpisodeReader):
    """Reads and changes the episodes below ``directory``, which is made when one is stored.

    ``poll`` is called while waiting for the lock and may raise to give up. ``notify`` gets
    a line for whatever was repaired on the way. Every method may raise StoreError: a file
    cannot be read or written.
    """

    def __init__(
        self,
        directory: Path,
        limits: EpisodeLimits | None = None,
        *,
        poll: Callable[[], None] | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(directory)
        self._limits = limits or EpisodeLimits()
        self._notify = notify or _ignore
        self._committer = Committer(directory, poll=poll, notify=notify)

    def recover(self) -> list[str]:
        """Finish what a crash interrupted, in the whole memory; say what was done, a line each."""
        return self._committer.recover()

    def write(
        self,
        session_id: str,
        text: str,
        *,
        turns: int,
        provenance: Provenance,
        created_at: str = "",
        similar: Similar | None = None,
        origin: Origin | None = None,
    ) -> Stored:
        """Store the summary of a session, durably, in the place of one that the session has.

        ``similar`` is a near-duplicate, which the new one replaces. Neither it nor an earlier
        summary of the session is ever replaced by one that is trusted less.

        Raises:
            MemoryRefusedError: the text is empty, too long, or fails the scan.
        """
        name, body = body_name(session_id), self._check(text)
        with self._committer.change() as transaction:
            entries = self._load(transaction)
            old = entries.get(session_id)
            episode = Episode(
                session_id=session_id,
                turns=turns,
                created_at=created_at or (old.episode.created_at if old else "") or current_timestamp(),
                summary=preview(body),
                provenance=provenance,
                content_hash=digest(body),
                updated_at=current_timestamp(),
            )
            if old is not None and _says_the_same(old.episode, episode):
                return Stored("unchanged", old.episode)
            if old is not None and old.episode.provenance.rank > provenance.rank:
                return Stored("dropped", episode)
            if similar is not None and not _is_twin(entries.get(similar.session_id), similar, session_id):
                similar = None
            if similar is not None and entries[similar.session_id].episode.provenance.rank > provenance.rank:
                return Stored("dropped", episode, similarity=similar.similarity)
            before = self.stored_text(session_id) if old is not None else ""
            entries.pop(session_id, None)
            entries[session_id] = Entry.of(episode, old)
            self._note(transaction, "store", origin, old, episode, before, body)
            transaction.put(name, body.encode())
            twins = (similar.session_id,) if similar is not None else ()
            replaced = self._make_room(transaction, entries, twins, "dedup", origin)
            eviction = plan_eviction(
                [entry.episode for entry in entries.values()],
                self._limits,
                datetime.now(UTC),
                keep=session_id,
            )
            evicted = self._make_room(transaction, entries, eviction.session_ids, "evict", origin)
            transaction.put(INDEX, encode_index(entries.values()))
        if eviction.notice:
            self._notify(eviction.notice)
        if similar is None or not replaced:
            return Stored("stored", episode, evicted=evicted)
        return Stored("stored", episode, replaced[0], similar.similarity, evicted)

    def promote(
        self, session_id: str, *, expected_text: str | None = None, origin: Origin | None = None
    ) -> Episode:
        """Approve an episode in the name of a person: from now on it may be recalled.

        Raises:
            MemoryRefusedError: its text fails the scan.
            TargetChangedError: its text is not ``expected_text``, which the person saw.
        """
        with self._committer.change() as transaction:
            entries = self._load(transaction)
            found = self._there(entries, session_id)
            text = decode_body(self.read_body(body_name(session_id)))
            if expected_text is not None and text != expected_text:
                raise TargetChangedError(f"memory: episode {session_id} changed meanwhile; look at it again")
            if reason := rejection(text):
                raise MemoryRefusedError(f"memory: episode {session_id} is not promoted: {reason}")
            episode = msgspec.structs.replace(
                found.episode,
                summary=preview(text),
                content_hash=digest(text),
                provenance=msgspec.structs.replace(found.episode.provenance, user_approved=True),
            )
            if episode != found.episode:
                entries[session_id] = Entry.of(episode, found)
                self._note(transaction, "promote", origin, found, episode, text, text)
                transaction.put(INDEX, encode_index(entries.values()))
            return episode

    def reject(self, session_id: str, *, origin: Origin | None = None) -> Episode:
        """Remove an episode and its text."""
        with self._committer.change() as transaction:
            entries = self._load(transaction)
            episode = self._there(entries, session_id).episode
            self._drop(transaction, entries, session_id, "reject", origin, self.stored_text(session_id))
            transaction.put(INDEX, encode_index(entries.values()))
            return episode

    def put_back(self, record: Record, *, origin: Origin | None = None) -> Episode | None:
        """Undo ``record``: give the episode the state that it had before, None for none.

        Raises:
            MemoryRefusedError: the text before is not known in full.
            TargetChangedError: the episode is no longer as the record left it.
        """
        before, session_id = record.episode_before, record.target
        if before is not None and digest(record.before) != record.hash_before:
            raise MemoryRefusedError(f"memory: the text of {session_id} held a credential and is not kept")
        with self._committer.change() as transaction:
            entries = self._load(transaction)
            found = entries.get(session_id)
            text = self.stored_text(session_id) if found else ""
            state = (found.episode if found else None, digest(text) if text else "")
            if state != (record.episode_after, record.hash_after):
                raise TargetChangedError(f"memory: episode {session_id} changed since; nothing was done")
            if before is None:
                self._drop(transaction, entries, session_id, "reject", origin, text, undoes=record.id)
            else:
                entries[session_id] = Entry.of(before, found)
                transaction.put(body_name(session_id), record.before.encode())
                self._note(transaction, "restore", origin, found, before, text, record.before, record.id)
            transaction.put(INDEX, encode_index(entries.values()))
            return before

    def repair(self) -> list[str]:
        """Make index and texts agree, and say what was done, a line each."""
        said: list[str] = []
        with self._committer.change() as transaction:
            entries = self._load(transaction, said.append)
            for session_id, entry in entries.items():
                text = self.text_or_none(session_id)
                if text is not None and digest(text) != entry.episode.content_hash:
                    changed = {"content_hash": digest(text), "summary": preview(text)}
                    entries[session_id] = Entry.of(msgspec.structs.replace(entry.episode, **changed), entry)
                    if entry.episode.content_hash:
                        said.append(f"memory: the text of {session_id} was edited; the index now says so")
            if entries or self.exists(INDEX):
                transaction.put(INDEX, encode_index(entries.values()))
        return said

    def _load(
        self, transaction: Transaction, notify: Callable[[str], None] | None = None
    ) -> dict[str, Entry]:
        """Return the entries to change, mended as far as that goes.

        A text without an entry comes back as untrusted, an entry without a text goes, and
        an index that was damaged is kept beside the new one.
        """
        say = notify or self._notify
        index = self.read_afresh()
        if index.is_newer:
            raise StoreCorruptError(
                f"{self._directory / INDEX} was written by a later version; nothing is changed"
            )
        if index.lossy:
            data = read_bounded(self._directory, INDEX, limit_bytes=FILE_LIMIT_BYTES)
            copy = f"{INDEX}.{digest(data)[:8]}.damaged"
            transaction.put(copy, data)
            for problem in index.problems:
                say(f"memory: {problem}; the file is kept as {copy}")
        entries = {entry.episode.session_id: entry for entry in index.entries}
        bodies = self.text_ids()
        for session_id in sorted(entries.keys() - bodies):
            del entries[session_id]
            say(f"memory: the text of episode {session_id} is gone; it is no longer listed")
        for session_id in sorted(bodies - entries.keys()):
            episode = self.adopted(session_id)
            if episode is not None:
                entries[session_id] = Entry.of(episode)
                say(f"memory: episode {session_id} was not listed; it is now, as untrusted")
        return entries

    def _make_room(
        self,
        transaction: Transaction,
        entries: dict[str, Entry],
        session_ids: Iterable[str],
        action: str,
        origin: Origin | None,
    ) -> tuple[str, ...]:
        """Drop episodes and return which; what is no file of ours is not removed."""
        gone: list[str] = []
        for session_id in session_ids:
            if not self.is_plain(session_id):
                self._notify(f"memory: episode {session_id} stays: {session_id}.md is no plain file")
                continue
            self._drop(transaction, entries, session_id, action, origin, self.stored_text(session_id))
            gone.append(session_id)
        return tuple(gone)

    def _drop(
        self,
        transaction: Transaction,
        entries: dict[str, Entry],
        session_id: str,
        action: str,
        origin: Origin | None,
        text: str,
        *,
        undoes: str = "",
    ) -> None:
        old = entries.pop(session_id)
        self._note(transaction, action, origin, old, None, text, "", undoes)
        transaction.delete(body_name(session_id))

    def _note(
        self,
        transaction: Transaction,
        action: str,
        origin: Origin | None,
        old: Entry | None,
        new: Episode | None,
        before: str,
        after: str,
        undoes: str = "",
    ) -> None:
        target = new.session_id if new is not None else (old.episode.session_id if old is not None else "")
        episodes = (old.episode if old is not None else None, new)
        made = make_record(
            action, target, origin or Origin(), before=before, after=after, episodes=episodes, undoes=undoes
        )
        transaction.records.append(made)

    def _there(self, entries: dict[str, Entry], session_id: str) -> Entry:
        body_name(session_id)  # refuses what can be no id
        if session_id not in entries:
            raise StoreError(f"memory: there is no episode {session_id}; see `odek memory list --all`")
        return entries[session_id]

    def _check(self, text: str) -> str:
        body = canonical(text)
        if not body:
            raise MemoryRefusedError("memory: the summary is empty")
        size = len(body.encode("utf-8", "surrogatepass"))
        if size > SUMMARY_LIMIT_BYTES:
            raise MemoryRefusedError(
                f"memory: the summary has {size:,} bytes; at most {SUMMARY_LIMIT_BYTES:,} are stored"
            )
        if reason := rejection(body):
            raise MemoryRefusedError(f"memory: the summary is not stored: {reason}")
        return body


def _is_twin(entry: Entry | None, similar: Similar, session_id: str) -> bool:
    """Tell whether the near-duplicate is another episode, and still the one that was compared."""
    return (
        entry is not None
        and similar.session_id != session_id
        and entry.episode.content_hash == similar.content_hash
    )


def _says_the_same(old: Episode, new: Episode) -> bool:
    return (old.content_hash, old.turns, old.provenance) == (new.content_hash, new.turns, new.provenance)


def _ignore(line: str) -> None:
    pass
