"""A conversation, owned by this process, and its way to the disk."""

from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec
import trio

from odek.events import Usage
from odek.messages import Message, UserMessage
from odek.sessions.document import Header
from odek.sessions.masking import clean
from odek.text import first_line, without_surrogates
from odek.timestamps import current_timestamp

__all__ = ["Session", "Writer"]


class Writer(Protocol):
    """Where a session is written. Both methods are called from any thread."""

    def write(self, header: Header, messages: Sequence[Message]) -> None:
        """Make the conversation durable; ``messages`` begins with those of the write before.

        Raises:
            StoreError: it is not on disk.
        """
        ...

    def close(self) -> None:
        """Give up the session; never waits, and is harmless the second time."""
        ...


class Session:
    """A session that is open: nobody else continues it until ``release``.

    ``repairs`` says in one line each what was mended when it was read. Without a ``writer`` it is
    never on disk.
    """

    def __init__(
        self,
        header: Header,
        messages: Sequence[Message],
        writer: Writer | None,
        *,
        repairs: tuple[str, ...] = (),
        buffer_lines: int = 20,
    ) -> None:
        self.repairs = repairs
        self.model = header.model
        self._header = header
        self._messages = list(messages)
        self._writer = writer
        self._usage = header.usage
        self._buffer_lines = buffer_lines
        self._buffer = list(header.buffer[-buffer_lines:])
        self._taint_sources = dict.fromkeys(header.taint_sources)
        self._episode_untrusted = header.episode_untrusted
        self._untrusted_ingested = header.untrusted_ingested
        self._counted = set(header.counted_delegations or ())
        # One write at a time: a write that was given up goes on in its thread, and a later one must
        # not be overtaken by it.
        self._limiter = trio.CapacityLimiter(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    @property
    def id(self) -> str:
        """The session's id."""
        return self._header.id

    @property
    def task(self) -> str:
        """The beginning of what the person asked first."""
        return self._header.task

    @property
    def sandbox(self) -> bool:
        """Whether its commands run in a sandbox."""
        return self._header.sandbox

    @property
    def created_at(self) -> str:
        """When it began, as RFC 3339."""
        return self._header.created_at

    @property
    def updated_at(self) -> str:
        """When it had last been saved as it was opened, RFC 3339; empty for a new one."""
        return self._header.updated_at

    @property
    def messages(self) -> Sequence[Message]:
        """Everything said so far, system message first."""
        return self._messages

    @property
    def turns(self) -> int:
        """How often the person has spoken."""
        return sum(isinstance(message, UserMessage) for message in self._messages)

    @property
    def usage(self) -> Usage:
        """Tokens and money of all its requests."""
        return self._usage

    @property
    def buffer(self) -> Sequence[str]:
        """One line for each of the last turns, oldest first."""
        return self._buffer

    @property
    def taint_sources(self) -> tuple[str, ...]:
        """Why the memory of this session is untrusted; never shrinks."""
        return tuple(self._taint_sources)

    @property
    def episode_untrusted(self) -> bool:
        """Whether what is remembered of this session needs a person's word first."""
        return self._episode_untrusted

    @property
    def untrusted_ingested(self) -> bool:
        """Whether it has taken in text that the person did not write."""
        return self._untrusted_ingested

    @property
    def counted_delegations(self) -> frozenset[str]:
        """The delegations that are in its usage although their own records may still be there."""
        return frozenset(self._counted)

    def append(self, *messages: Message) -> None:
        """Add messages in memory; a session begun without a task is named after the first question."""
        self._messages.extend(map(clean, messages))
        if not self._header.task:
            asked = next((each.content for each in messages if isinstance(each, UserMessage)), "")
            self._header = msgspec.structs.replace(self._header, task=first_line(asked))

    def add_usage(self, usage: Usage) -> None:
        """Add the tokens and money of a request."""
        self._usage += usage

    def note_counted(self, delegation: str) -> None:
        """Note that what ``delegation`` used has been added, so that nobody adds it again."""
        self._counted.add(delegation)

    def drop_counted(self, delegations: Collection[str]) -> None:
        """Forget the notes of delegations whose own records are gone."""
        self._counted.difference_update(delegations)

    def add_taint(self, sources: tuple[str, ...], ingested: bool) -> None:  # noqa: FBT001 - the gate's signature
        """Remember why the session is untrusted, and whether it took in foreign text, for good."""
        self._taint_sources.update(dict.fromkeys(sources))
        self._episode_untrusted |= bool(sources)
        self._untrusted_ingested |= ingested

    def add_buffer_line(self, line: str) -> None:
        """Add the line of a turn; beyond the cap the oldest goes."""
        self._buffer.append(without_surrogates(line))
        del self._buffer[: -self._buffer_lines or None]

    async def save(self) -> None:
        """Make everything appended so far durable.

        Cancelled while the disk is slow, it leaves the write to its thread; the next save waits
        for that one, so that what is on disk never goes back in time.

        Raises:
            StoreError: it is not on disk; the next save tries all of it again.
        """
        if self._writer is None:
            await trio.lowlevel.checkpoint()
            return
        header = msgspec.structs.replace(
            self._header,
            updated_at=current_timestamp(),
            model=without_surrogates(self.model),
            turns=self.turns,
            task=without_surrogates(self._header.task),
            usage=self._usage,
            buffer=tuple(self._buffer),
            taint_sources=self.taint_sources,
            episode_untrusted=self._episode_untrusted,
            untrusted_ingested=self._untrusted_ingested,
            counted_delegations=tuple(sorted(self._counted)) or msgspec.UNSET,
        )
        messages = tuple(self._messages)
        await trio.to_thread.run_sync(
            self._writer.write, header, messages, abandon_on_cancel=True, limiter=self._limiter
        )

    def release(self) -> None:
        """Let others continue the session; what was not saved is lost. Once is enough."""
        if self._writer is not None:
            self._writer.close()
