"""The record of a session on disk."""

import os
import stat
from multiprocessing import get_context
from pathlib import Path

import pytest

from odek.errors import StoreError
from odek.trust.audit import AuditTrail, Decision, Ingest, digest_of


def ingest(number: int, agent: str = "") -> Ingest:
    """Return a record that can be told from others."""
    return Ingest(
        time="2026-12-02T09:00:00Z",
        turn=number,
        source=f"http_get: https://docs.example/{number}",
        sha256="0" * 16,
        size_bytes=number,
        agent=agent,
    )


def test_records_come_back_in_order(tmp_path: Path) -> None:
    """What was added by several writes is read as it was, of any kind."""
    trail = AuditTrail(tmp_path / "audit" / "s.jsonl")
    decision = Decision(
        time="t", turn=1, call_id="c", tool="shell", summary="ls", risk="safe", allowed=False, by="policy"
    )
    trail.append([ingest(1), decision])
    trail.append([ingest(2)])

    assert trail.read().records == (ingest(1), decision, ingest(2))


def test_a_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    """The record and its directory are for the owner alone."""
    before = os.umask(0o000)
    try:
        AuditTrail(tmp_path / "audit" / "s.jsonl").append([ingest(1)])
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "audit" / "s.jsonl").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "audit").stat().st_mode) == 0o700


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_torn_tail_costs_one_record(tmp_path: Path, cut: int) -> None:
    """A line that a crash left unfinished is counted, and the next record stands on its own line."""
    trail = AuditTrail(tmp_path / "s.jsonl")
    trail.append([ingest(1), ingest(2)])
    data = trail.path.read_bytes()
    trail.path.write_bytes(data[:-cut])
    torn = trail.read()
    trail.append([ingest(3)])

    log = trail.read()
    assert torn.records == ((ingest(1), ingest(2)) if cut == 1 else (ingest(1),))
    assert log.records == (*torn.records, ingest(3))
    assert log.damaged_lines == (0 if cut == 1 else 1)


def test_a_link_in_the_place_of_the_record_is_refused(tmp_path: Path) -> None:
    """Nothing is appended to another file by way of a link."""
    other = tmp_path / "other"
    other.write_text("mine\n")
    (tmp_path / "s.jsonl").symlink_to(other)

    with pytest.raises(StoreError, match="symbolic link"):
        AuditTrail(tmp_path / "s.jsonl").append([ingest(1)])
    assert other.read_text() == "mine\n"


def add_many(path: Path, agent: str) -> None:
    """Add records one by one, as a subagent beside others."""
    for number in range(50):
        AuditTrail(path).append([ingest(number, agent)])


def test_processes_add_to_one_record_without_loss(tmp_path: Path) -> None:
    """A session and its subagents write side by side: each line whole, each writer's lines in order."""
    path = tmp_path / "s.jsonl"
    context = get_context("spawn")
    writers = [context.Process(target=add_many, args=(path, f"task {number}")) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)

    log = AuditTrail(path).read()
    assert log.damaged_lines == 0
    for number in range(3):
        own = [
            record.turn
            for record in log.records
            if isinstance(record, Ingest) and record.agent == f"task {number}"
        ]
        assert own == list(range(50))


def test_removing_it_leaves_nothing(tmp_path: Path) -> None:
    """The record goes with its session; a session without one is no error."""
    trail = AuditTrail(tmp_path / "audit" / "s.jsonl")

    assert not trail.remove()
    trail.append([ingest(1)])
    assert trail.remove()
    assert trail.read().records == ()


def test_a_digest_is_of_the_bytes() -> None:
    """Sixteen hexadecimal digits of SHA-256 over UTF-8, and the size in bytes."""
    assert digest_of("café") == ("850f7dc43910ff89", 5)
