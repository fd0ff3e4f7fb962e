"""When to send a failed request again: pure decisions on numbers and headers."""

import math
import re
import time
from collections.abc import Mapping

from odek.patterns import late_pattern

__all__ = ["LONGEST_WAIT_SECONDS", "backoff_seconds", "hinted_seconds", "retry_after_seconds", "until"]

LONGEST_WAIT_SECONDS = 60.0
"""A person waits a minute for a busy provider; beyond it they are told when to come back."""

# 0.5 + 1 + 2 + 4 s ride out a restart or a burst. No measurement behind either.
_FIRST_WAIT_SECONDS = 0.5
_LONGEST_BACKOFF_SECONDS = 16.0

_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "hour": 3600.0}
_ONE_SPAN = r"(\d{1,6}(?:\.\d{1,9})?) ?(ms|min|m|sec|s|hour|h)(?:ute|ond)?s?(?![a-z])"
_SPAN = late_pattern(_ONE_SPAN, re.IGNORECASE)
_HINT = late_pattern(
    rf"""(?:try again|retry)(?:[ _](?:in|after)|delay)[ "':]*(?P<span>(?:{_ONE_SPAN}[ ,]*)+)""", re.IGNORECASE
)


def backoff_seconds(attempt: int, jitter: float) -> float:
    """Return the wait before try ``attempt`` + 1, counted from 1.

    ``jitter`` in 0…1 picks a point in the upper half of the step, so that many processes
    that failed together do not return together.
    """
    step = min(_FIRST_WAIT_SECONDS * 2.0 ** min(attempt - 1, 20), _LONGEST_BACKOFF_SECONDS)
    return step * (0.5 + 0.5 * jitter)


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """Return the wait that the provider asks for, or None when it asks for none that can be read.

    Reads ``retry-after-ms``, and ``Retry-After`` as seconds or as an HTTP date against
    ``now``, seconds since the epoch. A date that has passed is 0.
    """
    if (milliseconds := _number(headers.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    if (seconds := _number(value)) is not None:
        return seconds
    if not value:
        return None
    from email.utils import parsedate_to_datetime

    try:
        return max(parsedate_to_datetime(value).timestamp() - now, 0.0)
    except (ValueError, OverflowError, OSError):
        return None


def hinted_seconds(text: str) -> float | None:
    """Return the wait that the words of an error ask for, such as ``try again in 1m2.5s``, or None."""
    hint = _HINT.search(text)
    if hint is None:
        return None
    return sum(float(number) * _UNITS[unit.lower()] for number, unit in _SPAN.findall(hint["span"]))


def until(seconds: float, now: float) -> str:
    """Return the local time ``seconds`` from ``now``, for a person."""
    try:
        at = time.localtime(now + seconds)
    except (ValueError, OverflowError, OSError):
        return "much later"
    return time.strftime("%H:%M:%S" if seconds < 12 * 3600 else "%Y-%m-%d %H:%M", at)


def _number(text: str) -> float | None:
    if not re.fullmatch(r"\s*\d+(\.\d*)?\s*", text, re.ASCII):
        return None
    value = float(text)
    return value if math.isfinite(value) else None
