"""The model that needs no key: rules in this process, and no language model.

It reads a small set of requests (``offline_rules``), asks for the tools that do
them, and reports what the tools returned (``offline_report``). It keeps nothing
between requests: where it is in a turn follows from the messages alone. It is
deterministic and makes no network request.
"""

import re

import msgspec
import trio

from odek.events import Usage
from odek.llm.model import FinishReason, ModelRequest, ModelResponse, OnModelEvent, TextPiece
from odek.llm.offline_report import report
from odek.llm.offline_rules import Call, parse_requests
from odek.llm.offline_summary import summarize
from odek.messages import (
    AssistantMessage,
    FunctionCall,
    Message,
    SystemMessage,
    ToolCall,
    UserMessage,
)
from odek.trust.fence import DELEGATED_REQUEST, strip_fences

__all__ = ["EXTRACTION_MARKER", "OfflineModel", "respond"]

EXTRACTION_MARKER = "[odek:extract]"
"""Marks a prompt that asks for a summary.

In a system message it makes the last user message the transcript; in a user message
all that follows it is. If the prompt names JSON, the answer is ``{"summary": "…"}``,
else the summary itself; ``NONE`` in its place says that there is nothing to keep.
"""


class OfflineModel:
    """Implements ``Model`` by rules; see the module."""

    name = "offline"
    context_window: int | None = None

    async def complete(self, request: ModelRequest, on_event: OnModelEvent) -> ModelResponse:
        """Answer by rule; the text arrives word by word.

        ``max_tokens`` bounds the answer in words, which are the nearest thing to tokens
        here. Nothing is tokenised, so the usage stays unknown rather than estimated.
        """
        message = respond(request)
        pieces = re.findall(r"\s*\S+\s*", message.content)
        finish: FinishReason = "tool_calls" if message.tool_calls else "stop"
        if request.max_tokens is not None and len(pieces) > request.max_tokens:
            pieces = pieces[: request.max_tokens]
            message = AssistantMessage("".join(pieces))
            finish = "length"
        for piece in pieces:
            on_event(TextPiece(piece))
            await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        return ModelResponse(message, Usage(), finish)


def respond(request: ModelRequest) -> AssistantMessage:
    """Return the next message of the conversation.

    It is a summary if one is asked for, else the next stage of tool calls, else the
    report of all that was done since the person last spoke.
    """
    if (extraction := _extract(request.messages)) is not None:
        return AssistantMessage(extraction)
    task, since = _last_task(request.messages)
    stages = parse_requests(_own_words(task))
    offered = {tool.name for tool in request.tools}
    batches = [
        calls
        for stage in stages
        if (calls := [step for step in stage if isinstance(step, Call) and step.tool in offered])
    ]
    done = sum(isinstance(message, AssistantMessage) and bool(message.tool_calls) for message in since)
    if done < len(batches):
        first = 1 + max(map(_number, request.messages), default=0)
        return AssistantMessage(
            "", tuple(_tool_call(call, first + n) for n, call in enumerate(batches[done]))
        )
    return AssistantMessage(report([step for stage in stages for step in stage], since, offered))


def _last_task(messages: tuple[Message, ...]) -> tuple[str, tuple[Message, ...]]:
    """Return what the person said last, "" if nothing, and all that followed it."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage):
            return message.content, messages[index + 1 :]
    return "", messages


def _own_words(text: str) -> str:
    """Leave out attached files and fenced outside content: they are not the person's request.

    Of a request that another agent has delegated, the fence is what there is to do.
    """
    if text.startswith(DELEGATED_REQUEST):
        return strip_fences(text.removeprefix(DELEGATED_REQUEST))
    unfenced = re.sub(r"<untrusted_content\b.*?</untrusted_content\b[^>]*>", "", text, flags=re.DOTALL)
    return re.split(r"^Attached file [^\n]*:\n```", unfenced, maxsplit=1, flags=re.MULTILINE)[0]


def _extract(messages: tuple[Message, ...]) -> str | None:
    """Answer a prompt that is marked as asking for a summary; None for any other."""
    task, _ = _last_task(messages)
    prompts = [message.content for message in messages if isinstance(message, SystemMessage)]
    marked = [prompt for prompt in prompts if EXTRACTION_MARKER in prompt]
    if marked:
        instructions, transcript = marked[0], task
    else:
        instructions, marker, transcript = task.partition(EXTRACTION_MARKER)
        if not marker:
            return None
    summary = summarize(transcript) or "NONE"
    if re.search(r"\bjson\b", instructions, re.IGNORECASE):
        return msgspec.json.encode({"summary": summary}).decode()
    return summary


def _number(message: Message) -> int:
    """Return the highest number that a call id of ours has in ``message``, or 0."""
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    matches = (re.fullmatch(r"offline-(\d{1,9})", call.id) for call in calls)
    return max((int(match[1]) for match in matches if match), default=0)


def _tool_call(call: Call, number: int) -> ToolCall:
    """Ids are numbered on over the whole session, so that none occurs twice."""
    arguments = msgspec.json.encode(call.arguments).decode()
    return ToolCall(f"offline-{number}", FunctionCall(call.tool, arguments))
