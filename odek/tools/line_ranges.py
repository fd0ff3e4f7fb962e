"""Lines of a file, for ``read_file``; loaded by its first call."""

import os
import stat
from itertools import islice
from pathlib import Path

import trio

from odek.errors import ToolError
from odek.text import without_surrogates
from odek.tools.paths import Target, confirm, locate_existing, mode_of, shown_name
from odek.tools.regular import chunks, kind_of, open_regular
from odek.tools.textfile import SNIFFED_BYTES, Line, LineReader, binary_kind, decode_lines, sniff, utf8

__all__ = ["locate_file", "read_lines"]

OUTPUT_BYTES = 100_000
"""About 25,000 tokens: a model that needs more asks for the next range."""

LINE_BYTES = 20_000
"""Kept of one line, so that a minified file does not take the whole room; no measurement behind this."""

COUNTED_BYTES = 16 * 1024 * 1024
"""Files up to this size are read to the end, some 20 ms, to say how many lines they have."""


def locate_file(argument: str, workspace: Path) -> Target:
    """Return the file that ``argument`` names. Blocking.

    Raises:
        ToolError: it is missing, and what is near; or something else is there.
    """
    target = locate_existing(argument, workspace)
    mode = mode_of(target, _nearby)
    if not stat.S_ISREG(mode):
        hint = "; tree and glob list it" if stat.S_ISDIR(mode) else ""
        raise ToolError(f"{target.shown} is {kind_of(mode)}, not a regular file{hint}")
    return target


def _nearby(missing: Path) -> str:
    """Return what there is instead of a missing file, as the end of a sentence."""
    import difflib

    directory = missing.parent
    while not directory.is_dir() and directory != directory.parent:
        directory = directory.parent
    if directory != missing.parent:
        return f"; the deepest directory of that path that exists is {shown_name(str(directory))}"
    try:
        names = [entry.name for entry in islice(directory.iterdir(), 2000)]  # enough for a hint
    except OSError:
        return ""
    by_folded = {name.casefold(): name for name in sorted(names)}
    close = difflib.get_close_matches(missing.name.casefold(), by_folded, n=3, cutoff=0.6)
    if not close:
        return ""
    return f"; beside it there is {', '.join(shown_name(by_folded[name]) for name in close)}"


def read_lines(target: Target, first: int, last: int | None) -> str:
    """Return the lines from ``first`` to ``last``, as the answer of the tool. Blocking.

    Raises:
        ToolError: the file cannot be read, or has no such line.
    """
    confirm(target)
    with open_regular(target.resolved, target.shown) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.peek(SNIFFED_BYTES)
        codec = sniff(head)
        if codec is None:
            return f"[{target.shown} is not text: {binary_kind(head)}, {size:,} bytes]"
        pieces = chunks(file, target.shown, trio.from_thread.check_cancelled)
        reader = LineReader(utf8(pieces, codec), LINE_BYTES)
        reader.skip(first - 1)
        if reader.number < first - 1:
            raise ToolError(
                f"{target.shown} has {reader.number} lines; start_line {first} lies beyond its end"
            )
        lines = _take(reader, last)
        reader.skip(1)
        more = reader.number >= first + len(lines)
        if more and size <= COUNTED_BYTES:
            reader.skip()
            return _render(lines, first, f" of {reader.number}", codec)
    return _render(lines, first, " and more follow" if more else "", codec)


def _take(reader: LineReader, last: int | None) -> list[Line]:
    """Return lines up to ``last`` as far as the output has room; at least one, if there is one."""
    lines: list[Line] = []
    room = OUTPUT_BYTES
    while (last is None or reader.number < last) and (line := next(reader, None)) is not None:
        room -= len(line.head) + len(f"{reader.number}│\n".encode())
        if room < 0 and lines:
            break
        lines.append(line)
    return lines


def _render(lines: list[Line], first: int, more: str, codec: str) -> str:
    texts, proved = decode_lines(line.head for line in lines)
    rows = [f"{number}│{text}" for number, text in enumerate(texts, first)]
    notes = [_lines_note(len(lines), first, more)] if more or first > 1 or not lines else []
    notes += [
        f"line {number} cut after {len(line.head):,} of {line.size_bytes:,} bytes"
        for number, line in enumerate(lines, first)
        if line.clipped
    ]
    ends = {line.end for line in lines}
    if b"\r\n" in ends:
        notes.append("mixed LF and CRLF line ends" if b"\n" in ends else "CRLF line ends")
    if codec != "utf-8" or proved != "utf-8":
        notes.append(
            {"utf-8-sig": "UTF-8 with byte order mark", "utf-8": "not UTF-8, shown as latin-1"}.get(
                codec, codec
            )
        )
    if notes:
        rows.append(f"[{'; '.join(notes)}]")
    return without_surrogates("\n".join(rows))


def _lines_note(count: int, first: int, more: str) -> str:
    if not count:
        return "the file is empty" if first == 1 else f"nothing follows line {first - 1}"
    last = first + count - 1
    span = f"line {first}" if count == 1 else f"lines {first}-{last}"
    return f"{span}{more}; continue with start_line={last + 1}" if more else f"{span}, the end of the file"
