"""Reasoning that a server leaves in the answer's text, between tags.

Servers that do not know a model's template send ``<think>…</think>`` as text. Only what
the answer begins with counts: further on such a tag may be what the answer is about.
Where the template itself has written the opening tag, the answer has the closing one
alone, and all before it is reasoning.
"""

import re
from typing import Literal

from odek.llm.tag_mentions import TagContext
from odek.patterns import late_pattern

__all__ = ["ThinkTags", "without_opened_reasoning"]

_TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
}
_ANY_TAG = late_pattern("|".join(re.escape(tag) for pair in _TAGS.items() for tag in pair))
_LONGEST = max(map(len, _TAGS.values()))
_BEGUN_TAG = late_pattern(  # at the end of what there is; nearly every piece of an answer has none
    "(?:"
    + "|".join(
        re.escape(tag[:n]) for pair in _TAGS.items() for tag in pair for n in range(len(tag) - 1, 0, -1)
    )
    + r")\Z"
)


class ThinkTags:
    """Tells reasoning from text, piece by piece.

    ``end`` is the closing tag of an answer that is expected to begin inside of its reasoning,
    as ``lone_end`` of an earlier answer says; "" leaves that to be found out.
    """

    def __init__(self, end: str = "") -> None:
        self.lone_end = end
        """The closing tag that came, or is expected, without an opening one; "" if there is none."""
        self._place: Literal["before", "inside", "behind", "text", "open text"] = "before"
        self._end = end
        self._held = ""  # what may be a part of a tag
        self._inside: list[str] = []
        self._context = TagContext()

    @property
    def unended(self) -> str:
        """The reasoning so far if its closing tag has not come, else ""."""
        return "".join(self._inside) if self._place == "inside" else ""

    def feed(self, piece: str) -> tuple[str, str]:
        """Return what of ``piece`` is (reasoning, text); the beginning of a tag waits for the next piece.

        Where this sets ``lone_end``, the text of all earlier pieces turns out to be reasoning as well.
        """
        if self._place == "text":
            return "", piece
        rest, self._held = self._held + piece, ""
        if self._place == "before":
            begin = rest.lstrip()
            if any(tag.startswith(begin) and tag != begin for tag in _TAGS):  # also by nothing at all
                self._held = rest
                return "", ""
            tag = next((tag for tag in _TAGS if begin.startswith(tag)), None)
            if tag is not None:
                self._place, self._end, self.lone_end = "inside", _TAGS[tag], ""
                rest = begin[len(tag) :]
            else:
                self._place = "inside" if self._end else "open text"
        if self._place == "open text":
            return self._feed_open(rest, is_all=False)
        reasoning = ""
        if self._place == "inside":
            reasoning, end, rest = rest.partition(self._end)
            if not end:
                begun = _begun(reasoning, self._end)
                self._held = reasoning[len(reasoning) - begun :]
                reasoning = reasoning[: len(reasoning) - begun]
            self._inside.append(reasoning)
            if not end:
                return reasoning, ""
        return reasoning, self._behind(rest)

    def close(self) -> tuple[str, str]:
        """Return what still waited, as (reasoning, text); see ``feed``."""
        held, self._held = self._held, ""
        if self._place == "open text":
            return self._feed_open(held, is_all=True)
        if self._place != "inside":
            return "", held
        self.lone_end = ""
        self._inside.append(held)
        return held, ""

    def _behind(self, rest: str) -> str:
        """Return the text behind the reasoning, without the blank lines that set it off."""
        text = rest.lstrip()
        self._place = "text" if text else "behind"
        return text

    def _feed_open(self, rest: str, *, is_all: bool) -> tuple[str, str]:
        """Return what of ``rest`` is (reasoning, text), for an answer that began without a tag."""
        start = 0
        while match := _ANY_TAG.search(rest, start):
            if match[0] in _TAGS:  # a closing tag behind it has its opening one
                self._place = "text"
                return "", rest
            if match.end() == len(rest) and not is_all:  # what follows tells what it is
                break
            self._context.feed(rest[start : match.start()])
            if self._context.is_meant(rest[match.end() : match.end() + 1]):
                self.lone_end = match[0]
                return rest[: match.start()], self._behind(rest[match.end() :])
            self._context.feed(match[0])
            start = match.end()
        kept = len(rest)
        if match:
            kept = match.start()
        elif not is_all:
            kept -= len(begun[0]) if (begun := _BEGUN_TAG.search(rest, max(start, kept - _LONGEST))) else 0
        self._context.feed(rest[start:kept])
        self._held = rest[kept:]
        return "", rest[:kept]


def without_opened_reasoning(text: str) -> str:
    """Return a whole ``text`` without reasoning at its head of which only the closing tag is there."""
    tags = ThinkTags()
    _, answer = tags.feed(text)
    is_found = bool(tags.lone_end)
    _, rest = tags.close()
    if not tags.lone_end:
        return text
    return answer + rest if is_found else rest


def _begun(text: str, tag: str) -> int:
    """Return how many characters at the end of ``text`` may be the beginning of ``tag``."""
    return next((n for n in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:n])), 0)
