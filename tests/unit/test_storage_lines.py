"""Files of lines, and what a disk that takes nothing leaves of them."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odek.errors import StoreError
from odek.memory.why import WhyLog, WhyRecord
from odek.storage.lines import append_lines


@contextmanager
def full_disk(size_bytes: int = 0) -> Iterator[None]:
    """Let no file grow beyond ``size_bytes`` for a block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_cannot_be_appended_leaves_nothing_of_its_own(tmp_path: Path) -> None:
    """A new file is not there afterwards, and one that was there is as it was."""
    path = tmp_path / "lines"
    with full_disk(), pytest.raises(StoreError, match=f"cannot write {path}: the file would be larger"):
        append_lines(path, b"first\n")
    assert not path.exists()

    assert append_lines(path, b"first\n") == 6
    with full_disk(10), pytest.raises(StoreError, match="the file would be larger"):
        append_lines(path, b"second\n")
    assert path.read_bytes() == b"first\n"


def test_a_line_that_others_may_follow_is_ended_by_the_next(tmp_path: Path) -> None:
    """Where several append, nothing is taken back: half a line stays alone."""
    path = tmp_path / "lines"
    with full_disk(3), pytest.raises(StoreError):
        append_lines(path, b"first\n", alone=False)
    append_lines(path, b"second\n", alone=False)

    assert path.read_bytes() == b"fir\nsecond\n"


def test_an_empty_record_of_why_hides_no_other(tmp_path: Path) -> None:
    """A session whose record a full disk left empty is none that could be asked about."""
    log = WhyLog(tmp_path)
    record = WhyRecord(time="2026-01-01T00:00:00Z", turn=1, query="what?")
    log.append("s-1", record)
    with full_disk(), pytest.raises(StoreError):
        log.append("s-2", record)

    assert log.sessions() == ("s-1",)

    log.append("s-2", record)
    assert log.sessions() == ("s-2", "s-1")
