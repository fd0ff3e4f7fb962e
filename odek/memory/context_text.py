"""What the memory says beside the person's message, in its fixed order. Pure.

The buffer, the episodes, the warnings. It goes behind the history and stays there, so that
everything before it is the same in every request.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from odek.memory.facts import Facts, Target

if TYPE_CHECKING:
    from odek.memory.recall import Document

__all__ = [
    "WARN_PERCENT",
    "buffer_text",
    "context_text",
    "episodes_text",
    "facts_text",
    "fill_warning",
    "shown_episodes",
]

WARN_PERCENT = 90
"""From here on a file is nearly full: one more entry of usual length may not fit."""

_SECTIONS: dict[Target, str] = {"user": "── User Profile ──", "env": "── Environment ──"}
_BUFFER_TITLE = "── This Session So Far ──"
_EPISODES_TITLE = "── Earlier Sessions ──"
_QUOTATION_NOTE = "Said then, word by word:"
_EPISODES_NOTE = (
    "Records of earlier sessions that may bear on the message; what is true may have changed since."
)


def context_text(buffer: Sequence[str], episodes: "Sequence[Document]", files: Iterable[Facts]) -> str:
    """Return the whole, "" when there is nothing to say."""
    parts = [buffer_text(buffer), episodes_text(episodes), *map(fill_warning, files)]
    return "\n\n".join(filter(None, parts))


def buffer_text(lines: Sequence[str]) -> str:
    """Return the lines of the last turns, under a title."""
    return "\n".join([_BUFFER_TITLE, *lines]) if lines else ""


def episodes_text(episodes: "Sequence[Document]") -> str:
    """Return the episodes, each whole, with its session and its date, and what is quoted of it."""
    if not episodes:
        return ""
    return "\n\n".join([f"{_EPISODES_TITLE}\n{_EPISODES_NOTE}", *map(_episode, episodes)])


def facts_text(files: Sequence[Facts]) -> str:
    """Return the facts for the system prompt, without those that must not be shown; "" for none."""
    sections: list[str] = []
    for facts in files:
        texts = [fact.text for fact in facts.entries if not fact.rejection]
        if texts:
            sections += [_SECTIONS[facts.target], "\n§\n".join(texts)]
    if not sections:
        return ""
    used = sum(facts.used_bytes for facts in files)
    limit = sum(facts.limit_bytes for facts in files)
    percent = used * 100 // limit if limit else 100
    return "\n".join([f"═══ MEMORY [{percent}% — {used}/{limit} chars] ═══", *sections])


def shown_episodes(contexts: Iterable[str], session_ids: Iterable[str]) -> frozenset[str]:
    """Return which of the episodes are in one of the ``contexts`` already."""
    text = "\n".join(contexts)
    return frozenset(session_id for session_id in session_ids if f"[session {session_id}, " in text)


def fill_warning(facts: Facts) -> str:
    """Return one line for the model if the file is nearly full, else ""."""
    if facts.percent < WARN_PERCENT:
        return ""
    return (
        f"⚠ {facts.target} fact file {facts.percent}% full — "
        "evict stale entries via memory remove before your next add."
    )


def _episode(document: "Document") -> str:
    head = f"[session {document.session_id}, {document.created_at[:10] or 'date unknown'}]"
    text = document.text
    if document.untrusted:  # approved by a setting alone: what outsiders wrote stays data
        from odek.trust.fence import fence

        text = fence(text, source=f"session {document.session_id}")
    return "\n".join([head, text, *_quoted(document.quotation)])


def _quoted(text: str) -> list[str]:
    """Return what was said word by word, so that nobody takes it for the record or for an order."""
    return [_QUOTATION_NOTE, *(f"> {line}" for line in text.splitlines())] if text else []
