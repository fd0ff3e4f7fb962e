"""The end of a session: what happened becomes an episode, and perhaps a few facts.

It is owed from the moment at which a session is long enough, in a file that survives the
process. Whoever leaves pays what it can within the drain; the next agent that starts pays
the rest in the background, the first request not waiting for it.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import trio

from odek.background import Background, fault_line
from odek.config.memory_settings import MemorySettings
from odek.embedding.embedder import Embedder
from odek.errors import EmbeddingError, MemoryRefusedError, ModelError, OdekError, StoreBusyError, StoreError
from odek.events import Event, MemoryEvent, Notice
from odek.memory.drain import Drain
from odek.memory.episode import UNKNOWN_PROVENANCE, Episode, Provenance
from odek.memory.episodes import EpisodeStore, Similar, Stored
from odek.memory.facts import Target
from odek.memory.journal import Origin
from odek.memory.places import JOBS
from odek.messages import Message
from odek.storage.jobs import Claim, JobQueue
from odek.text import first_line

__all__ = [
    "KIND",
    "SessionEnd",
    "SessionEndParts",
    "SessionRecord",
    "provenance_of",
]

KIND = "session_end"

OWED_AT_ONCE = 3
"""Sessions of earlier processes that one process catches up on: what is owed must not become a bill."""

RECORD_SECONDS = 5.0
"""To write down what is owed, even when everything is cancelled; it takes milliseconds."""

TRIMMED_HISTORY = "trimmed_history"

_T = TypeVar("_T")


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it is on disk. ``is_complete`` False says that a part of it was lost."""

    id: str
    messages: Sequence[Message]
    turns: int
    ended_at: str
    episode_untrusted: bool = False
    taint_sources: tuple[str, ...] = ()
    is_complete: bool = True


class SessionEndParts(msgspec.Struct, frozen=True, kw_only=True):
    """What the end of a session works with.

    ``read`` returns a session's record, None when it is gone; it blocks, and raises
    StoreBusyError while a process has the session open. ``ask`` puts (instructions, text) to the
    model and raises ModelError. ``keep_fact`` stores a fact, merged with one that says the same,
    ``consolidate`` merges the facts of a file; both raise as the store does. ``take_up`` is told of
    the sessions whose episodes came or went.
    """

    directory: Path
    settings: MemorySettings
    episodes: EpisodeStore
    read: Callable[[str], SessionRecord | None]
    ask: Callable[[str, str], Awaitable[str]]
    make_embedder: Callable[[], Embedder]
    keep_fact: Callable[[Target, str, Origin], Awaitable[object]]
    emit: Callable[[Event], None]
    mask: Callable[[str], str]
    drain: Drain
    consolidate: Callable[[Target], Awaitable[object]] | None = None
    take_up: Callable[[Sequence[str]], Awaitable[None]] | None = None


def provenance_of(record: SessionRecord, *, auto_approve: bool) -> Provenance:
    """Return how far an episode of this session is to be trusted. Pure."""
    sources = record.taint_sources
    if record.episode_untrusted and not sources:
        sources = (TRIMMED_HISTORY,)
    if not record.is_complete and UNKNOWN_PROVENANCE not in sources:
        sources = (*sources, UNKNOWN_PROVENANCE)
    untrusted = record.episode_untrusted or bool(sources)
    return Provenance(untrusted, sources, auto_approved=untrusted and auto_approve)


class SessionEnd:
    """Owes and pays the end of sessions. Nothing here raises: what fails is told and stays owed.

    ``jobs`` are waited for on leaving, within ``parts.drain``.
    """

    def __init__(self, parts: SessionEndParts, jobs: Background) -> None:
        self._parts = parts
        self._jobs = jobs
        self._queue = JobQueue(parts.directory / JOBS, poll=trio.from_thread.check_cancelled)
        self._limiter = trio.CapacityLimiter(2)
        self._putting = trio.Lock()
        self._is_owed = self._is_closed = False
        self._tried: set[str] = set()
        self._working: set[str] = set()
        self._unpaid: set[str] = set()
        parts.drain.on_slow = self.tell_waiting
        parts.drain.on_left = self.tell_owed

    def catch_up(self, *, current: str) -> None:
        """Begin to pay in the background what other processes left; ``current`` is this one's session."""
        self._tried.add(current)
        self._jobs.start_soon(self._pay_owed)

    def owe_soon(self, session: str, turns: int) -> None:
        """Write down in the background that a session will be owed, however this process ends."""
        if not self._is_owed and turns >= self._parts.settings.min_turns_for_extraction:
            self._is_owed = True
            self._jobs.start_soon(self._owe_early, session, f"turn {turns}")

    async def finish(self, session: str) -> None:
        """Owe a session that was closed and saved, and begin to pay it; a cancelled caller does so too."""
        self._is_closed = True
        with trio.move_on_after(RECORD_SECONDS, shield=True):
            await self._jobs.run(self._owe, session)

    def tell_waiting(self) -> None:
        """Say why leaving takes a while."""
        if self._working:
            limit = f"at most {self._parts.drain.limit_seconds:g} s"
            self._say(f"remembering what was done, {limit}; Ctrl-C twice leaves it to the next run", "info")

    def tell_owed(self) -> None:
        """Say what was left undone."""
        if owed := sorted(self._unpaid):
            names = owed[0] if len(owed) == 1 else f"{len(owed)} sessions"
            self._say(f"not remembered yet: {names}; the next run does it (`odek memory jobs`)")

    async def _owe(self, session: str) -> None:
        """Write down what a closed session is owed, and begin to pay it."""
        try:
            record = await self._in_thread(partial(self._parts.read, session))
        except StoreError:
            return  # open again by now: whoever has it will owe it
        if record is None or record.turns < self._parts.settings.min_turns_for_extraction:
            return
        content = await self._in_thread(lambda: _content_hash(record))
        async with self._putting:
            is_owed = await self._put(session, content)
        if is_owed:
            self._unpaid.add(session)
            self._tried.discard(session)
            self._jobs.start_soon(self._pay_one)

    async def _owe_early(self, session: str, content: str) -> None:
        async with self._putting:
            if not self._is_closed:  # else the job has its final content, or gets it
                await self._put(session, content)

    async def _put(self, session: str, content: str) -> bool:
        """Write the job down; True when it is to be done."""
        payload = {"session": session, "content": content}
        try:
            job = await self._in_thread(partial(self._queue.put, KIND, session, payload))
        except StoreError as error:
            self._say(f"this session will not be remembered: {error}")
            return False
        return job.state == "owed"

    async def _pay_owed(self) -> None:
        for _ in range(OWED_AT_ONCE):
            if not await self._pay_one():
                return

    async def _pay_one(self) -> bool:
        """Do the oldest job that was not tried here; False when there is none."""
        try:
            claim = await self._in_thread(partial(self._queue.claim, KIND, skip=frozenset(self._tried)))
        except StoreError as error:
            self._say(f"what is still to be remembered cannot be looked up: {error}")
            return False
        if claim is None:
            return False
        key = claim.job.key
        self._tried.add(key)
        self._working.add(key)
        self._unpaid.add(key)
        try:
            await self._pay(claim)
        except trio.Cancelled:
            if not self._parts.drain.is_given_up:
                limit = f"no answer within the {self._parts.drain.limit_seconds:g} s of leaving"
                await self._fail(claim, limit)
            raise
        finally:
            self._working.discard(key)
            claim.release()
        return True

    async def _pay(self, claim: Claim) -> None:
        key = claim.job.key
        try:
            record = await self._in_thread(partial(self._parts.read, key))
            if record is not None:
                await self._remember(record)
            await self._in_thread(partial(self._queue.done, claim))
            self._unpaid.discard(key)
        except StoreBusyError:
            self._unpaid.discard(key)  # somebody goes on with the session, and will owe it again
        except (OdekError, ExceptionGroup) as error:
            await self._fail(claim, str(error))
        except Exception as error:  # noqa: BLE001 - a fault here must not take the agent down
            await self._fail(claim, fault_line(error))

    async def _fail(self, claim: Claim, reason: str) -> None:
        with trio.move_on_after(RECORD_SECONDS, shield=True):
            try:
                job = await self._in_thread(partial(self._queue.fail, claim, reason))
            except StoreError as error:
                self._say(f"{claim.job.key} is not remembered: {reason}; nor is that recorded: {error}")
                return
            if job.state == "parked":
                self._unpaid.discard(job.key)
                self._say(
                    f"gave up on remembering {job.key} after {len(job.failures)} failures: "
                    f"{first_line(reason)}; `odek memory jobs --retry` tries again"
                )

    async def _remember(self, record: SessionRecord) -> None:
        """Extract and store; a session too short or without anything to keep leaves nothing."""
        from odek.memory.extract import build_transcript

        settings = self._parts.settings
        provenance = provenance_of(record, auto_approve=settings.auto_approve_episodes)
        transcript = await self._in_thread(partial(build_transcript, record.messages))
        if not transcript or record.turns < settings.min_turns_for_extraction:
            return
        from odek.memory.extraction import extract

        found = await extract(
            self._parts.ask,
            self._parts.mask(transcript),
            day=record.ended_at[:10],
            episode=settings.extract_on_end,
            facts=settings.extract_facts and not provenance.untrusted,
        )
        origin = Origin(
            session=record.id, turn=record.turns, approval="session_end", tainted=provenance.untrusted
        )
        if found.summary:
            await self._store(record, self._parts.mask(found.summary), provenance, origin)
        await self._keep_facts("user", found.user, origin)
        await self._keep_facts("env", found.env, origin)

    async def _store(self, record: SessionRecord, text: str, provenance: Provenance, origin: Origin) -> None:
        similar = await self._similar(record.id, text)
        write = partial(
            self._parts.episodes.write,
            record.id,
            text,
            turns=record.turns,
            provenance=provenance,
            created_at=record.ended_at,
            similar=similar,
            origin=origin,
        )
        try:
            stored = await self._in_thread(write)
        except MemoryRefusedError as error:
            self._say(f"the summary of {record.id} was not stored: {error}")
            return
        for event in _events(stored, record.id):
            self._parts.emit(event)
        if stored.outcome == "stored" and self._parts.take_up is not None:
            await self._parts.take_up([record.id, *filter(None, [stored.replaced]), *stored.evicted])

    async def _similar(self, session: str, text: str) -> Similar | None:
        """Return the stored episode most like ``text``, if it is nearly the same; None when in doubt."""
        threshold = self._parts.settings.episode_dedup_threshold
        others = await self._in_thread(partial(self._others, session))
        if not threshold or not others:
            return None
        try:
            new, *old = await self._parts.make_embedder().embed([text, *(text for _, text in others)])
        except (EmbeddingError, ModelError):
            return None  # a near-duplicate too many is better than a wrong one gone
        likeness = [float(new @ vector) for vector in old]
        best = max(range(len(likeness)), key=likeness.__getitem__)
        if likeness[best] < threshold:
            return None
        episode, _ = others[best]
        return Similar(episode.session_id, min(likeness[best], 1.0), episode.content_hash)

    def _others(self, session: str) -> list[tuple[Episode, str]]:
        store = self._parts.episodes
        found = [(episode, store.text_or_none(episode.session_id)) for episode in store.read_index()]
        return [(episode, text) for episode, text in found if text and episode.session_id != session]

    async def _keep_facts(self, target: Target, facts: Sequence[str], origin: Origin) -> None:
        kept = 0
        for fact in facts:
            try:
                await self._parts.keep_fact(target, self._parts.mask(fact), origin)
                kept += 1
            except MemoryRefusedError as error:
                self._say(f"a fact of the session was not stored: {first_line(str(error))}")
        if kept and self._parts.consolidate is not None and self._parts.settings.consolidate_on_end:
            try:
                await self._parts.consolidate(target)
            except StoreError as error:
                self._say(f"{target}.md was not consolidated: {error}")

    def _say(self, text: str, level: str = "warning") -> None:
        self._parts.emit(Notice(text, "info" if level == "info" else "warning"))

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        # Never abandoned: what writes is finished; the wait for a lock ends through ``poll``.
        return await trio.to_thread.run_sync(work, abandon_on_cancel=False, limiter=self._limiter)


def _content_hash(record: SessionRecord) -> str:
    """Name what would be extracted, so that the same is extracted once."""
    import hashlib

    from odek.memory.extract import build_transcript

    text = f"{record.turns}\n{build_transcript(record.messages)}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _events(stored: Stored, session: str) -> list[MemoryEvent]:
    """Return what is to be told of a stored episode."""
    episode = stored.episode
    events: list[MemoryEvent] = []
    if stored.outcome == "stored":
        untrusted = episode.provenance.untrusted
        events.append(
            MemoryEvent(
                "episode_stored",
                content=episode.summary,
                session_id=session,
                count=episode.turns,
                untrusted=untrusted,
            )
        )
        if not episode.provenance.is_recallable:
            events.append(MemoryEvent("episode_pending_review", session_id=session, untrusted=True))
    if stored.similarity is not None:
        events.append(MemoryEvent("episode_deduped", session_id=session, similarity=stored.similarity))
    if stored.evicted:
        events.append(MemoryEvent("episode_evicted", sessions=stored.evicted, count=len(stored.evicted)))
    return events
