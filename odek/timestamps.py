"""Moments as text: RFC 3339 in UTC with a ``Z``, so that texts in one precision sort as the moments do."""

from datetime import UTC, datetime
from typing import Literal

__all__ = ["current_timestamp", "moment_of", "timestamp"]


def timestamp(moment: datetime, precision: Literal["seconds", "microseconds"] = "seconds") -> str:
    """Return ``moment``, which knows its time zone, such as ``2026-12-03T05:06:00Z``."""
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def moment_of(text: str) -> datetime | None:
    """Return the moment that ``text`` names, in UTC unless it says otherwise; None if it names none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def current_timestamp(precision: Literal["seconds", "microseconds"] = "microseconds") -> str:
    """Return the time of the wall clock now."""
    return timestamp(datetime.now(UTC), precision)
