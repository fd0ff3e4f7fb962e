"""Reading episodes: without a lock, and never half of a change."""

import os
import stat
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from odek.errors import StoreError
from odek.memory.commit import FILE_LIMIT_BYTES, Intent, read_intent
from odek.memory.episode import (
    SUMMARY_LIMIT_BYTES,
    UNKNOWN_PROVENANCE,
    Episode,
    Index,
    Provenance,
    parse_index,
    preview,
)
from odek.memory.episode_state import list_word
from odek.memory.fact_file import canonical
from odek.memory.journal import digest
from odek.memory.places import (
    INDEX,
    INTENT,
    body_name,
    is_episode_id,
    locate,
    look,
    read_bounded,
    real_directory,
)
from odek.memory.watch import Stamp, list_stamps
from odek.storage.files import describe
from odek.text import clip_bytes
from odek.timestamps import timestamp

__all__ = ["EpisodeReader", "EpisodeText", "decode_body", "rejection"]

# A person may have written more into the file than is used of it.
_BODY_READ_BYTES = 1024 * 1024

# Earlier lists of which it is known what changed since: others store an episode, and index it, now and then.
_KEPT_LISTS = 8


class EpisodeText(msgspec.Struct, frozen=True):
    """An episode with its whole text.

    ``is_edited`` says that the text is no longer the one that was stored; ``rejection``
    why it must not reach a model, "" if it may.
    """

    episode: Episode
    text: str
    is_edited: bool = False
    rejection: str = ""


class _Listing(msgspec.Struct, frozen=True):
    """The list as it was read: its stamps before, its word ("" if it changed meanwhile), its episodes by id.

    ``since`` has, by the words of earlier lists, the ids of the episodes that are not as they were in these.
    """

    stamps: tuple[Stamp | None, Stamp | None]
    word: str
    index: Index
    by_id: dict[str, Episode]
    since: dict[str, frozenset[str]]


class EpisodeReader:
    """Reads the episodes below ``directory``. Every method may raise StoreError."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._cached: _Listing | None = None

    def read_index(self) -> tuple[Episode, ...]:
        """Return all episodes, newest first."""
        return self.index().newest_first()

    def index(self) -> Index:
        """Return the index as it is now, with what is wrong with it; without a change, from memory."""
        return self._look().index

    def listed(self, session_ids: Iterable[str]) -> tuple[Episode, ...]:
        """Return those of these episodes that the index lists."""
        by_id = self._look().by_id
        return tuple(by_id[session_id] for session_id in session_ids if session_id in by_id)

    def changed_since(self, word: str) -> frozenset[str] | None:
        """Return the ids of the episodes that the list has no more as when it had this ``list_word``.

        None when that is not known: it is of lists that were read here.
        """
        listing = self._look()
        return frozenset() if word and word == listing.word else listing.since.get(word)

    def listing(self) -> tuple[Episode, ...]:
        """Return all episodes, newest first, and with them the texts that the index does not list."""
        unlisted = [episode for name in self.orphans() if (episode := self.adopted(name)) is not None]
        episodes = [*self.read_index(), *unlisted]
        return tuple(sorted(episodes, key=lambda episode: episode.age_key, reverse=True))

    def read_text(self, session_id: str) -> str:
        """Return the whole text of an episode, whether it is trusted or not.

        Raises:
            StoreError: there is none, or it cannot be read.
        """
        return self.read(session_id).text

    def read(self, session_id: str) -> EpisodeText:
        """Return an episode with its text; the two belong together, whoever writes meanwhile.

        Raises:
            StoreError: there is none, or its text cannot be read.
        """
        name = body_name(session_id)
        while True:
            stamps = self._stamps()
            episode = self._look().by_id.get(session_id) or self.adopted(session_id)
            if episode is None:
                raise StoreError(f"memory: there is no episode {session_id}; see `odek memory list --all`")
            try:
                data = self.read_body(name)
            except FileNotFoundError:
                if self._stamps() == stamps:
                    raise _gone(session_id) from None
                continue
            text = decode_body(data)
            is_edited = bool(episode.content_hash) and episode.content_hash != digest(text)
            if not is_edited or self._stamps() == stamps:
                return EpisodeText(episode, text, is_edited, rejection(text))

    def find(self, start: str) -> Episode:
        """Return the one episode whose id begins with ``start``.

        Raises:
            StoreError: there is none, or there are several.
        """
        episodes = self.listing()
        found = [e for e in episodes if e.session_id == start] or [
            e for e in episodes if start and e.session_id.startswith(start)
        ]
        if len(found) == 1:
            return found[0]
        what = f"{len(found)} episodes begin" if found else "no episode begins"
        raise StoreError(f"memory: {what} with {start[:80]!a}; see `odek memory list --all`")

    def orphans(self) -> list[str]:
        """Return the ids of texts that the index does not list."""
        listed = {entry.episode.session_id for entry in self.index().entries}
        return sorted(self.text_ids() - listed)

    def read_afresh(self, before: Index | None = None) -> Index:
        """Return the index from disk; what is as it was ``before`` is not read again."""
        intent = self._intent()
        data = intent.data_of(INDEX) if intent is not None else None
        if data is None:
            try:
                data = read_bounded(self._directory, INDEX, limit_bytes=FILE_LIMIT_BYTES)
            except FileNotFoundError:
                data = b""
        return parse_index(data, before)

    def read_body(self, name: str) -> bytes:
        """Return the bytes of a text, those of a change under way if it writes them."""
        intent = self._intent()
        data = intent.data_of(name) if intent is not None else None
        return data if data is not None else read_bounded(self._directory, name, limit_bytes=_BODY_READ_BYTES)

    def stored_text(self, session_id: str) -> str:
        """Return the text that is in the file of an episode, whatever the index says.

        Raises:
            StoreError: there is none that can be read.
        """
        name = body_name(session_id)
        try:
            return decode_body(read_bounded(self._directory, name, limit_bytes=_BODY_READ_BYTES))
        except FileNotFoundError:
            raise _gone(session_id) from None

    def adopted(self, session_id: str) -> Episode | None:
        """Return what is known of a text that the index does not list: it is untrusted."""
        intent = self._intent()
        if intent is not None and intent.removes(body_name(session_id)):
            return None
        text = self.text_or_none(session_id)
        status = look(locate(self._directory, body_name(session_id)))
        if not text or status is None:
            return None
        written = datetime.fromtimestamp(status.st_mtime, UTC)
        return Episode(
            session_id=session_id,
            created_at=timestamp(written, "microseconds"),
            summary=preview(text),
            provenance=Provenance(untrusted=True, sources=(UNKNOWN_PROVENANCE,)),
            content_hash=digest(text),
        )

    def is_plain(self, session_id: str) -> bool:
        """Tell whether the text is in a regular file of its own, of a size that a text may have."""
        status = look(real_directory(self._directory) / body_name(session_id))
        return (
            status is not None
            and stat.S_ISREG(status.st_mode)
            and status.st_nlink == 1
            and status.st_size <= _BODY_READ_BYTES
        )

    def text_or_none(self, session_id: str) -> str | None:
        """Return the same, None when there is none that can be read."""
        try:
            return self.stored_text(session_id)
        except StoreError:
            return None

    def _intent(self) -> Intent | None:
        return read_intent(self._directory) if self.exists(INTENT) else None

    def exists(self, name: str) -> bool:
        """Tell whether there is a file, or anything, of this name."""
        return look(real_directory(self._directory) / name) is not None

    def text_ids(self) -> set[str]:
        """Return the ids of all texts; what editors leave beside them is none."""
        try:
            names = os.listdir(real_directory(self._directory))  # noqa: PTH208 - many names
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise StoreError(f"cannot read {self._directory}: {describe(error)}") from error
        ids = (name.removesuffix(".md") for name in names if name.endswith(".md"))
        return {session_id for session_id in ids if is_episode_id(session_id)}

    def _look(self) -> _Listing:
        """Return the list as it is; one value, since threads share the reader."""
        stamps, cached = self._stamps(), self._cached
        if cached is None or cached.stamps != stamps:
            index = self.read_afresh(cached.index if cached is not None else None)
            word = list_word(stamps) if self._stamps() == stamps else ""
            by_id = {entry.episode.session_id: entry.episode for entry in index.entries}
            since = _changes(cached, by_id) if cached is not None else {}
            cached = self._cached = _Listing(stamps, word, index, by_id, since)
        return cached

    def _stamps(self) -> tuple[Stamp | None, Stamp | None]:
        """Return what changes with every change of the list."""
        return list_stamps(real_directory(self._directory))


def _changes(before: _Listing, by_id: dict[str, Episode]) -> dict[str, frozenset[str]]:
    """Return the ``since`` of a list of episodes ``by_id``; who did not change is the same object."""
    known = before.by_id
    other = {session_id for session_id, episode in by_id.items() if known.get(session_id) is not episode}
    changed = frozenset(other.union(known.keys() - by_id.keys()))
    lists = [*before.since.items(), (before.word, frozenset[str]())][-_KEPT_LISTS:]
    return {word: ids | changed for word, ids in lists if word}


def _gone(session_id: str) -> StoreError:
    return StoreError(
        f"memory: the text of episode {session_id} is gone; `odek memory check --repair` unlists it"
    )


def rejection(text: str) -> str:
    """Return why ``text`` must not be remembered or recalled, or ""."""
    from odek.trust.scan import scan

    found = scan(text)
    return "" if found is None else str(found)


def decode_body(data: bytes) -> str:
    """Return the text of a file as far as it is used."""
    return clip_bytes(canonical(data.decode("utf-8", "replace")), SUMMARY_LIMIT_BYTES)
