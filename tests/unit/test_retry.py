"""When a failed request goes out again."""

import time
from email.utils import formatdate

import pytest

from odek.llm.retry import backoff_seconds, hinted_seconds, retry_after_seconds, until

NOW = 1_790_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "5"}, 5),
        ({"retry-after": "0"}, 0),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({"retry-after": formatdate(NOW + 30, usegmt=True)}, 30),
        ({"retry-after": formatdate(NOW - 30, usegmt=True)}, 0),
        ({"retry-after": "1000000000"}, 1_000_000_000),
        ({"retry-after": "Thu, 01 Jan 9999 00:00:00 GMT"}, pytest.approx(251_580_556_800, rel=0.01)),
    ],
)
def test_both_forms_of_retry_after(headers: dict[str, str], seconds: float) -> None:
    """Seconds, milliseconds and HTTP dates; a past date is now."""
    assert retry_after_seconds(headers, NOW) == seconds


@pytest.mark.parametrize(
    "value", ["", "soon", "-5", "inf", "nan", "1e9", "0x10", "9" * 400, "٣", "Thu, 99 Foo 2026 00:00:00 GMT"]
)
def test_what_cannot_be_read_asks_for_nothing(value: str) -> None:
    """Garbage is passed over."""
    assert retry_after_seconds({"retry-after": value}, NOW) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Rate limit reached for m. Please try again in 20s. Visit", 20),
        ("Please try again in 6ms.", 0.006),
        ("Please try again in 1m12.5s.", 72.5),
        ("Please try again in 7m12.48s. Need more tokens?", 432.48),
        ("Please retry after 26 seconds.", 26),
        ("Please retry in 38.199843s.", 38.199843),
        ('{"@type": "google.rpc.RetryInfo", "retryDelay": "38s"}', 38),
        ("try again in 2 minutes", 120),
        ("try again in 1 hour", 3600),
        ("Please try again later", None),
        ("retry in a moment, 20s at most", None),
        ("limit 20s, retry", None),
        ("try again in 3 models", None),
        ("", None),
    ],
)
def test_the_wait_that_the_words_of_an_error_ask_for(text: str, seconds: float | None) -> None:
    """Providers put it in the message where others have a header."""
    assert hinted_seconds(text) == (None if seconds is None else pytest.approx(seconds))


def test_backoff_doubles_up_to_a_bound() -> None:
    """Each wait is twice the one before, in its upper half, and never beyond the bound."""
    assert [backoff_seconds(attempt, 1.0) for attempt in (1, 2, 3, 4)] == [0.5, 1, 2, 4]
    assert backoff_seconds(2, 0.0) == 0.5
    assert backoff_seconds(1000, 1.0) == backoff_seconds(10, 1.0) == 16


def test_the_time_to_come_back_is_told() -> None:
    """Within the half day as a time, later with its date, and no figure breaks it."""
    assert until(3600, NOW) == time.strftime("%H:%M:%S", time.localtime(NOW + 3600))
    assert until(86_400, NOW) == time.strftime("%Y-%m-%d %H:%M", time.localtime(NOW + 86_400))
    assert until(1e30, NOW) == "much later"
