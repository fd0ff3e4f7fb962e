"""From a conversation to the text that a model summarises, and from its reply to what is stored. Pure."""

import re
from collections.abc import Sequence
from typing import assert_never

import msgspec

from odek.memory.reply_json import json_object
from odek.messages import (
    CONTEXT_NAME,
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from odek.text import clip_bytes, clip_line, clip_middle, plain

__all__ = [
    "SUMMARY_LIMIT_BYTES",
    "Extracted",
    "build_transcript",
    "conversation",
    "cut_summary",
    "head_and_tail",
    "parse_combined",
    "parse_facts",
    "parse_summary",
    "without_outside",
]

MESSAGE_LIMIT_BYTES = 4 * 1024
TRANSCRIPT_LIMIT_BYTES = 32 * 1024
HEAD_LIMIT_BYTES = 8 * 1024
"""Of a long transcript: the original task. The rest of the limit is the outcome."""

SUMMARY_LIMIT_BYTES = 2048

FACTS_OF_EACH_KIND = 5
"""As the prompt asks; a reply with more was not written with care."""

FACT_LIMIT_BYTES = 512
"""A fact is a sentence. No measurement behind this."""

# Recalled text shorter than this is as likely said by chance: "uses tabs".
_RECALLED_MINIMUM_CHARACTERS = 24

# What the memory tool says of a write is about something new.
_WRITES = re.compile(r'"action"\s*:\s*"(?:add|replace|remove|add_atom)"')

_NOTE_BYTES = 48  # what the note about a cut takes of a message's limit
_FENCED = re.compile(r"<untrusted_content\b.*?(?:</untrusted_content\b[^>]*>|\Z)", re.DOTALL)
_ATTACHED = re.compile(r"^Attached file ([^\n]*):\n(`{3,})\n.*?(?:\n\2$|\Z)", re.DOTALL | re.MULTILINE)
_SENTENCE = re.compile(r"[^\n.!?。！？]+(?:[.!?。！？]+|\n|\Z)|[.!?。！？\n]+")  # noqa: RUF001 - CJK full stops
_SENTENCE_END = re.compile(r"[.!?…](?=[\"'”’)\]]*(?:\s|\Z))[\"'”’)\]]*|[。！？][」』”’]*")  # noqa: RUF001 - as above


class Extracted(msgspec.Struct, frozen=True):
    """What a reply says. ``summary`` "" means that there is nothing to keep."""

    summary: str = ""
    user: tuple[str, ...] = ()
    env: tuple[str, ...] = ()


def build_transcript(messages: Sequence[Message]) -> str:
    """Return what was said, fit for a summary, or "" when the session only recalled.

    Instructions and whatever the memory or the runtime put in are left out; a tool's result
    and text from outside become notes of their size. A message takes at most 4 KiB, the whole
    at most 32 KiB: beyond that the middle goes.
    """
    recalled = _recalled_text(messages)
    names = {call.id: call.name for call in _calls(messages)}
    parts: list[str] = []
    answered = worked = False
    for message in messages:
        part = ""
        match message:
            case UserMessage(content):
                part = _labelled("The person said", without_outside(content))
            case AssistantMessage(content):
                own = _without_recalled(without_outside(content), recalled)
                own = own if _bare(own) else ""  # marks of emphasis may be left of a quotation
                answered |= bool(own)
                part = _labelled("The agent said", own)
            case ToolMessage(content, call_id):
                name = names.get(call_id, "tool")
                worked |= name != "memory"
                part = f"[{clip_line(name, 60)} returned {len(content.encode()):,} bytes]"
            case SystemMessage():
                pass
            case _:
                assert_never(message)
        if part:
            parts.append(part)
    if not (answered or worked):
        return ""
    return _fit("\n\n".join(parts))


def conversation(messages: Sequence[Message]) -> list[str]:
    """Return what the person and the agent said in their own words, a line each, as a transcript has it.

    Nothing of tools, instructions or recalled text. A line begins with who said it and has at most
    4 KiB; of all that is beyond 32 KiB the middle is left out.
    """
    recalled = _recalled_text(messages)
    lines: list[str] = []
    for message in messages:
        match message:
            case UserMessage(content):
                lines.append(_labelled("Person", " ".join(without_outside(content).split())))
            case AssistantMessage(content):
                own = _without_recalled(without_outside(content), recalled)
                lines.append(_labelled("Agent", " ".join(own.split()) if _bare(own) else ""))
            case ToolMessage() | SystemMessage():
                pass
            case _:
                assert_never(message)
    return head_and_tail([line for line in lines if line], HEAD_LIMIT_BYTES, TRANSCRIPT_LIMIT_BYTES)


def head_and_tail(lines: Sequence[str], head_bytes: int, limit_bytes: int) -> list[str]:
    """Return the first ``lines`` within the head's limit, and the last ones within the rest of the limit."""
    sizes = [len(line.encode("utf-8", "surrogatepass")) for line in lines]
    if sum(sizes) <= limit_bytes:
        return list(lines)
    first, last, room = 0, len(lines), head_bytes
    while sizes[first] <= room:
        room -= sizes[first]
        first += 1
    room = limit_bytes - head_bytes
    while last > first and sizes[last - 1] <= room:
        last -= 1
        room -= sizes[last]
    return [*lines[:first], *lines[last:]]


def _labelled(label: str, text: str) -> str:
    stripped = plain(text).strip()  # a pasted log has colours, and no memory takes control characters
    return f"{label}: {_clip(stripped, MESSAGE_LIMIT_BYTES - len(label) - 2)}" if stripped else ""


def _clip(text: str, limit_bytes: int) -> str:
    if len(text.encode()) <= limit_bytes:
        return text
    return clip_middle(text, limit_bytes - _NOTE_BYTES)


def without_outside(text: str) -> str:
    """Put a note in the place of fenced content and of attached files: neither is what was said."""
    unfenced = _FENCED.sub(lambda match: f"[outside content, {len(match[0].encode()):,} bytes]", text)
    return _ATTACHED.sub(
        lambda match: f"[attached file {clip_line(match[1], 100)}, {len(match[0].encode()):,} bytes]",
        unfenced,
    )


def _calls(messages: Sequence[Message]) -> list[ToolCall]:
    return [
        call for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls
    ]


def _recalled_text(messages: Sequence[Message]) -> str:
    """Return all that the memory put into the conversation, in a form that quotations are found in.

    That is the block of the system prompt, the context behind the history, and what the
    memory tool returned.
    """
    recalling = {
        call.id for call in _calls(messages) if call.name == "memory" and not _WRITES.search(call.arguments)
    }
    texts: list[str] = []
    for message in messages:
        match message:
            case SystemMessage(content, name):
                _, banner, block = content.partition("═══ MEMORY")
                texts.append(content if name == CONTEXT_NAME else banner and block)
            case ToolMessage(content, call_id) if call_id in recalling:
                texts.append(content)
            case _:
                pass
    return "\n".join(_bare(text) for text in texts if text)


def _without_recalled(text: str, recalled: str) -> str:
    """Leave out sentences that the memory itself put in: remembered again, they would never fade."""
    if not recalled:
        return text
    return "".join(
        sentence
        for sentence in _SENTENCE.findall(text)
        if len(bare := _bare(sentence)) < _RECALLED_MINIMUM_CHARACTERS or bare not in recalled
    )


def _bare(text: str) -> str:
    """Reduce text to its words, so that marks and line ends do not hide a quotation."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _fit(text: str) -> str:
    """Keep the head and the tail of a long transcript, cut between lines where one is near."""
    size = len(text.encode())
    if size <= TRANSCRIPT_LIMIT_BYTES:
        return text
    head = clip_bytes(text, HEAD_LIMIT_BYTES)
    head = head[: head.rfind("\n") if "\n" in head[len(head) // 2 :] else None].rstrip()
    room = TRANSCRIPT_LIMIT_BYTES - len(head.encode()) - 2 * _NOTE_BYTES
    tail = text.encode()[-room:].decode("utf-8", "ignore")
    at = tail.find("\n", 0, len(tail) // 2)
    tail = tail[at + 1 :].lstrip()
    left_out = size - len(head.encode()) - len(tail.encode())
    return f"{head}\n\n[… {left_out:,} bytes of the session left out …]\n\n{tail}"


def cut_summary(text: str, limit_bytes: int = SUMMARY_LIMIT_BYTES) -> str:
    """Return ``text`` within the limit, cut behind the last sentence in the second half of it.

    Without one there the cut is between words, and without those between characters.
    """
    text = text.strip()
    kept = clip_bytes(text, limit_bytes)
    if kept == text:
        return text
    half = len(clip_bytes(text, limit_bytes // 2))
    # What follows the cut decides whether a full stop in the last place ends a sentence.
    ends = [match.end() for match in _SENTENCE_END.finditer(text, half) if match.end() <= len(kept)]
    if ends:
        return kept[: ends[-1]]
    space = kept.rfind(" ", half)
    return kept[: space if space > 0 else None].rstrip()


def parse_summary(reply: str) -> str:
    """Return the record in a reply to the single question, "" when it holds none."""
    from odek.memory.reply_filter import looks_like_episode, tidy_reply

    text = tidy_reply(reply)
    return cut_summary(text) if looks_like_episode(text) else ""


def parse_combined(reply: str) -> Extracted | None:
    """Return what the reply to the combined question says, None when it cannot be understood."""
    value = json_object(reply)
    if value is None or not isinstance(summary := value.get("summary"), str | None):
        return None
    if "summary" not in value and "facts" not in value:
        return None
    facts = value.get("facts")
    found = facts if isinstance(facts, dict) else value
    return Extracted(parse_summary(summary or ""), _facts(found.get("user")), _facts(found.get("env")))


def parse_facts(reply: str) -> Extracted:
    """Return the facts in a reply to the question for facts; none when it cannot be understood."""
    value = json_object(reply) or {}
    nested = value.get("facts")
    found = nested if isinstance(nested, dict) else value
    return Extracted("", _facts(found.get("user")), _facts(found.get("env")))


def _facts(value: object) -> tuple[str, ...]:
    """Return the usable facts of a list: sentences, each once, none too long, not too many."""
    items = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    texts = (" ".join(item.split()) for item in items if isinstance(item, str))
    usable = [
        text for text in texts if text and len(text.encode()) <= FACT_LIMIT_BYTES and not _is_none(text)
    ]
    return tuple(dict.fromkeys(usable))[:FACTS_OF_EACH_KIND]


def _is_none(text: str) -> bool:
    return not text.strip("\"'`*. ") or text.strip("\"'`*. ").casefold() in {"none", "n/a", "null"}
