"""Replacing a passage of a text that a model quoted, exactly or nearly so. Pure."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

import msgspec

from odek.errors import ToolError
from odek.patterns import late_pattern
from odek.text import clip_line

__all__ = ["Replacement", "replace_passage"]

NAMED_MATCHES = 10
"""Line numbers listed when a passage occurs several times."""

COMPARED_LINES = 5000
"""Lines looked at for the most similar one, some 0.2 s; a hint is not worth more."""

_NUMBERED = late_pattern(r"\s*\d+│")
_INDENT = late_pattern(r"[ \t]*")


Ignored = Literal["", "indentation", "which blanks, quotes and dashes they are"]


class Replacement(msgspec.Struct, frozen=True):
    """A text after an edit. ``ignored`` is what had to be looked away from to find the passage."""

    text: str
    count: int
    ignored: Ignored = ""


class _Span(msgspec.Struct, frozen=True):
    """A place to replace, by offsets, and what comes there."""

    start: int
    stop: int
    new: str


def replace_passage(text: str, old: str, new: str, *, replace_all: bool = False) -> Replacement:
    """Replace ``old`` in ``text`` by ``new``, once or everywhere.

    Line ends are compared as LF; each that is replaced or added is written as its
    surroundings have it, CRLF or LF. If ``old`` does not occur as it is, blanks, quotes and
    dashes of print are taken for those of a keyboard, and stay where ``new`` does not change
    them. If it is not there either, whole lines are compared without their indentation and
    trailing blanks, and ``new`` is indented as the lines that it replaces.

    Raises:
        ToolError: ``old`` is empty, equal to ``new``, not there, or there more than once
            without ``replace_all``; the message says where or what is similar.
    """
    old, new = _lf(old), _lf(new)
    if not old:
        raise ToolError("old_text is empty; quote the text to replace, or use write_file for a new file")
    if old == new:
        raise ToolError("old_text and new_text are equal; there is nothing to change")
    flat = _lf(text)
    spans = [_Span(start, start + len(old), new) for start in _occurrences(flat, old)]
    ignored: Ignored = ""
    if not spans:
        ignored, spans = "which blanks, quotes and dashes they are", _lookalike_spans(flat, old, new)
    if not spans:
        ignored, spans = "indentation", _tolerant_spans(flat, old, new)
    if not spans:
        raise ToolError(_not_found(flat, old, new))
    if len(spans) > 1 and not replace_all:
        raise ToolError(_ambiguous(flat, spans))
    return Replacement(_splice(text, flat, spans), len(spans), ignored)


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _occurrences(text: str, part: str) -> list[int]:
    starts: list[int] = []
    position = text.find(part)
    while position >= 0:
        starts.append(position)
        position = text.find(part, position + len(part))
    return starts


def _lookalike_spans(text: str, old: str, new: str) -> list[_Span]:
    """Find what equals ``old`` but for characters that look alike."""
    from odek.tools.lookalikes import folded, with_own_characters

    same, wanted = folded(text), folded(old)
    if same is text and wanted is old:
        return []
    starts = _occurrences(same, wanted)
    stops = [start + len(old) for start in starts]
    return [
        _Span(start, stop, with_own_characters(text[start:stop], old, new))
        for start, stop in zip(starts, stops, strict=True)
    ]


def _splice(text: str, flat: str, spans: Sequence[_Span]) -> str:
    """Apply ``spans`` of ``flat`` to ``text``, the same text with its CRLFs."""
    crlf = [] if len(text) == len(flat) else _crlf_offsets(text)
    out: list[str] = []
    done = 0
    for span in spans:
        start, stop = (offset + bisect_left(crlf, offset) for offset in (span.start, span.stop))
        end = text.find("\n", start)
        if end < 0:
            end = text.rfind("\n")
        as_crlf = end > 0 and text[end - 1] == "\r"
        out += [text[done:start], span.new.replace("\n", "\r\n") if as_crlf else span.new]
        done = stop
    return "".join((*out, text[done:]))


def _crlf_offsets(text: str) -> list[int]:
    """Return where the LFs that belong to a CRLF are once the CRs are gone."""
    offsets: list[int] = []
    position = -1
    for piece in text.split("\r\n")[:-1]:
        position += len(piece) + 1
        offsets.append(position)
    return offsets


def _tolerant_spans(text: str, old: str, new: str) -> list[_Span]:
    """Find runs of whole lines that equal those of ``old`` but for white space at their ends."""
    wanted = old.removesuffix("\n").split("\n")
    keys = [line.strip() for line in wanted]
    if not any(keys):
        return []
    lines = text.split("\n")
    stripped = [line.strip() for line in lines]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    spans: list[_Span] = []
    row = 0
    while (row := _find_run(stripped, keys, row)) >= 0:
        end = row + len(keys)
        with_newline = old.endswith("\n") and end < len(lines)
        stop = starts[end] if with_newline else starts[end] - 1
        body = _reindent(new.removesuffix("\n") if old.endswith("\n") else new, wanted, lines[row:end])
        newline = "\n" if with_newline and new else ""  # whole lines stay whole; only "" takes one away
        spans.append(_Span(starts[row], stop, body + newline))
        row = end
    return spans


def _find_run(lines: list[str], run: list[str], start: int) -> int:
    """Return where ``run`` next begins in ``lines``, -1 if nowhere."""
    anchor = max(range(len(run)), key=lambda index: len(run[index]))  # the rarest line, most likely
    row = start + anchor
    while True:
        try:
            row = lines.index(run[anchor], row)
        except ValueError:
            return -1
        begin = row - anchor
        if lines[begin : begin + len(run)] == run:
            return begin
        row += 1


def _reindent(new: str, quoted: Sequence[str], found: Sequence[str]) -> str:
    """Return ``new`` with the indentation of ``quoted``, line by line, exchanged for that of ``found``."""
    indents: dict[str, str] = {}
    for mine, theirs in zip(quoted, found, strict=True):
        if mine.strip():
            indents.setdefault(_indent(mine), _indent(theirs))
    known = sorted(indents, key=len, reverse=True)

    def shift(line: str) -> str:
        indent = _indent(line)
        if not line.strip():
            return line
        if (base := next((base for base in known if indent.startswith(base)), None)) is not None:
            return indents[base] + _as_found(indent[len(base) :], indents) + line[len(indent) :]
        shallowest = known[-1]  # less indented than anything quoted: as much less than what is there
        depth = len(indents[shallowest]) - (len(shallowest) - len(indent))
        return indents[shallowest][: max(depth, 0)] + line[len(indent) :]

    return "\n".join(shift(line) for line in new.split("\n"))


def _indent(line: str) -> str:
    match = _INDENT.match(line)
    return match[0] if match else ""


def _as_found(extra: str, indents: dict[str, str]) -> str:
    """Return indentation beyond a known one as the file writes it: blanks as tabs, or tabs as blanks."""
    for mine, theirs in indents.items():
        if mine and theirs and set(mine + extra) == {" "} and set(theirs) == {"\t"}:
            width = max(len(mine) // len(theirs), 1)
            return "\t" * (len(extra) // width) + " " * (len(extra) % width)
        if mine and theirs and set(mine + extra) == {"\t"} and set(theirs) == {" "}:
            return " " * (len(extra) * (len(theirs) // len(mine)))
    return extra


def _line_number(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _ambiguous(text: str, spans: Sequence[_Span]) -> str:
    numbers = [str(_line_number(text, span.start)) for span in spans[:NAMED_MATCHES]]
    more = f" and {len(spans) - NAMED_MATCHES} more" if len(spans) > NAMED_MATCHES else ""
    return (
        f"old_text occurs {len(spans)} times, at lines {', '.join(numbers)}{more}; "
        "quote more of its surroundings, or set replace_all"
    )


def _not_found(text: str, old: str, new: str) -> str:
    import difflib

    quoted = [line for line in old.split("\n") if line.strip()]
    if quoted and all(_NUMBERED.match(line) for line in quoted):
        return "old_text is not in the file; it carries the line numbers of read_file: leave `12│` out"
    if len(new.strip()) >= 8 and new in text:  # a shorter text may be there by chance
        number = _line_number(text, text.index(new))
        return f"old_text is not in the file, but new_text is, at line {number}: the edit seems to be done"
    wanted = max(quoted or [old], key=lambda line: len(line.strip())).strip()[:200]
    first_at: dict[str, int] = {}
    for number, line in enumerate(text.split("\n")[:COMPARED_LINES], 1):
        first_at.setdefault(line.strip()[:200], number)
    close = difflib.get_close_matches(wanted, first_at, n=3, cutoff=0.6)
    if not close:
        return f"old_text is not in the file and nothing resembles `{clip_line(wanted, 80)}`; read it again"
    similar = "; ".join(
        f"line {first_at[line]}: `{clip_line(line, 120)}`" for line in sorted(close, key=first_at.__getitem__)
    )
    return f"old_text is not in the file; most similar to its line `{clip_line(wanted, 80)}`: {similar}"
