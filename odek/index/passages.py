"""Long texts cut into passages that overlap by a line. Pure."""

__all__ = ["PASSAGE_CHARACTERS", "passages_of"]

PASSAGE_CHARACTERS = 900
"""Measured against 400, 600 and six turns: about as long as a summary, so that scores compare."""

# A text of up to this length is one passage: cutting a summary in two finds nothing better.
_WHOLE_CHARACTERS = 2 * PASSAGE_CHARACTERS


def passages_of(text: str) -> list[str]:
    """Return the passages of ``text``, at least one; each but the first begins with the line before it."""
    if len(text) <= _WHOLE_CHARACTERS:
        return [text]
    passages: list[str] = []
    lines: list[str] = []
    size = fresh = 0
    for line in _lines(text):
        lines.append(line)
        size += len(line)
        fresh += 1
        if size >= PASSAGE_CHARACTERS:
            passages.append("\n".join(lines))
            lines, size, fresh = [line], len(line), 0
            if size >= PASSAGE_CHARACTERS:  # repeating so long a line would make every passage twice
                lines, size = [], 0
    if fresh:
        passages.append("\n".join(lines))
    return passages or [""]


def _lines(text: str) -> list[str]:
    """Return the lines of ``text``; one without breaks is cut at blanks, or anywhere if it has none."""
    lines: list[str] = []
    for line in text.splitlines():
        rest = line
        while len(rest) > PASSAGE_CHARACTERS:
            cut = rest.rfind(" ", PASSAGE_CHARACTERS // 2, PASSAGE_CHARACTERS)
            cut = cut if cut > 0 else PASSAGE_CHARACTERS
            lines.append(rest[:cut])
            rest = rest[cut:].lstrip(" ")
        if rest.strip():
            lines.append(rest)
    return lines
