"""Statements are taken out of what the person writes, beside the answer.

What is to be looked at is written down before it is looked at, a file for each session:
which turns, from where to where. Turns that come faster than the model answers are looked
at together. Whoever dies leaves the file, and the next process goes on from it.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
import trio

from odek.background import Starter, fault_line
from odek.errors import LimitReachedError, ModelError, OdekError, StoreBusyError, StoreError
from odek.events import Event, Notice
from odek.memory.extended.extract_atoms import EXTRACTION_PROMPT, extraction_text, parse_drafts, spoken
from odek.memory.extended.write import Draft
from odek.memory.places import JOBS
from odek.messages import Message
from odek.storage.jobs import Claim, Job, JobQueue
from odek.text import first_line

__all__ = ["KIND", "AtomJobs", "AtomJobsParts", "Keep", "Said"]

KIND = "atoms"

OTHERS_AT_ONCE = 3
"""Sessions of earlier processes that one process catches up on."""

_T = TypeVar("_T")


class Said(msgspec.Struct, frozen=True):
    """A conversation, and how often the person has spoken in it: the oldest messages may be gone."""

    messages: Sequence[Message]
    turns: int


class Keep(Protocol):
    """Stores statements."""

    def __call__(self, drafts: Sequence[Draft], *, session: str, turn: int) -> Awaitable[object]:
        """Store them as said in a turn of a session."""
        ...


class AtomJobsParts(msgspec.Struct, frozen=True, kw_only=True):
    """What the extraction works with.

    ``own`` is the id of this process's session, ``said`` returns it as it is now. ``read``
    returns another one, None when it is gone; it blocks, and raises StoreBusyError while a
    process has it open. ``ask`` puts (instructions, text) to the model. ``keep`` stores what
    was found. ``emit`` tells a person of what nobody foresaw, and of what is given up.
    """

    memory: Path
    own: str
    said: Callable[[], Said]
    read: Callable[[str], Said | None]
    ask: Callable[[str, str], Awaitable[str]]
    keep: Keep
    counters: Counter[str]
    emit: Callable[[Event], None]


class AtomJobs:
    """Owes and does the extraction. Nothing here raises: what fails is counted and stays owed."""

    def __init__(self, parts: AtomJobsParts, jobs: Starter) -> None:
        self._parts = parts
        self._jobs = jobs
        self._queue = JobQueue(parts.memory / JOBS, poll=trio.from_thread.check_cancelled)
        self._limiter = trio.CapacityLimiter(1)
        self._looked_at: int | None = None  # turns of the own session; None before the file was read
        self._last = 0
        self._is_working = False

    def said(self, turn: int) -> None:
        """Take note that the person has written turn number ``turn``, counted from 1; returns at once."""
        self._last = turn
        if not self._is_working:
            self._is_working = True
            self._jobs.start_soon(self._work)

    def catch_up(self) -> None:
        """Begin to do what other processes left."""
        self._jobs.start_soon(self._do_others)

    async def _work(self) -> None:
        """Look at the turns of the own session until all that were written are done."""
        try:
            if self._looked_at is None:
                self._looked_at = await self._in_thread(self._already_looked_at)
            while self._looked_at < self._last:
                upto = self._last
                job = await self._owe(self._parts.own, self._looked_at, upto)
                if job.state != "owed" or not await self._do(self._parts.own):
                    return  # parked, or another process is at it: tried again with the next turn
                self._looked_at = upto
        except Exception as error:  # noqa: BLE001 - a fault here must not end the answer
            self._missed(error)
        finally:
            self._is_working = False

    async def _do_others(self) -> None:
        tried = {self._parts.own}
        try:
            for _ in range(OTHERS_AT_ONCE):
                jobs = await self._in_thread(partial(self._queue.list, KIND))
                owed = [job.key for job in jobs if job.state == "owed" and job.key not in tried]
                if not owed:
                    return
                tried.add(owed[0])
                await self._do(owed[0])
        except Exception as error:  # noqa: BLE001 - a fault here must not end the answer
            self._missed(error)

    async def _do(self, session: str) -> bool:
        """Do the job of one session; False when it is not done."""
        claim = await self._in_thread(partial(self._queue.claim, KIND, key=session))
        if claim is None:
            return False
        with claim:
            return await self._extract(claim)

    async def _extract(self, claim: Claim) -> bool:
        counters, session = self._parts.counters, claim.job.key
        start, end = _bounds(claim.job)
        try:
            said = await self._said_in(session)
            if said is not None:
                text = extraction_text(_turns(said, start, end))
                drafts = parse_drafts(await self._parts.ask(EXTRACTION_PROMPT, text)) if text else []
                if drafts is None:
                    raise ModelError("the answer was no list of statements")
                await self._parts.keep(drafts, session=session, turn=end)
                counters["extracted"] += len(drafts)
            await self._in_thread(partial(self._queue.done, claim))
        except StoreBusyError:
            return False  # somebody goes on with the session, and does it
        except LimitReachedError:
            counters["extract_over_budget"] += 1
            return False  # stays owed, for a day with a budget
        except OdekError as error:
            await self._fail(claim, str(error))
            return False
        except Exception as error:  # noqa: BLE001 - a fault here must not end the answer
            await self._fail(claim, fault_line(error))
            self._say(f"what {session} says is not remembered yet: {fault_line(error)}")
            return False
        return True

    async def _fail(self, claim: Claim, reason: str) -> None:
        job = await self._in_thread(partial(self._queue.fail, claim, reason))
        self._parts.counters["extract_failed"] += 1
        if job.state == "parked":
            self._say(
                f"gave up on what {job.key} says after {len(job.failures)} failures: {first_line(reason)}; "
                "`odek memory jobs --retry` tries again"
            )

    def _missed(self, error: Exception) -> None:
        """Take note of work that was not even begun, or not recorded; it is owed as before."""
        self._parts.counters["extract_failed"] += 1
        if not isinstance(error, StoreError):
            self._say(f"statements are not looked for: {fault_line(error)}")

    def _say(self, text: str) -> None:
        self._parts.emit(Notice(text, "warning"))

    async def _said_in(self, session: str) -> Said | None:
        if session == self._parts.own:
            return self._parts.said()
        return await self._in_thread(partial(self._parts.read, session))

    async def _owe(self, session: str, start: int, end: int) -> Job:
        payload = {"session": session, "from": str(start), "upto": str(end)}
        return await self._in_thread(partial(self._queue.put, KIND, session, payload))

    def _already_looked_at(self) -> int:
        """Return up to which turn an earlier process came with the own session."""
        for job in self._queue.list(KIND):
            if job.key == self._parts.own:
                start, end = _bounds(job)
                return end if job.state == "done" else start
        return 0

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        # Never abandoned: what writes is finished; the wait for a lock ends through ``poll``.
        return await trio.to_thread.run_sync(work, abandon_on_cancel=False, limiter=self._limiter)


def _turns(said: Said, start: int, end: int) -> list[str]:
    """Return what the person wrote in the turns after ``start``, up to ``end``, counted from 1."""
    texts = spoken(said.messages)
    gone = said.turns - len(texts)
    return texts[max(start - gone, 0) : max(end - gone, 0)]


def _bounds(job: Job) -> tuple[int, int]:
    """Return the turns that a job is about: those after the first number, up to the second."""
    numbers = [job.payload.get(name, "") for name in ("from", "upto")]
    start, end = (int(number) if number.isdecimal() and len(number) < 10 else 0 for number in numbers)
    return start, end
