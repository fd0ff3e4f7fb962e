"""What lies in a directory, and what cannot be seen of it."""

from pathlib import Path

import pytest

from odek.errors import StoreError
from odek.memory.why import WhyLog
from odek.storage.jobs import JobQueue
from odek.storage.listing import files_in
from tests.support.permissions import locked


def test_files_are_listed_by_name(tmp_path: Path) -> None:
    """Those with the ending alone; where there is no directory there are none."""
    for name in ("b.json", "a.json", "c.lock", ".json"):
        (tmp_path / name).touch()

    assert files_in(tmp_path, ".json") == [tmp_path / ".json", tmp_path / "a.json", tmp_path / "b.json"]
    assert files_in(tmp_path / "none", ".json") == []
    assert files_in(tmp_path / "a.json", ".json") == []


def test_a_directory_that_is_closed_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    """Jobs that nobody can see are not said to be none, nor are records of what was given."""
    for name in ("jobs", "why"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o755)
        with locked(tmp_path / name), pytest.raises(StoreError, match=f"cannot read {tmp_path / name}: "):
            JobQueue(tmp_path / "jobs").list()
            WhyLog(tmp_path).sessions()
