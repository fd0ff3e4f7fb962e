"""Making a conversation valid again, so that every provider takes it. Pure.

Providers refuse a call without a result, a result without a call, an answer that says
nothing, and, some of them, two questions in a row.
"""

from collections import Counter, deque
from collections.abc import Sequence

import msgspec

from odek.llm.arguments import normalise_arguments
from odek.messages import (
    CONTEXT_NAME,
    AssistantMessage,
    FunctionCall,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    is_context,
)

__all__ = ["NO_ANSWER", "NO_RESULT", "Repaired", "repair"]

NO_RESULT = "no result was recorded: the run ended before this call finished"
NO_ANSWER = "[no answer was recorded: the run ended before it was complete]"

# What was done, for one case and for several.
_NOTICES = {
    "moved": ("the system message was moved to the front", ""),
    "system": ("a second system message was kept as context", "{} more system messages were kept as context"),
    "unanswered": (
        "a call without a result got one that says so",
        "{} calls without results got some that say so",
    ),
    "orphan": ("a result without its call was left out", "{} results without their calls were left out"),
    "order": ("the results of a batch were put in order", "the results of {} batches were put in order"),
    "arguments": ("a call's arguments were no JSON object; mended", "the arguments of {} calls were mended"),
    "identity": ("a call without an id of its own got one", "{} calls without ids of their own got some"),
    "empty": ("an empty answer was left out", "{} empty answers were left out"),
    "open": ("the last question has no answer; that is said behind it", ""),
}


class Repaired(msgspec.Struct, frozen=True):
    """A valid conversation. ``notices`` say what was done; ``lossy`` whether text was left out."""

    messages: list[Message]
    notices: tuple[str, ...]
    lossy: bool


def repair(messages: Sequence[Message]) -> Repaired:
    """Return ``messages`` made valid; they are the same objects where nothing was wrong."""
    counts: Counter[str] = Counter()
    pending = _with_system_in_front(messages, counts)
    repaired: list[Message] = []
    at = 0
    while at < len(pending):
        message = pending[at]
        at += 1
        if isinstance(message, AssistantMessage) and message.tool_calls:
            end = at
            while end < len(pending) and not isinstance(pending[end], UserMessage | AssistantMessage):
                end += 1
            repaired += _batch(message, pending[at:end], counts)
            at = end
        elif isinstance(message, ToolMessage):
            counts["orphan"] += 1
        elif isinstance(message, AssistantMessage) and not message.content.strip():
            counts["empty"] += 1
        else:
            repaired.append(message)
    if repaired and isinstance(repaired[-1], UserMessage | ToolMessage):
        counts["open"] += 1
        repaired.append(AssistantMessage(NO_ANSWER))
    notices = tuple(
        one if counts[kind] == 1 else many.format(counts[kind])
        for kind, (one, many) in _NOTICES.items()
        if counts[kind]
    )
    return Repaired(repaired, notices, lossy=bool(counts["orphan"]))


def _with_system_in_front(messages: Sequence[Message], counts: Counter[str]) -> list[Message]:
    """Move the system message to the front; further ones become context, where they are."""
    result = list(messages)
    plain = [
        index
        for index, message in enumerate(result)
        if isinstance(message, SystemMessage) and not is_context(message)
    ]
    for index in plain[1:]:
        counts["system"] += 1
        result[index] = msgspec.structs.replace(result[index], name=CONTEXT_NAME)
    if plain and plain[0] > 0:
        counts["moved"] += 1
        result.insert(0, result.pop(plain[0]))
    return result


def _batch(asked: AssistantMessage, behind: Sequence[Message], counts: Counter[str]) -> list[Message]:
    """Return an answer with calls and exactly one result for each, in the order of the calls.

    ``behind`` is what stands between the answer and the next one.
    """
    results = [message for message in behind if isinstance(message, ToolMessage)]
    rest = [message for message in behind if not isinstance(message, ToolMessage)]
    positions = _positions(asked.tool_calls, results)
    used = [position for position in positions if position is not None]
    counts["unanswered"] += len(positions) - len(used)
    counts["orphan"] += len(results) - len(used)
    counts["order"] += used != sorted(used)

    calls: list[ToolCall] = []
    answers: list[Message] = []
    for number, (call, position) in enumerate(zip(asked.tool_calls, positions, strict=True)):
        valid = _valid_call(call, {known.id for known in calls}, number, counts)
        calls.append(valid)
        found = None if position is None else results[position]
        if found is not None and found.tool_call_id == valid.id:
            answers.append(found)
        else:
            answers.append(ToolMessage(NO_RESULT if found is None else found.content, valid.id))
    if any(new is not old for new, old in zip(calls, asked.tool_calls, strict=True)):
        asked = msgspec.structs.replace(asked, tool_calls=tuple(calls))
    return [asked, *answers, *rest]


def _positions(calls: Sequence[ToolCall], results: Sequence[ToolMessage]) -> list[int | None]:
    """Return which result belongs to each call: the first with its id, else one without an id."""
    free: dict[str, deque[int]] = {}
    for position, result in enumerate(results):
        free.setdefault(result.tool_call_id, deque()).append(position)
    named = [free[call.id].popleft() if free.get(call.id) else None for call in calls]
    nameless = free.get("", deque())
    return [
        position if position is not None else nameless.popleft() if nameless else None for position in named
    ]


def _valid_call(call: ToolCall, taken: set[str], number: int, counts: Counter[str]) -> ToolCall:
    """Return ``call`` with arguments that are a JSON object, and an id that no other call has."""
    arguments = normalise_arguments(call.arguments)
    if arguments != call.arguments.strip():
        counts["arguments"] += 1
    call_id = call.id
    while not call_id or call_id in taken:
        number += 1
        call_id = f"{call.id or 'call'}-{number}"
    if call_id != call.id:
        counts["identity"] += 1
    if call_id == call.id and arguments == call.arguments:
        return call
    return ToolCall(call_id, FunctionCall(call.name, arguments))
