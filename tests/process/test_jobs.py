"""Durable jobs, and processes that die while they do them."""

import subprocess
import sys
from pathlib import Path

import pytest

from odek.errors import StoreError
from odek.storage import jobs
from odek.storage.jobs import JobQueue

ROOT = Path(__file__).parents[2]

CLAIMER = """
import sys
from pathlib import Path
from odek.storage.jobs import JobQueue

claim = JobQueue(Path(sys.argv[1])).claim("count")
print(claim.job.key if claim else "nothing", flush=True)
sys.stdin.read()
"""

WORKER = """
import sys
from pathlib import Path
from odek.storage.jobs import JobQueue

queue = JobQueue(Path(sys.argv[1]))
sys.stdin.readline()  # all start together
while (claim := queue.claim("count")) is not None:
    with claim:
        print(claim.job.key, flush=True)
        queue.done(claim)
"""


def start(script: str, directory: Path) -> "subprocess.Popen[bytes]":
    """Start a process on the queue."""
    return subprocess.Popen(
        [sys.executable, "-c", script, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )


def test_a_job_is_put_once_and_done_once(tmp_path: Path) -> None:
    """The same work is one job, also when it is done; other work under its key is owed again."""
    queue = JobQueue(tmp_path)
    first = queue.put("count", "a", {"content": "1"})
    again = queue.put("count", "a", {"content": "1"})
    claim = queue.claim("count")
    assert claim is not None
    with claim:
        queue.done(claim)
    after = queue.put("count", "a", {"content": "1"})
    other = queue.put("count", "a", {"content": "2"})

    assert first == again
    assert (after.state, other.state) == ("done", "owed")
    assert len(queue.list()) == 1


def test_what_is_put_during_the_work_stays_owed(tmp_path: Path) -> None:
    """Finishing the old work does not count for the new one."""
    queue = JobQueue(tmp_path)
    queue.put("count", "a", {"content": "1"})
    claim = queue.claim("count")
    assert claim is not None
    with claim:
        queue.put("count", "a", {"content": "2"})
        queue.done(claim)

    assert [job.state for job in queue.list()] == ["owed"]


def test_three_failures_park_a_job(tmp_path: Path) -> None:
    """It keeps its reasons, is claimed no more, and a person can let it be tried again."""
    queue = JobQueue(tmp_path)
    queue.put("count", "a", {})
    for number in range(3):
        claim = queue.claim("count")
        assert claim is not None
        with claim:
            queue.fail(claim, f"reason\n{number}")

    (parked,) = queue.list()
    assert (parked.state, parked.failures) == ("parked", ("reason 0", "reason 1", "reason 2"))
    assert queue.claim("count") is None
    queue.retry(parked)
    assert [job.state for job in queue.list()] == ["owed"]


def test_a_dead_claimer_frees_its_job(tmp_path: Path) -> None:
    """While it lives nobody else has the job and its pid is known; killed, the job is there again."""
    queue = JobQueue(tmp_path)
    queue.put("count", "a", {})
    with start(CLAIMER, tmp_path) as other:
        assert other.stdout is not None
        said = other.stdout.readline()
        held = queue.claim("count")
        running = queue.list()[0].running
        other.kill()
        other.wait()
    taken_over = queue.claim("count")

    assert (said, held, running) == (b"a\n", None, other.pid)
    assert taken_over is not None
    taken_over.release()
    assert queue.list()[0].running is None


def test_many_workers_do_each_job_once(tmp_path: Path) -> None:
    """Whoever works, no job is done twice and none is left out."""
    queue = JobQueue(tmp_path)
    keys = {f"job {number}" for number in range(20)}
    for key in keys:
        queue.put("count", key, {})
    workers = [start(WORKER, tmp_path) for _ in range(3)]
    outputs = [worker.communicate(b"go\n", timeout=60)[0].decode().splitlines() for worker in workers]

    done = [key for output in outputs for key in output]
    assert sorted(done) == sorted(keys)
    assert {job.state for job in queue.list()} == {"done"}
    assert list(tmp_path.glob("count*.lock")) == []


def test_a_queue_is_bounded(tmp_path: Path) -> None:
    """Beyond the limit what is done goes first, then what is oldest."""
    queue = JobQueue(tmp_path)
    for number in range(jobs.MAX_JOBS):
        path = tmp_path / f"count-{number:032x}.json"
        done = "true" if number == 7 else "false"
        path.write_text(
            f'{{"kind":"count","key":"{number}","created_at":"2026-01-01T00:00:00.{number:06}Z","done":{done}}}'
        )
    queue.put("count", "new", {})
    queue.put("count", "newer", {})

    kept = {job.key for job in queue.list()}
    assert len(kept) == jobs.MAX_JOBS
    assert {"new", "newer"} <= kept
    assert not {"7", "0"} & kept


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"kind": 3}', b"\xff", b'{"kind":"count","key":"a","done"']
)
def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, data: bytes) -> None:
    """It is no job to anybody, and the same job put again takes its place."""
    queue = JobQueue(tmp_path)
    queue.put("count", "a", {})
    (path,) = tmp_path.glob("*.json")
    path.write_bytes(data)

    assert queue.damaged() == (path,)
    assert queue.claim("count") is None
    assert path.read_bytes() == data
    queue.put("count", "a", {})
    assert [job.state for job in queue.list()] == ["owed"]


def test_everything_is_private_and_a_kind_is_no_path(tmp_path: Path) -> None:
    """Files are for the owner alone, and a name cannot lead out of the directory."""
    queue = JobQueue(tmp_path / "jobs")
    queue.put("count", "../../../etc/passwd\0", {})

    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "jobs").rglob("*"))
    with pytest.raises(StoreError, match="no kind of job"):
        queue.put("../count", "a", {})
