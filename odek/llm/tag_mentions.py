"""Whether a tag in Markdown that is being written is meant as one, or only named.

An answer about a chat template names its tags: in code, in quotes, in the middle of a
sentence. The template's own stand at the end of a thought.
"""

__all__ = ["TagContext"]

_BEFORE_A_NAME = frozenset("'\"\u2018\u201c\u00ab([{<=|/\\")
_BEHIND_A_NAME = frozenset("`'\"\u2019\u201d\u00bb*_")
_ENDS_OF_SENTENCES = frozenset(".!?:;)\u2026\u3002\uff01\uff1f")
_FENCES = ("```", "~~~")
_CODE_INDENTS = ("    ", "\t")
_HEAD_CHARACTERS = 8  # enough to see the indentation of a line and a fence behind it


class TagContext:
    """Follows text up to a tag; the time that this takes does not grow with what came before."""

    def __init__(self) -> None:
        self._is_fenced = False
        self._begin_line()

    def feed(self, text: str) -> None:
        """Take the next piece of the text."""
        *ended, line = text.split("\n")
        for part in ended:
            self._extend(part)
            self._end_line()
        self._extend(line)

    def is_meant(self, next_character: str) -> bool:
        """Tell whether a closing tag here ends a thought; ``next_character`` is behind it, "" for none."""
        is_code = self._is_fenced or self._backticks % 2 or self._head.startswith(_CODE_INDENTS)
        if is_code or next_character in _BEHIND_A_NAME:
            return False
        if not self._last:
            return True
        return self._last not in _BEFORE_A_NAME if self._is_glued else self._last in _ENDS_OF_SENTENCES

    def _begin_line(self) -> None:
        self._head = ""
        self._last = ""  # its last character that is not blank
        self._is_glued = False  # nothing blank came behind that
        self._backticks = 0

    def _extend(self, part: str) -> None:
        self._head = (self._head + part[:_HEAD_CHARACTERS])[:_HEAD_CHARACTERS]
        self._backticks += part.count("`")
        if visible := part.rstrip():
            self._last, self._is_glued = visible[-1], visible == part
        elif part:
            self._is_glued = False

    def _end_line(self) -> None:
        if not self._head.startswith(_CODE_INDENTS) and self._head.lstrip().startswith(_FENCES):
            self._is_fenced = not self._is_fenced
        self._begin_line()
