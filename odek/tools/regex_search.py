"""The search behind ``search_files``, as a process of its own.

A regular expression can need longer than the universe for thirty characters, and while
it runs nothing else of its process does: no other task, no Ctrl-C. So it runs in a child
that interrupts itself by a timer, that can be killed, and that ends with whoever started
it. The request comes as JSON on stdin, the report goes as JSON to stdout.
"""

import math
import os
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import msgspec

from odek.errors import ToolError
from odek.text import clip_bytes
from odek.tools.globs import Glob
from odek.tools.regular import chunks, open_regular
from odek.tools.textfile import SNIFFED_BYTES, LineReader, decode_lines, sniff, utf8
from odek.tools.walk import Walk

__all__ = ["SearchReport", "SearchRequest", "serve"]

FILE_SECONDS = 2.0
"""For one file. A plain pattern reads some 100 MB in that time; a hostile one never ends."""

TICK_SECONDS = 0.25
"""Between two looks at the clock, and whether the owner still lives, while a file is searched."""

SEARCHED_LINE_BYTES = 20_000
"""Of one line. Generated one-line files are cut here rather than searched to the end."""

SHOWN_LINE_BYTES = 400
"""Of a line in the answer; no measurement behind this."""

OUTPUT_BYTES = 60_000
"""Of the answer, about 15,000 tokens."""


class SearchRequest(msgspec.Struct, frozen=True):
    """What to search. Paths are bytes, as not every one is text.

    ``prefix`` goes before each path; ``is_file`` says that ``start`` is one. ``owner_pid`` is who
    asks: nobody else wants the answer.
    """

    pattern: str
    start: bytes
    workspace: bytes
    prefix: str
    is_file: bool
    glob: str | None
    ignore_case: bool
    context_lines: int
    max_results: int
    seconds: float
    owner_pid: int


class SearchReport(msgspec.Struct, frozen=True):
    """What was found: lines for the model, how many of them match, and what to know about the search."""

    lines: tuple[str, ...]
    matches: int
    notes: tuple[str, ...]


class _TimeUpError(Exception):
    """The timer rang while a file was searched."""


def serve() -> None:
    """Answer the one request on stdin."""
    search = _Search(msgspec.json.decode(sys.stdin.buffer.read(), type=SearchRequest))
    signal.signal(signal.SIGALRM, lambda _number, _frame: search.tick())
    sys.stdout.buffer.write(msgspec.json.encode(search.run()))


class _Answer:
    """The lines of the answer while they are gathered, bounded in matches and bytes."""

    def __init__(self, max_results: int) -> None:
        self.lines: list[str] = []
        self.matches = 0
        self.full = ""  # why nothing more is taken
        self._max_results = max_results
        self._room = OUTPUT_BYTES

    def add(self, line: str, *, is_match: bool = False) -> None:
        """Take a line; ``full`` tells when it was the last."""
        self.lines.append(line)
        self.matches += is_match
        self._room -= len(line.encode()) + 1
        if self.matches >= self._max_results:
            self.full = f"stopped after {self.matches} matches; narrow the search or raise max_results"
        elif self._room < 0:
            self.full = f"stopped after {OUTPUT_BYTES // 1000} kB; narrow the search"


class _Search:
    """One search: walks, reads, matches, and remembers what it could not do."""

    def __init__(self, request: SearchRequest) -> None:
        self._request = request
        self._start = Path(os.fsdecode(request.start))
        self._pattern = re.compile(request.pattern, re.IGNORECASE if request.ignore_case else 0)
        self._deadline = time.monotonic() + request.seconds
        self._file_deadline = math.inf
        self._answer = _Answer(request.max_results)
        self._slow: list[str] = []
        self._unreadable = 0
        self._clipped = 0

    def run(self) -> SearchReport:
        """Search everything that the request names, within its limits."""
        walk = Walk(self._start, Path(os.fsdecode(self._request.workspace)), self._check_deadline)
        notes: list[str] = []
        try:
            for path, shown in self._files(walk):
                self._search_in_time(path, shown)
                if self._answer.full:
                    notes.append(self._answer.full)
                    break
        except _TimeUpError:
            notes.append(f"stopped after {self._request.seconds:g} s; what was left is not searched")
        notes += self._notes(walk)
        return SearchReport(tuple(self._answer.lines), self._answer.matches, tuple(notes))

    def _files(self, walk: Walk) -> Iterator[tuple[Path, str]]:
        request = self._request
        if request.is_file:
            yield self._start, request.prefix
            return
        glob = Glob(request.glob) if request.glob else None
        for entry in walk:
            # A link leads to what is searched anyway, or out of what was asked for.
            if entry.is_regular and (glob is None or glob.matches(entry.relative)):
                yield Path(entry.path), f"{request.prefix}{entry.shown}"

    def tick(self) -> None:
        """Give up the file that is being searched when its time is up; called while it is."""
        self._end_with_owner()
        if time.monotonic() >= self._file_deadline:
            self._file_deadline = math.inf  # another tick may be on its way already
            raise _TimeUpError

    def _end_with_owner(self) -> None:
        """End at once when whoever asked was killed: it can end nothing any more."""
        if os.getppid() != self._request.owner_pid:
            os._exit(1)

    def _check_deadline(self) -> None:
        self._end_with_owner()
        if time.monotonic() >= self._deadline:
            raise _TimeUpError

    def _search_in_time(self, path: Path, shown: str) -> None:
        self._check_deadline()
        self._file_deadline = min(time.monotonic() + FILE_SECONDS, self._deadline)
        try:
            signal.setitimer(signal.ITIMER_REAL, TICK_SECONDS, TICK_SECONDS)
            self._search_file(path, shown)
        except _TimeUpError:
            self._slow.append(shown)
        except ToolError:
            self._unreadable += 1
        finally:
            self._file_deadline = math.inf
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _search_file(self, path: Path, shown: str) -> None:
        with open_regular(path, shown) as file:
            codec = sniff(file.peek(SNIFFED_BYTES))
            if codec is None:
                return
            self._search_lines(
                LineReader(utf8(chunks(file, shown, lambda: None), codec), SEARCHED_LINE_BYTES), shown
            )

    def _search_lines(self, reader: LineReader, shown: str) -> None:
        context = self._request.context_lines
        before: deque[tuple[int, str]] = deque(maxlen=context)
        last_added = 0
        to_add = 0  # lines of context still wanted behind a match
        for line in reader:
            text = _text(line.head)
            self._clipped += line.clipped
            match = self._pattern.search(text)
            number = reader.number
            if match is None and to_add <= 0:
                before.append((number, text))
                continue
            if last_added == 0:
                self._answer.add(shown)
            elif match and context and number - len(before) > last_added + 1:
                self._answer.add("--")
            for earlier, skipped in before:
                self._answer.add(f"{earlier}- {_around(skipped, 0)}")
            before.clear()
            mark, at = (":", match.start()) if match else ("-", 0)
            self._answer.add(f"{number}{mark} {_around(text, at)}", is_match=match is not None)
            last_added = number
            to_add = context if match else to_add - 1
            if self._answer.full:
                return

    def _notes(self, walk: Walk) -> list[str]:
        notes: list[str] = []
        if self._slow:
            names = ", ".join(self._slow[:3]) + (", …" if len(self._slow) > 3 else "")
            notes.append(
                f"gave up after {FILE_SECONDS:g} s each on {names}: "
                "the pattern backtracks without end there, or the file is huge"
            )
        if self._clipped:
            notes.append(
                f"{self._clipped:,} lines were searched in their first {SEARCHED_LINE_BYTES:,} bytes only"
            )
        if self._unreadable:
            notes.append(f"{self._unreadable:,} files could not be read")
        if walk.unreadable:
            notes.append(f"{walk.unreadable:,} directories could not be read")
        if walk.incomplete:
            notes.append("too many files: not all were looked at; name a directory further down")
        if walk.ignored and not self._answer.matches:
            notes.append(f"{walk.ignored:,} entries are ignored by git's rules")
        return notes


def _text(head: bytes) -> str:
    try:
        return head.decode()
    except UnicodeDecodeError:  # another encoding, or a cut within a character
        (text,), _ = decode_lines([head])
        return text


def _around(text: str, position: int) -> str:
    """Return the part of a line that is shown, the match in it."""
    start = position - 100 if position > 200 and len(text) > SHOWN_LINE_BYTES else 0
    part = clip_bytes(text[start:], SHOWN_LINE_BYTES)
    return f"{'…' if start else ''}{part}{'…' if start + len(part) < len(text) else ''}"


if __name__ == "__main__":
    serve()
