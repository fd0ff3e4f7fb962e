"""What an episode was when it was indexed, in a word that comes back with every hit. Pure.

It has the stamp of the text's file, and what the list says of the episode that decides whether it
may be recalled. So whoever knows that the list is still that one reads the text alone.
"""

import msgspec

from odek.memory.episode import Episode, Provenance
from odek.memory.watch import Stamp

__all__ = ["EpisodeState", "list_word", "parse_state", "stamp_word", "state_of"]

_APPROVED = {"t": "itself", "p": "a person", "c": "the configuration", "u": ""}


class EpisodeState(msgspec.Struct, frozen=True):
    """An episode as it was: what changed with its file, who lets it be recalled ("" for nobody), its date."""

    file: str
    approved_by: str
    created_at: str

    @property
    def is_untrusted(self) -> bool:
        """Whether a model is told that it is from a foreign source."""
        return self.approved_by not in {"itself", "a person"}


def state_of(episode: Episode, file: str) -> str:
    """Return what changes with the text of an episode and with what is known of its origin.

    ``file`` is the ``stamp_word`` of its text, "" if there is none.
    """
    return f"{file}.{_letter(episode.provenance)}.{episode.created_at}"


def stamp_word(stamp: Stamp | None) -> str:
    """Return what changes with a file, "" for none."""
    if stamp is None:
        return ""
    inode, size_bytes, _, changed_ns = stamp
    return f"{inode:x}-{size_bytes:x}-{changed_ns:x}"


def list_word(listed: tuple[Stamp | None, Stamp | None]) -> str:
    """Return what changes with the list of the episodes, from its ``list_stamps``; "" during a change."""
    stamp, change = listed
    return stamp_word(stamp) if change is None else ""


def parse_state(state: str) -> EpisodeState | None:
    """Return what ``state_of`` has put into a word, None if it did not."""
    file, _, rest = state.partition(".")
    letter, _, created_at = rest.partition(".")
    approved_by = _APPROVED.get(letter)
    return None if approved_by is None else EpisodeState(file, approved_by, created_at)


def _letter(provenance: Provenance) -> str:
    if not provenance.untrusted:
        return "t"
    if provenance.user_approved:
        return "p"
    return "c" if provenance.auto_approved else "u"
