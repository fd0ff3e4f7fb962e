"""What is said in a conversation.

The Structs have the shape of the chat-completions wire format, so that one
encoding serves the request, the session file and an installation of the
system before this one. Content is text; an absent content becomes "".
"""

from typing import Literal

import msgspec

__all__ = [
    "CONTEXT_NAME",
    "AssistantMessage",
    "FunctionCall",
    "Message",
    "SystemMessage",
    "ToolCall",
    "ToolMessage",
    "UserMessage",
    "is_context",
]

CONTEXT_NAME = "odek_context"
"""``SystemMessage.name`` of a message that the runtime itself added behind the history."""


class FunctionCall(msgspec.Struct, frozen=True):
    """Which tool, and its arguments as JSON text: always a valid JSON object."""

    name: str
    arguments: str


class ToolCall(msgspec.Struct, frozen=True):
    """One call that the model asks for; ``id`` pairs it with its ToolMessage."""

    id: str
    function: FunctionCall
    type: Literal["function"] = "function"

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.function.name

    @property
    def arguments(self) -> str:
        """The arguments as JSON text."""
        return self.function.arguments


class SystemMessage(msgspec.Struct, frozen=True, tag_field="role", tag="system", omit_defaults=True):
    """Instructions; the first message of a session, or context added by the runtime."""

    content: str
    name: str | None = None


class UserMessage(msgspec.Struct, frozen=True, tag_field="role", tag="user"):
    """What the person said, with attached files inlined."""

    content: str


class AssistantMessage(msgspec.Struct, frozen=True, tag_field="role", tag="assistant", omit_defaults=True):
    """What the model said and asked for.

    ``reasoning_content`` is kept and echoed where the provider requires it.
    """

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning_content: str | None = None


class ToolMessage(msgspec.Struct, frozen=True, tag_field="role", tag="tool"):
    """The result of one tool call, as the model reads it."""

    content: str
    tool_call_id: str


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


def is_context(message: Message) -> bool:
    """Tell whether the runtime itself added ``message`` behind the history, beside a question."""
    return isinstance(message, SystemMessage) and message.name == CONTEXT_NAME
