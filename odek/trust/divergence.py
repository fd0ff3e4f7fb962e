"""Whether a turn did what outside content suggested, and the person did not. Pure.

A resource (a path, a host, an address, a package, a command) that the agent acted on or
answered with is traced back: if the person, the system prompt or the workspace named it
first, all is well. If only outside content named it, the turn diverged, and where that
content names it is the evidence.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from odek.messages import AssistantMessage, Message, ToolMessage, UserMessage
from odek.text import clip_line
from odek.trust.effects import Effects
from odek.trust.fence import fenced, without_fenced
from odek.trust.paths import Where
from odek.trust.resources import Resource, in_action, in_answer
from odek.trust.risk import Risk

__all__ = ["Action", "Divergence", "find_divergences"]

MAX_FOUND = 12
"""Of one turn: who has seen so many needs no more to look into it."""

EVIDENCE_CHARACTERS = 160


class Action(msgspec.Struct, frozen=True):
    """A call that was allowed to run: what it declared, and its class."""

    call_id: str
    tool: str
    summary: str
    effects: Effects
    risk: Risk


class Divergence(msgspec.Struct, frozen=True):
    """A resource that only outside content had named, what was done with it, and the evidence."""

    how: Literal["acted", "answered"]
    resource: Resource
    source: str
    evidence: str
    source_call_id: str = ""
    action: Action | None = None


class _Outside(msgspec.Struct, frozen=True):
    """Outside content: where it came from and what it says, on one line, also in lower case."""

    position: int
    source: str
    call_id: str
    text: str
    lowered: str


def find_divergences(
    messages: Sequence[Message],
    actions: Mapping[str, Action],
    *,
    where: Where,
    is_own: Callable[[str], bool],
    is_delegated: bool = False,
) -> tuple[Divergence, ...]:
    """Return what diverged in the last turn of a conversation, each resource once.

    Args:
        messages: The whole conversation; the turn begins at the last message of the person.
        actions: The calls of the turn that were allowed, by their ids.
        where: What names of paths are seen from.
        is_own: Tells whether a path, as it is written, exists in the workspace.
        is_delegated: Whether the person's messages are tasks of another agent, fenced or not;
            what they name is not outside content then.
    """
    start = max((at for at, message in enumerate(messages) if isinstance(message, UserMessage)), default=0)
    outside = list(_outside(messages, is_delegated=is_delegated))
    if not outside:
        return ()
    known = _Known(messages, is_delegated=is_delegated)
    found: dict[tuple[str, str], Divergence] = {}
    for position in range(start, len(messages)):
        message = messages[position]
        if not isinstance(message, AssistantMessage):
            continue
        before = [content for content in outside if content.position < position]
        if not before:
            continue
        for call in message.tool_calls:
            if action := actions.get(call.id):
                for resource in in_action(action.effects, action.risk, where, is_own):
                    origin = _origin(resource, before, known, position)
                    if origin and resource.key not in found:
                        found[resource.key] = _divergence("acted", resource, origin, action)
        if not message.tool_calls:
            for resource in in_answer(message.content):
                origin = _origin(resource, before, known, position)
                if origin and resource.key not in found:
                    found[resource.key] = _divergence("answered", resource, origin)
    return tuple(found.values())[:MAX_FOUND]


def _outside(messages: Sequence[Message], *, is_delegated: bool) -> Iterator[_Outside]:
    for position, message in enumerate(messages):
        if isinstance(message, AssistantMessage) or (is_delegated and isinstance(message, UserMessage)):
            continue
        call_id = message.tool_call_id if isinstance(message, ToolMessage) else ""
        for source, body in fenced(message.content):
            text = " ".join(body.split())
            yield _Outside(position, source, call_id, text, text.lower())


class _Known:
    """What was named by somebody else than outside content, and from which message on."""

    def __init__(self, messages: Sequence[Message], *, is_delegated: bool) -> None:
        self._texts: list[tuple[int, str]] = []
        for position, message in enumerate(messages):
            # What the agent itself says may come from anywhere.
            if not isinstance(message, AssistantMessage):
                whole = is_delegated and isinstance(message, UserMessage)
                text = message.content if whole else without_fenced(message.content)
                self._texts.append((position, " ".join(text.lower().split())))

    def names(self, resource: Resource, position: int) -> bool:
        """Tell whether one of the messages before ``position`` names a resource, or what it belongs to."""
        names = (*resource.names, *resource.covers)
        return any(_place(text, name) >= 0 for at, text in self._texts if at < position for name in names)


def _origin(
    resource: Resource, outside: Iterable[_Outside], known: _Known, position: int
) -> tuple[_Outside, int] | None:
    """Return the first content that names ``resource``, and where; None if others named it before."""
    for content in outside:
        for name in resource.names:
            if (at := _place(content.lowered, name)) >= 0:
                if known.names(resource, position) or resource.belongs_to(content.source.lower()):
                    return None
                return content, at
    return None


_INSIDE_A_NAME = re.compile(r"[\w-]")


def _place(text: str, name: str) -> int:
    """Return where ``text`` names ``name``, and not something longer that contains it; -1 for nowhere."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        before, after, beyond = text[max(at - 1, 0) : at], text[end : end + 1], text[end + 1 : end + 2]
        starts = not (_INSIDE_A_NAME.match(before) and _INSIDE_A_NAME.match(name))
        if starts and not (_INSIDE_A_NAME.match(after) or (after == "." and beyond.isalnum())):
            return at
        at = text.find(name, at + 1)
    return -1


def _divergence(
    how: Literal["acted", "answered"],
    resource: Resource,
    origin: tuple[_Outside, int],
    action: Action | None = None,
) -> Divergence:
    content, at = origin
    start = max(at - EVIDENCE_CHARACTERS // 3, 0)
    excerpt = content.text[start : start + 2 * EVIDENCE_CHARACTERS]
    evidence = clip_line(("…" if start else "") + excerpt, EVIDENCE_CHARACTERS)
    return Divergence(how, resource, content.source, evidence, content.call_id, action)
