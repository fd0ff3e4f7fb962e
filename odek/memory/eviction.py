"""Which episodes have to go. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from odek.memory.episode import Episode

__all__ = ["EpisodeLimits", "Eviction", "plan_eviction"]

EXPIRED_AT_ONCE_PERCENT = 10
"""A clock that jumps ahead makes everything old; so many may expire in one change. No measurement."""


class EpisodeLimits(msgspec.Struct, frozen=True):
    """How many episodes are kept, and for how many days; 0 is without limit."""

    max_episodes: int = 500
    ttl_days: int = 0


class Eviction(msgspec.Struct, frozen=True):
    """The ids of the episodes that go, oldest first; ``notice`` tells what was put off, or ""."""

    session_ids: tuple[str, ...] = ()
    notice: str = ""


def plan_eviction(
    episodes: Sequence[Episode], limits: EpisodeLimits, now: datetime, *, keep: str = ""
) -> Eviction:
    """Return what goes by age and then by number, oldest first; the episode ``keep`` never does."""
    oldest = sorted(episodes, key=lambda episode: episode.age_key)
    candidates = [episode for episode in oldest if episode.session_id != keep]
    expired: list[Episode] = []
    if limits.ttl_days:
        deadline = now - timedelta(days=limits.ttl_days)
        expired = [e for e in candidates if e.created is not None and e.created < deadline]
    at_once = max(1, len(episodes) * EXPIRED_AT_ONCE_PERCENT // 100)
    notice = ""
    if len(expired) > at_once:
        notice = (
            f"memory: {len(expired)} of {len(episodes)} episodes are older than {limits.ttl_days} days; "
            f"{at_once} were removed, the others follow with the next ones stored. Is the clock right?"
        )
    gone = {episode.session_id for episode in expired[:at_once]}
    over = len(episodes) - len(gone) - limits.max_episodes if limits.max_episodes else 0
    rest = [episode.session_id for episode in candidates if episode.session_id not in gone]
    gone.update(rest[: max(over, 0)])
    return Eviction(tuple(e.session_id for e in oldest if e.session_id in gone), notice)
