"""What a turn works with, and the protocols by which it does."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from odek.batch import Gate
from odek.budget import Budget, Limits
from odek.context import Fitting
from odek.events import Event, Usage
from odek.llm.model import Model
from odek.memory.buffer import TurnNote
from odek.messages import Message
from odek.tools.tool import Tool

__all__ = ["Agent", "Transcript", "TurnMemory"]


class Transcript(Protocol):
    """The conversation, owned by one process, and its way to the disk."""

    @property
    def id(self) -> str:
        """The session's id."""
        ...

    @property
    def messages(self) -> Sequence[Message]:
        """Everything said so far, system message first."""
        ...

    def append(self, *messages: Message) -> None:
        """Add messages in memory."""
        ...

    def add_usage(self, usage: Usage) -> None:
        """Add the tokens and money of a request to the session's totals."""
        ...

    async def save(self) -> None:
        """Make everything appended so far durable.

        Raises:
            StoreError: it is not on disk; the next save tries all of it again.
        """
        ...


class TurnMemory(Protocol):
    """What the memory adds behind the history of a turn."""

    async def context(self, query: str) -> Sequence[str]:
        """Return texts for the model beside the person's message, a message each; never fails."""
        ...

    def asked(self) -> None:
        """Take note that the person's message is saved; returns at once."""
        ...


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a turn works with. Built by ``odek.app``, owned there.

    ``max_parallel`` bounds the tool calls at once. ``mask`` hides secrets in text.
    ``note_turn`` is told what a turn did, before its last save; it never waits.
    ``on_budget`` is handed the budget of each turn, for whoever shares it out.
    ``unavailable`` says of tools that exist why they are not among ``tools``. ``fitting`` keeps the
    conversation within the model's window, from its first turn to its last.
    """

    model: Model
    tools: Mapping[str, Tool[msgspec.Struct]]
    gate: Gate
    transcript: Transcript
    emit: Callable[[Event], None]
    mask: Callable[[str], str]
    limits: Limits = Limits()
    max_parallel: int = 4
    max_tokens: int | None = None
    temperature: float | None = None
    thinking: str = ""
    memory: TurnMemory | None = None
    note_turn: Callable[[TurnNote], None] | None = None
    on_budget: Callable[[Budget], None] | None = None
    unavailable: Mapping[str, str] = {}
    fitting: Fitting = msgspec.field(default_factory=Fitting)
