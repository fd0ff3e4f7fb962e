"""Durable jobs: work that is written down before it begins, and done by whoever lives to do it.

A job is a small file. It is claimed by a lock, which the kernel frees when the claimer
dies; it is done once; after three failures it is parked for a person to see. What a done
job was about stays written down, so that asking for the same again changes nothing.
Everything here blocks.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

from odek.errors import StoreBusyError, StoreError
from odek.storage.files import ensure_directory, read_file, remove_file, replace_file, sweep_temporaries
from odek.storage.listing import files_in
from odek.storage.locks import HeldLock, exclusive, hold
from odek.timestamps import current_timestamp

__all__ = ["FAILURES_UNTIL_PARKED", "Claim", "Job", "JobQueue", "State"]

State = Literal["owed", "parked", "done"]

FAILURES_UNTIL_PARKED = 3
"""A cause that passes is gone by the third process; one that stays would cost money at every start."""

LOCK_TIMEOUT_SECONDS = 10.0
"""The queue's lock is held for one small write; whoever holds it this long is stuck."""

MAX_JOBS = 500
"""Files of each queue. No measurement behind this; as many episodes are kept by default."""

# A job is some names and at most three reasons.
_READ_LIMIT_BYTES = 64 * 1024
_REASON_LIMIT_CHARACTERS = 300


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work. ``kind`` and ``key`` name it, ``payload`` says what it is about.

    ``created_at`` is RFC 3339. ``failures`` holds the reason of each failure, oldest first.
    ``running`` is the pid of the process that has claimed it, as far as that is known: None
    for nobody, 0 for a process without a name. It is found out, never stored.
    """

    kind: str
    key: str
    payload: dict[str, str] = {}
    created_at: str = ""
    failures: tuple[str, ...] = ()
    done: bool = False
    running: int | None = None

    @property
    def state(self) -> State:
        """Whether it is still to be done, was given up, or is done."""
        if self.done:
            return "done"
        return "parked" if len(self.failures) >= FAILURES_UNTIL_PARKED else "owed"


class Claim:
    """A job that this process, and no other, works on until it leaves the block."""

    def __init__(self, job: Job, lock: HeldLock) -> None:
        self.job = job
        self._lock = lock

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Let others have the job; never waits, and once is enough."""
        self._lock.release(remove=True)


class JobQueue:
    """The jobs below ``directory``, which is made with the first one.

    ``poll`` is called while waiting for the queue's lock and may raise to give up. Every
    method may raise StoreError: the directory or a file cannot be read or written.
    """

    def __init__(self, directory: Path, *, poll: Callable[[], None] | None = None) -> None:
        self._directory = directory
        self._poll = poll

    def put(self, kind: str, key: str, payload: dict[str, str]) -> Job:
        """Write a job down, and return it once it is durable.

        The same work is one job, however often it is put and whatever has become of it. A
        job of this kind and key with another payload is replaced, its failures forgotten.
        """
        path = self._path(kind, key)
        wanted = Job(kind=kind, key=key, payload=payload, created_at=current_timestamp())
        if (there := _read(path)) is not None and there.payload == payload:
            return there
        with self._exclusive():
            if (there := _read(path)) is not None and there.payload == payload:
                return there
            self._make_room(path)
            _write(path, wanted)
        return wanted

    def claim(self, kind: str, *, skip: Collection[str] = (), key: str | None = None) -> Claim | None:
        """Return the oldest job of ``kind`` that is owed and nobody works on, or None.

        Args:
            kind: The kind of job.
            skip: Keys of jobs to leave alone.
            key: The only one to take.
        """
        for job in self._owed(kind):
            if job.key in skip or key not in {None, job.key}:
                continue
            path = self._path(kind, job.key)
            try:
                lock = hold(_lock_path(path), timeout_seconds=0)
            except StoreBusyError:
                continue
            # Looked at again under the lock: whoever had it may have done the job in between.
            current = _read(path)
            if current is not None and current.state == "owed":
                return Claim(current, lock)
            lock.release(remove=True)
        return None

    def done(self, claim: Claim) -> None:
        """Record that the work is done; put again with another payload meanwhile, it stays owed."""
        self._finish(claim, msgspec.structs.replace(claim.job, done=True))

    def fail(self, claim: Claim, reason: str) -> Job:
        """Record a failure and return the job with it; the third one parks it."""
        failures = (*claim.job.failures, " ".join(reason.split())[:_REASON_LIMIT_CHARACTERS])
        failed = msgspec.structs.replace(claim.job, failures=failures)
        self._finish(claim, failed)
        return failed

    def retry(self, job: Job) -> None:
        """Forget the failures of a job that was parked."""
        path = self._path(job.kind, job.key)
        with self._exclusive():
            current = _read(path)
            if current is not None and current.state == "parked":
                _write(path, msgspec.structs.replace(current, failures=()))

    def list(self, kind: str = "") -> tuple[Job, ...]:
        """Return the jobs of ``kind``, or all, oldest first, each with who works on it.

        Takes no lock that anybody waits for, and leaves out files that are no job.
        """
        return tuple(
            msgspec.structs.replace(job, running=_holder(path) if job.state == "owed" else None)
            for path, job in self._jobs()
            if kind in {"", job.kind}
        )

    def damaged(self) -> tuple[Path, ...]:
        """Return the files in the queue that cannot be read as jobs."""
        return tuple(path for path in self._files() if _read(path) is None and path.exists())

    def _finish(self, claim: Claim, after: Job) -> None:
        path = self._path(claim.job.kind, claim.job.key)
        with self._exclusive():
            current = _read(path)
            if current is None or current.payload != claim.job.payload:
                return  # it made room for another, or there is other work under its name by now
            _write(path, after)

    def _owed(self, kind: str) -> Iterator[Job]:
        return (job for _, job in self._jobs() if job.kind == kind and job.state == "owed")

    def _jobs(self) -> tuple[tuple[Path, Job], ...]:
        found = [(path, job) for path in self._files() if (job := _read(path)) is not None]
        return tuple(sorted(found, key=lambda pair: (pair[1].created_at, pair[1].key)))

    def _files(self) -> Sequence[Path]:
        return files_in(self._directory, ".json")

    def _make_room(self, wanted: Path) -> None:
        """Let go what is over the limit: first what is done, then what is parked, oldest first."""
        others = [(path, job) for path, job in self._jobs() if path != wanted]
        order: dict[State, int] = {"done": 0, "parked": 1, "owed": 2}
        others.sort(key=lambda pair: order[pair[1].state])
        for path, _ in others[: max(len(others) - MAX_JOBS + 1, 0)]:
            remove_file(path)

    def _path(self, kind: str, key: str) -> Path:
        """Return the job's file: a key may hold anything, a file name may not."""
        if not re.fullmatch(r"[a-z][a-z_]{0,40}", kind):
            raise StoreError(f"{kind[:40]!a} is no kind of job: it has small letters and _ alone")
        import hashlib

        return self._directory / f"{kind}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        ensure_directory(self._directory)
        with exclusive(self._directory / ".lock", timeout_seconds=LOCK_TIMEOUT_SECONDS, poll=self._poll):
            sweep_temporaries(self._directory)
            yield


def _read(path: Path) -> Job | None:
    """Return the job in a file; None when there is none or it cannot be read."""
    try:
        job = msgspec.json.decode(read_file(path, limit_bytes=_READ_LIMIT_BYTES), type=Job)
    except (FileNotFoundError, StoreError, msgspec.MsgspecError, UnicodeError):
        return None
    return msgspec.structs.replace(job, running=None)


def _write(path: Path, job: Job) -> None:
    fields = {name: value for name, value in msgspec.structs.asdict(job).items() if name != "running"}
    replace_file(path, msgspec.json.encode(fields) + b"\n")


def _lock_path(path: Path) -> Path:
    return path.with_suffix(".lock")


def _holder(path: Path) -> int | None:
    """Return the pid of the process that has the claim, 0 if it is unknown, None for nobody."""
    if not _lock_path(path).exists():
        return None
    try:
        hold(_lock_path(path), timeout_seconds=0).release(remove=True)
    except StoreBusyError as error:
        return error.pid or 0
    except StoreError:
        return None
    return None
