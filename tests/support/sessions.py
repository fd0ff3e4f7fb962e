"""Sessions for tests: built, saved, and written as other programs write them."""

import json
from pathlib import Path
from typing import Any

from odek.messages import (
    AssistantMessage,
    FunctionCall,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from odek.sessions.store import SessionStore

__all__ = ["ask", "call", "conversation", "files_in", "save_session", "write_foreign"]


def call(call_id: str, name: str = "shell", arguments: str = '{"command":"ls"}') -> ToolCall:
    """Return a tool call."""
    return ToolCall(call_id, FunctionCall(name, arguments))


def ask(*calls: ToolCall, content: str = "") -> AssistantMessage:
    """Return an answer that calls tools."""
    return AssistantMessage(content, calls)


def conversation(turns: int = 2) -> list[Message]:
    """Return a valid conversation; each turn calls one tool."""
    messages: list[Message] = [SystemMessage("You are odek.")]
    for turn in range(1, turns + 1):
        messages += [
            UserMessage(f"question {turn}"),
            ask(call(f"call-{turn}")),
            ToolMessage(f"result {turn}", f"call-{turn}"),
            AssistantMessage(f"answer {turn}"),
        ]
    return messages


async def save_session(store: SessionStore, messages: list[Message], *, task: str = "a task") -> str:
    """Save a session with ``messages`` and return its id."""
    with store.create("test-model", task) as session:
        session.append(*messages)
        await session.save()
        return session.id


def files_in(directory: Path, pattern: str = "*") -> dict[str, bytes]:
    """Return the files of a directory by name, those that match ``pattern``."""
    return {path.name: path.read_bytes() for path in directory.glob(pattern) if path.is_file()}


def write_foreign(directory: Path, name: str, messages: object, **fields: Any) -> Path:
    """Write a session as another program would: indented, flags behind the messages, or as ``fields`` say."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    head = {
        "id": name,
        "created_at": "2026-03-01T10:20:30.123456789+02:00",
        "updated_at": "2026-03-01T10:21:30.987654321Z",
        "model": "deepseek-chat",
        "turns": 1,
        "task": "an old task",
        "messages": messages,
    }
    path.write_text(json.dumps(head | fields, indent=2))
    return path
