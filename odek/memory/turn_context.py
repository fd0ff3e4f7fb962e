"""What a turn of one session is given by the memory, and the record of why."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import trio

from odek.errors import StoreError
from odek.memory.context_text import context_text, shown_episodes
from odek.memory.recollection import Recalled
from odek.memory.service import Memory
from odek.messages import Message, is_context
from odek.text import clip_bytes
from odek.timestamps import current_timestamp

if TYPE_CHECKING:
    from odek.memory.journal import Origin
    from odek.memory.recall import Considered

__all__ = ["AtomContext", "Conversation", "TurnContext", "origin_of"]

QUERY_BYTES = 1_900
TITLES_BYTES = 600
"""Of a message, and of that what the plan's open steps may take: an index reads no further. What a
message begins with says what it is about."""

REPEAT_AFTER_TURNS = 8
"""What was said so long ago may have left the request, so it is said again."""


class Conversation(Protocol):
    """The session that is going on."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def messages(self) -> Sequence[Message]:
        """Everything said so far."""
        ...

    @property
    def turns(self) -> int:
        """How often the person has spoken."""
        ...

    @property
    def buffer(self) -> Sequence[str]:
        """One line for each of the last turns."""
        ...

    @property
    def episode_untrusted(self) -> bool:
        """Whether it has taken in untrusted content."""
        ...

    def add_taint(self, sources: tuple[str, ...], ingested: bool) -> None:  # noqa: FBT001 - the session's
        """Remember that untrusted text came in."""
        ...


class AtomContext(Protocol):
    """What Extended Memory adds to the turns of a session."""

    async def context(
        self, message: str, earlier: Sequence[str]
    ) -> "tuple[tuple[str, ...], tuple[Considered, ...]]":
        """Return texts for the model beside those of ``earlier``, and what became of each atom."""
        ...

    def asked(self) -> None:
        """Take note that the person's message is saved; returns at once."""
        ...


class TurnContext:
    """Implements the loop's seam for one session.

    Args:
        memory: What is remembered.
        session: The conversation.
        open_titles: Returns the titles of the plan's steps that are still to be done.
        keep_record: Whether it is written down why a turn got what it got.
        mask: Hides secrets.
        atoms: What Extended Memory adds; None where it is switched off.
    """

    def __init__(
        self,
        memory: Memory,
        session: Conversation,
        open_titles: Callable[[], Sequence[str]],
        *,
        keep_record: bool,
        mask: Callable[[str], str],
        atoms: AtomContext | None = None,
    ) -> None:
        self._memory = memory
        self._atoms = atoms
        self._session = session
        self._open_titles = open_titles
        self._keep_record = keep_record
        self._mask = mask

    async def context(self, query: str) -> tuple[str, ...]:
        """Return texts for the model beside the person's message, a message each; never fails."""
        if "<untrusted_content" in query or "Attached file" in query:
            from odek.memory.extract import without_outside

            query = without_outside(query)  # what a page says does not decide what is remembered
        earlier = [message.content for message in self._session.messages if is_context(message)][
            -REPEAT_AFTER_TURNS:
        ]
        wanted = self._question(query)
        recalled = await self._memory.recall(
            wanted,
            shown=lambda name: name == self._session.id or bool(shown_episodes(earlier, [name])),
            explain=self._keep_record,
        )
        if any(document.untrusted for document in recalled.documents):
            self._session.add_taint(("outside_content",), ingested=True)
        atoms, atoms_considered = await self._atoms.context(query, earlier) if self._atoms else ((), ())
        if self._keep_record:
            await self._record(wanted, recalled, atoms_considered)
        said = {line for text in earlier for line in text.splitlines()}
        buffer = await self._usable([line for line in self._session.buffer if line not in said])
        text = context_text(buffer, recalled.documents, await self._memory.fills())
        return tuple(filter(None, [text, *atoms]))

    def asked(self) -> None:
        """Begin what runs beside the answer."""
        if self._atoms is not None:
            self._atoms.asked()

    def _question(self, message: str) -> str:
        """Return what the turn is about: the message, and what is still to be done."""
        titles = clip_bytes("\n".join(self._open_titles()), TITLES_BYTES)
        message = clip_bytes(message, QUERY_BYTES - len(titles.encode()))
        return "\n".join(filter(None, [message, titles]))

    async def _usable(self, lines: Sequence[str]) -> Sequence[str]:
        """Return the lines of the buffer that the model may be shown."""
        if not self._memory.settings.buffer_enabled or not lines:
            return ()
        from odek.memory.buffer import usable_lines

        lines = usable_lines(lines)
        if self._memory.object_to is None or not lines:
            return lines
        objections = await self._memory.object_to(lines)
        return [line for line, objection in zip(lines, objections, strict=True) if not objection]

    async def _record(self, query: str, recalled: Recalled, atoms: "Sequence[Considered]") -> None:
        """Write down what was considered; a record that cannot be written is none."""
        facts = [fact for file in self._memory.frozen for fact in file.entries]
        if not (facts or recalled.searched or recalled.note or atoms):
            return
        from odek.memory.recall import Considered
        from odek.memory.why import WhyLog, WhyRecord

        record = WhyRecord(
            time=current_timestamp("seconds"),
            turn=self._session.turns + 1,
            query=self._mask(query),
            considered=(
                *recalled.considered,
                *atoms,
                *(
                    Considered(
                        "fact",
                        f"{fact.target} {fact.index}",
                        "withheld" if fact.rejection else "injected",
                        reason=fact.rejection,
                    )
                    for fact in facts
                ),
            ),
            note=recalled.note,
        )
        try:
            append = partial(WhyLog(self._memory.directory).append, self._session.id, record)
            await trio.to_thread.run_sync(append)
        except StoreError:
            return


def origin_of(session: Conversation, call_id: str, approval: str) -> "Origin":
    """Return on whose behalf a call changes the memory, and who let it."""
    from odek.memory.journal import Origin

    return Origin(
        session=session.id,
        turn=session.turns,
        call_id=call_id,
        approval=approval,
        tainted=session.episode_untrusted,
    )
