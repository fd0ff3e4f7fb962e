"""When a failed request goes out again."""

import time
from email.utils import formatdate

import pytest

from odek.llm.retry import backoff_seconds, retry_after_seconds, until

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
