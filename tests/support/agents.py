"""An agent around a scripted model, with a transcript that counts its saves and tools that do little."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import msgspec
import trio

from odek.agent import Agent
from odek.batch import Admission, GateRequest
from odek.budget import Limits
from odek.errors import StoreError
from odek.events import Event, Usage
from odek.llm.model import Model
from odek.messages import Message, SystemMessage, ToolMessage
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.trust.effects import Effects

__all__ = [
    "ECHO",
    "FunctionTool",
    "MemoryTranscript",
    "Note",
    "OpenGate",
    "Recorder",
    "echo",
    "make_agent",
    "never",
    "tool_results",
]


class MemoryTranscript:
    """A transcript that keeps each saved state; ``full`` makes its disk full."""

    def __init__(self) -> None:
        self.id = "20260101-test"
        self.messages: list[Message] = [SystemMessage("system")]
        self.saved: list[list[Message]] = []
        self.usage = Usage()
        self.full = False

    def append(self, *messages: Message) -> None:
        """Add messages."""
        self.messages.extend(messages)

    def add_usage(self, usage: Usage) -> None:
        """Add usage."""
        self.usage += usage

    async def save(self) -> None:
        """Keep a copy, or fail like a full disk."""
        await trio.lowlevel.checkpoint()
        if self.full:
            raise StoreError("s.json: the disk is full")
        self.saved.append(list(self.messages))


class OpenGate:
    """Admits every call except those of the tools named; fences what ``outside`` tools return."""

    def __init__(self, *, denied: Sequence[str] = (), outside: Sequence[str] = ()) -> None:
        self.denied = denied
        self.outside = outside
        self.batches: list[list[str]] = []

    async def admit(self, requests: Sequence[GateRequest]) -> list[Admission]:
        """Decide by name."""
        await trio.lowlevel.checkpoint()
        self.batches.append([request.tool for request in requests])
        return [
            Admission(allowed=False, reason=f"{request.tool} was denied by the person")
            if request.tool in self.denied
            else Admission(allowed=True, fence_source=request.tool if request.tool in self.outside else None)
            for request in requests
        ]

    def fence(self, content: str, source: str) -> str:
        """Mark content."""
        return f"<{source}>{content}</{source}>"


class Note(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of the test tools."""

    text: Annotated[str, msgspec.Meta(description="Any text.")] = ""
    times: Annotated[int, msgspec.Meta(ge=1)] = 1


class FunctionTool(Tool[Note]):
    """A tool made of an async function of its arguments and scope."""

    name = "note"
    description = "A tool for tests."
    arguments_type = Note

    def __init__(
        self,
        name: str,
        function: Callable[[Note, CallScope], Awaitable[ToolOutput | str]],
        *,
        effects: Effects = Effects(),
        timeout_seconds: float | None = 120.0,
    ) -> None:
        self.name = name  # type: ignore[misc]  # a class per test tool would say nothing more
        self.timeout_seconds = timeout_seconds  # type: ignore[misc]
        self._function = function
        self._effects = effects

    async def prepare(self, arguments: Note) -> PreparedCall:
        """Prepare a call of the function."""

        async def run(scope: CallScope) -> ToolOutput:
            output = await self._function(arguments, scope)
            return output if isinstance(output, ToolOutput) else ToolOutput(output)

        return PreparedCall(arguments.text, self._effects, run)


async def echo(note: Note, scope: CallScope) -> str:
    """Return the text."""
    return f"echo {note.text}"


async def never(note: Note, scope: CallScope) -> str:
    """Wait for ever."""
    await trio.sleep_forever()


ECHO = FunctionTool("echo", echo)


def tool_results(transcript: MemoryTranscript) -> list[str]:
    """Return the contents of the tool messages."""
    return [message.content for message in transcript.messages if isinstance(message, ToolMessage)]


class Recorder:
    """Collects events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        """Take an event."""
        self.events.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


def make_agent(
    model: Model,
    *tools: Tool[Any],
    gate: OpenGate | None = None,
    transcript: MemoryTranscript | None = None,
    emit: Callable[[Event], None] | None = None,
    limits: Limits = Limits(),
    max_parallel: int = 4,
) -> Agent:
    """Build an agent from parts."""
    return Agent(
        model=model,
        tools={tool.name: tool for tool in tools},
        gate=gate or OpenGate(),
        transcript=transcript or MemoryTranscript(),
        emit=emit or Recorder(),
        mask=lambda text: text.replace("hunter2", "[REDACTED]"),
        limits=limits,
        max_parallel=max_parallel,
    )
