"""Reasoning that a server leaves at the head of the answer's text, between tags.

Servers that do not know a model's template send ``<think>…</think>`` as text. Only what
the answer begins with counts: further on such a tag may be what the answer is about.
"""

from typing import Literal

__all__ = ["ThinkTags"]

_TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
}


class ThinkTags:
    """Tells reasoning from text, piece by piece."""

    def __init__(self) -> None:
        self._place: Literal["before", "inside", "behind", "text"] = "before"
        self._end = ""
        self._held = ""  # what may be a part of a tag
        self._inside: list[str] = []

    @property
    def unended(self) -> str:
        """The reasoning so far if its closing tag has not come, else ""."""
        return "".join(self._inside) if self._place == "inside" else ""

    def feed(self, piece: str) -> tuple[str, str]:
        """Return what of ``piece`` is (reasoning, text); the beginning of a tag waits for the next piece."""
        if self._place == "text":
            return "", piece
        rest, self._held = self._held + piece, ""
        reasoning = ""
        if self._place == "before":
            begin = rest.lstrip()
            if any(tag.startswith(begin) and tag != begin for tag in _TAGS):  # also by nothing at all
                self._held = rest
                return "", ""
            tag = next((tag for tag in _TAGS if begin.startswith(tag)), None)
            if tag is None:
                self._place = "text"
                return "", rest
            self._place, self._end = "inside", _TAGS[tag]
            rest = begin[len(tag) :]
        if self._place == "inside":
            reasoning, end, rest = rest.partition(self._end)
            if not end:
                begun = _begun(reasoning, self._end)
                self._held = reasoning[len(reasoning) - begun :]
                reasoning = reasoning[: len(reasoning) - begun]
            self._inside.append(reasoning)
            if not end:
                return reasoning, ""
            self._place = "behind"
        text = rest.lstrip()
        if text:
            self._place = "text"
        return reasoning, text

    def close(self) -> tuple[str, str]:
        """Return what still waited, as (reasoning, text)."""
        held, self._held = self._held, ""
        if self._place != "inside":
            return "", held
        self._inside.append(held)
        return held, ""


def _begun(text: str, tag: str) -> int:
    """Return how many characters at the end of ``text`` may be the beginning of ``tag``."""
    return next((n for n in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:n])), 0)
