"""Unified diffs of texts of any size, in bounded time."""

from collections.abc import Iterator, Sequence

__all__ = ["count_changes", "unified_diff"]

CONTEXT_LINES = 3
ALIGNED_LINES = 20_000
"""Changed regions up to this size, both sides together, are aligned line by line. That takes
0.3 s at worst; the lines of larger ones are shown as all removed and all added."""

_Opcode = tuple[str, int, int, int, int]


def unified_diff(old: str | None, new: str, shown: str) -> str:
    """Return the change from ``old`` to ``new`` as a unified diff, "" when there is none.

    None as ``old`` means that there was no file. Lines end at LF alone.
    """
    before, after = _lines(old or ""), _lines(new)
    hunks = "".join(_hunks(before, after))
    if not hunks and old is not None:
        return ""
    source = "/dev/null" if old is None else f"a/{shown}"
    return f"--- {source}\n+++ b/{shown}\n{hunks}"


def count_changes(diff: str) -> str:
    """Return how many lines ``diff`` adds and removes, such as ``+3 -1``."""
    body = diff.split("\n")[2:]
    added = sum(line.startswith("+") for line in body)
    removed = sum(line.startswith("-") for line in body)
    return f"+{added} -{removed}"


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    if lines[-1] == "\n":
        lines.pop()
    else:
        lines[-1] += "\\ No newline at end of file\n"
    return lines


def _hunks(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    for group in _grouped(before, after):
        _, old_start, _, new_start, _ = group[0]
        _, _, old_stop, _, new_stop = group[-1]
        yield f"@@ -{_range(old_start, old_stop)} +{_range(new_start, new_stop)} @@\n"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[i1:i2])
            else:
                yield from (f"-{line}" for line in before[i1:i2])
                yield from (f"+{line}" for line in after[j1:j2])


def _range(start: int, stop: int) -> str:
    """Return the lines from ``start`` to ``stop`` as the header of a hunk counts them."""
    length = stop - start
    if length == 1:
        return f"{start + 1}"
    return f"{start + 1 if length else start},{length}"


def _grouped(before: Sequence[str], after: Sequence[str]) -> Iterator[list[_Opcode]]:
    """Yield the hunks; what is equal at both ends is set aside first, which is most of most files."""
    shorter = min(len(before), len(after))
    head = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    tail = next((i for i in range(shorter - head) if before[-1 - i] != after[-1 - i]), shorter - head)
    old_stop, new_stop = len(before) - tail, len(after) - tail
    if head == old_stop and head == new_stop:
        return
    start, end = max(head - CONTEXT_LINES, 0), min(tail, CONTEXT_LINES)
    if old_stop + new_stop - 2 * head > ALIGNED_LINES:
        yield [
            ("equal", start, head, start, head),
            ("replace", head, old_stop, head, new_stop),
            ("equal", old_stop, old_stop + end, new_stop, new_stop + end),
        ]
        return
    import difflib

    matcher = difflib.SequenceMatcher(None, before[start : old_stop + end], after[start : new_stop + end])
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        yield [(tag, i1 + start, i2 + start, j1 + start, j2 + start) for tag, i1, i2, j1, j2 in group]
