"""What the offline model says at the end of a turn: what was called, and what came back.

Results are quoted, never judged: an error reads as the error that the tool gave.
"""

import re
from collections.abc import Collection, Sequence
from typing import assert_never

from odek.llm.arguments import readable_arguments
from odek.llm.offline_rules import EXAMPLES, Call, Help, NotUnderstood, Step
from odek.messages import AssistantMessage, Message, ToolCall, ToolMessage
from odek.text import clip_line
from odek.trust.fence import strip_fences

__all__ = ["report"]

# A result is quoted up to here; the whole of it is in the transcript. No measurement behind either.
_QUOTED_LINES = 12
_QUOTED_LINE_CHARACTERS = 200


def report(steps: Sequence[Step], since: Sequence[Message], offered: Collection[str]) -> str:
    """Return the answer to ``steps``, given all ``since`` the person spoke; it is never empty.

    Steps whose tool is not ``offered`` are named as not done, the ones that no rule fits
    as not understood.
    """
    results = {message.tool_call_id: message.content for message in since if isinstance(message, ToolMessage)}
    calls = [
        call for message in since if isinstance(message, AssistantMessage) for call in message.tool_calls
    ]
    paragraphs = [_describe(call, results.get(call.id)) for call in calls]
    unknown: list[str] = []
    wants_help = not steps
    for step in steps:
        match step:
            case Call(text, tool):
                if tool not in offered:
                    paragraphs.append(f"Not done: {_quote(text)}. The tool `{tool}` is not offered here.")
            case NotUnderstood(text):
                unknown.append(text)
            case Help():
                wants_help = True
            case _:
                assert_never(step)
    if unknown:
        paragraphs.append(f"Not understood, so not done: {_quote('; '.join(unknown))}.")
    if wants_help or len(unknown) == len(steps):
        paragraphs.append(_help())
    return "\n\n".join(paragraphs) or _help()


def _help() -> str:
    examples = "\n".join(f"- `{example}`" for example in EXAMPLES)
    return (
        "This is odek's offline model: a set of rules, not a language model. It understands:\n\n"
        f"{examples}\n\n"
        "One request a line; `, then` puts the requests of a line in order.\n\n"
        "For a language model, set `ODEK_API_KEY`, or name any chat-completions endpoint:\n"
        "`odek run --model llama3.2 --base-url http://localhost:11434/v1 TASK`."
    )


def _describe(call: ToolCall, result: str | None) -> str:
    label = f"`{_label(call)}`"
    if result is None:
        return f"{label} has no result."
    unfenced = strip_fences(result)
    fenced = unfenced != result
    text = unfenced.strip("\n")
    if not text.strip():
        return f"{label} returned nothing."
    lines = text.splitlines()
    if len(lines) == 1 and not fenced and len(text) <= _QUOTED_LINE_CHARACTERS:
        return f"{label}: {text}"
    origin = " from outside, quoted as data" if fenced else ""
    return f"{label} returned {_count(len(lines))}{origin}:\n\n{_code_block(lines)}"


def _label(call: ToolCall) -> str:
    """Return the tool's name and its arguments in a few words, safe inside backticks."""
    return clip_line(f"{call.name} {readable_arguments(call.arguments)}".replace("`", "'"), 76)


def _code_block(lines: Sequence[str]) -> str:
    """Quote the first lines in a fence that none of them can close."""
    quoted = [
        line if len(line) <= _QUOTED_LINE_CHARACTERS else line[: _QUOTED_LINE_CHARACTERS - 1] + "…"
        for line in lines[:_QUOTED_LINES]
    ]
    longest = max((len(run) for line in quoted for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    rest = len(lines) - len(quoted)
    more = f"\n\n… and {_count(rest)} more." if rest else ""
    return "\n".join([f"{fence}text", *quoted, fence]) + more


def _count(lines: int) -> str:
    return f"{lines:,} line{'' if lines == 1 else 's'}"


def _quote(text: str) -> str:
    return f"“{clip_line(text, 100)}”"
