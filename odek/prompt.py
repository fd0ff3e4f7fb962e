"""The system prompt: what every session begins with, and what then never changes. Pure."""

from collections.abc import Sequence

import msgspec

from odek.messages import CONTEXT_NAME, Message, SystemMessage
from odek.text import clip_bytes

__all__ = ["PromptParts", "system_prompt", "told_workspace", "workspace_change"]

AGENTS_FILE_LIMIT_BYTES = 32 * 1024
"""A project's instructions beyond this are cut: they are paid for in every request."""

BASE = """\
You are odek, an agent that works in a person's terminal and on their files, with tools.

- Do what was asked, and only that. Look before you change; after a change, check that it works.
- Use several tool calls at once when they do not depend on each other.
- Prefer read_file, search_files, patch and write_file to shell commands that do the same.
- When a tool fails, read why and try another way; do not repeat the same call.
- When something cannot be done or was not done, say so plainly. Never claim a result that you did not see.
- Answer in the person's language, briefly, in Markdown that reads well in a terminal."""


_WORKSPACE = "Workspace: "
_NOW = "The workspace is now "


class PromptParts(msgspec.Struct, frozen=True, kw_only=True):
    """What the system prompt is made of; an empty part is left out.

    ``replacement`` stands in for the built-in text. ``rules`` explain the fence around
    outside content and are always there. ``started_on`` is a date, not a time: equal
    prompts of one day are equal bytes.
    """

    workspace: str
    platform: str
    started_on: str
    rules: str
    replacement: str = ""
    project_instructions: str = ""
    memory: str = ""


def system_prompt(parts: PromptParts) -> str:
    """Return the text of a session's first message; what changes least comes first."""
    instructions = clip_bytes(parts.project_instructions.strip(), AGENTS_FILE_LIMIT_BYTES)
    sections = [
        parts.replacement.strip() or BASE,
        parts.rules.strip(),
        f"# Project instructions (AGENTS.md)\n\n{instructions}" if instructions else "",
        parts.memory.strip(),
        f"{_WORKSPACE}{parts.workspace}\nSystem: {parts.platform}\nSession started on: {parts.started_on}",
    ]
    return "\n\n".join(section for section in sections if section)


def told_workspace(messages: Sequence[Message]) -> str:
    """Return the workspace that a conversation was told last, "" if none."""
    for index in reversed(range(len(messages))):
        message = messages[index]
        if not isinstance(message, SystemMessage):
            continue
        if message.name == CONTEXT_NAME and message.content.startswith(_NOW):
            return message.content.removeprefix(_NOW).partition("\n")[0]
        if index == 0:
            _, found, rest = f"\n{message.content}".rpartition(f"\n{_WORKSPACE}")
            return rest.partition("\n")[0] if found else ""
    return ""


def workspace_change(workspace: str) -> SystemMessage:
    """Return the message that tells a conversation of another workspace than before."""
    rest = "Paths and commands are seen from there; what was read or done before lies elsewhere."
    text = f"{_NOW}{workspace}\n{rest}"
    return SystemMessage(text, CONTEXT_NAME)
