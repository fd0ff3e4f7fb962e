"""Which messages of a conversation belong together, and which may go first. Pure."""

from collections.abc import Sequence
from itertools import pairwise

from odek.messages import Message, SystemMessage, ToolMessage, UserMessage, is_context

__all__ = ["removable_groups", "turns_of"]


def turns_of(messages: Sequence[Message]) -> list[range]:
    """Return the indices of each turn: a question, the context in front of it, and what followed.

    What stands before the first question, but the system message, belongs to the first turn.
    """
    starts: list[int] = []
    for index, message in enumerate(messages):
        if isinstance(message, UserMessage):
            start = index
            while start > 0 and is_context(messages[start - 1]):
                start -= 1
            starts.append(start)
    if not starts:
        return []
    starts[0] = int(_begins_with_instructions(messages))
    return [range(start, end) for start, end in zip(starts, [*starts[1:], len(messages)], strict=True)]


def removable_groups(messages: Sequence[Message]) -> list[range]:
    """Return groups of indices in the order in which they may be left out.

    First the whole turns but the newest, oldest first; then, within the newest, each answer
    with the results of its calls. The system message, the newest question and the newest
    answer are in none.
    """
    turns = turns_of(messages)
    if not turns:
        return []
    *older, newest = turns
    starts = [
        index
        for index in newest
        if not isinstance(messages[index], UserMessage | SystemMessage | ToolMessage)
    ]
    return [*older, *(range(start, end) for start, end in pairwise(starts))]


def _begins_with_instructions(messages: Sequence[Message]) -> bool:
    return isinstance(messages[0], SystemMessage) and not is_context(messages[0])
