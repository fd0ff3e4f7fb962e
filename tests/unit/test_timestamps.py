"""Moments as text."""

from datetime import UTC, datetime, timedelta, timezone

from odek.timestamps import current_timestamp, moment_of, timestamp


def test_a_moment_is_told_in_utc_and_sorts_by_its_text() -> None:
    """Wherever it was, and whether or not it falls on a whole second."""
    there = timezone(timedelta(hours=5, minutes=30))
    moments = [
        datetime(2026, 12, 3, 10, 0, 0, tzinfo=there),
        datetime(2026, 12, 3, 4, 30, 0, 250_000, tzinfo=UTC),
        datetime(2026, 12, 3, 4, 30, 1, tzinfo=UTC),
    ]

    texts = [timestamp(moment, "microseconds") for moment in moments]

    assert timestamp(moments[0]) == "2026-12-03T04:30:00Z"
    assert texts == sorted(texts)
    assert [datetime.fromisoformat(text) for text in texts] == moments


def test_now_is_between_before_and_after() -> None:
    """The wall clock is what is told."""
    before = datetime.now(UTC)

    told = datetime.fromisoformat(current_timestamp())

    assert before <= told <= datetime.now(UTC)


def test_a_moment_without_a_zone_is_read_in_utc() -> None:
    """As others write them; what names no moment is none."""
    moment = datetime(2026, 12, 3, 4, 30, tzinfo=UTC)

    assert [moment_of(text) for text in ("2026-12-03T04:30:00", "2026-12-03T10:00:00+05:30", "", "soon")] == [
        moment,
        moment,
        None,
        None,
    ]
