"""Events on a terminal: the answer streams, the rest is one calm line each."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, assert_never

from odek.cli.layout import MAX_COLUMNS
from odek.cli.notes import (
    NoteEvent,
    child_table,
    closing_line,
    diff_lines,
    is_detail,
    note,
    one_line,
    tool_line,
)
from odek.cli.screen import Screen
from odek.cli.status import Activity
from odek.cli.style import Attr
from odek.events import (
    AnswerDelta,
    ChildrenChanged,
    Event,
    ModelFinished,
    ModelStarted,
    ReasoningDelta,
    ToolFinished,
    ToolOutputLine,
    ToolRunning,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from odek.text import visible

if TYPE_CHECKING:
    from odek.cli.markdown import MarkdownStream

__all__ = ["TerminalRenderer"]

_ERASE_LINE: Final = "\r\x1b[K"
_ERASE_LINE_ABOVE: Final = "\x1b[A\x1b[K"


class TerminalRenderer:
    """Writes the answer to ``out``, a terminal, as it streams, and the rest to ``err``.

    ``err`` is ``out`` when both are the same terminal. A status line stands below what is
    written while something goes on; it is erased before anything else is written.
    """

    def __init__(
        self, out: Screen, err: Screen, *, verbose: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._out = out
        self._err = err
        self._verbose = verbose
        self._clock = clock
        self._activity = Activity()
        self._status = ""
        self._suspended = False
        self._queue: list[Event] = []
        self._notes: list[str] = []  # wait for the end of the answer
        self._prose: MarkdownStream | None = None
        self._is_reasoning = False
        self._mid_line = False
        self._answer: list[str] = []
        self._last: str = ""  # what was written last: "", "prose" or "note"

    def handle(self, event: Event) -> None:
        """Show ``event``."""
        if not self._suspended:
            self._show(event)
        elif not isinstance(event, ToolOutputLine | ToolRunning) and not (
            isinstance(event, ChildrenChanged) and not event.finished
        ):  # the others are old news by then
            self._queue.append(event)

    @property
    def is_moving(self) -> bool:
        """Whether there is a status line to keep up to date, or to take away."""
        may_draw = self._out.style.redraw and not self._suspended and not self._mid_line
        return may_draw and (bool(self._status) or self._activity.is_busy)

    def tick(self) -> None:
        """Redraw the status line, if it says something else by now."""
        if not self.is_moving:
            return
        text = self._activity.line(self._clock(), self._out.columns - 1, self._out.style)
        if text != self._status:
            lines = [self._out.style.paint(line, Attr.DIM) for line in text.split("\n")]
            self._out.write(self._erasure() + "\n".join(lines))
            self._status = text

    def suspend(self) -> None:
        """Erase the status line and hold back what comes."""
        self._erase_status()
        self._suspended = True

    def resume(self) -> None:
        """Show what came meanwhile."""
        self._suspended = False
        self._last = "note"
        queue, self._queue = self._queue, []
        for event in queue:
            self._show(event)

    def close(self) -> None:
        """End the line that is being written and erase the status."""
        if self._suspended:
            self.resume()
        self._end_prose()
        self._activity.clear()
        self._erase_status()

    def _show(self, event: Event) -> None:  # noqa: PLR0912 - one branch for each kind of event
        if isinstance(event, NoteEvent):
            self._show_note(event)
            return
        now = self._clock()
        match event:
            case TurnStarted():
                self._answer.clear()
            case ModelStarted():
                self._answer.clear()
                self._activity.think(now)
            case AnswerDelta(text):
                self._answer.append(text)
                self._write_prose(text, reasoning=False)
                self._activity.write(now)
            case ReasoningDelta(text):
                if self._verbose:
                    self._write_prose(text, reasoning=True)
            case ModelFinished():
                self._end_prose()
                self._activity.rest()
            case ToolStarted():
                self._end_prose()
                self._activity.start_tool(event.call_id, event.name, event.summary, now)
                if self._verbose:
                    self._note(
                        f"{self._err.style.glyph('arrow')} {one_line(event.name)}  {one_line(event.summary)}"
                    )
            case ToolOutputLine(call_id, line):
                self._activity.tool_wrote(call_id, line)
                if self._verbose:
                    self._note(self._err.style.paint(f"  {visible(line)}", Attr.DIM))
            case ToolFinished():
                self._activity.end_tool(event.call_id)
                self._tool_finished(event)
            case ChildrenChanged():
                self._activity.follow_children(event.children if not event.finished else (), now)
                if event.finished:
                    self._note(child_table(event, self._err.style, self._err.columns))
            case TurnFinished():
                self._finish(event)
            case unreachable:
                assert_never(unreachable)

    def _show_note(self, event: NoteEvent) -> None:
        """Show ``event``; that a call still runs stands in the status line, where there is one."""
        is_in_status = isinstance(event, ToolRunning) and self._out.style.redraw
        if not is_in_status and (self._verbose or not is_detail(event)):
            self._note(note(event, self._err.style, self._err.columns))

    def _finish(self, event: TurnFinished) -> None:
        """Show what of the answer was not streamed, and the closing line."""
        self._end_prose()
        self._activity.clear()
        answer, streamed = event.answer.strip(), "".join(self._answer).strip()
        if answer and not streamed.endswith(answer):
            if streamed:
                self._note(
                    self._err.style.paint("parts of the answer were not shown; here it is whole", Attr.DIM)
                )
            self._write_prose(event.answer, reasoning=False)
            self._end_prose()
        self._note(closing_line(event, self._err.style))
        self._last = ""

    def _tool_finished(self, event: ToolFinished) -> None:
        style, columns = self._err.style, self._err.columns
        self._note("\n".join([tool_line(event, style, columns), *diff_lines(event.diff, style, columns)]))

    def _write_prose(self, text: str, *, reasoning: bool) -> None:
        """Stream text of the model, reasoning dim."""
        if self._prose is not None and self._is_reasoning != reasoning:
            self._end_prose()
            self._last = "note"  # an empty line between the two
        screen = self._err if reasoning else self._out
        if self._prose is None:
            from odek.cli.markdown import MarkdownStream  # while the model writes, not on the way to it

            width = min(screen.columns, MAX_COLUMNS)
            self._prose = MarkdownStream(width, screen.style, Attr.DIM if reasoning else Attr.NONE)
            self._is_reasoning = reasoning
        self._put(screen, self._prose.feed(text), "prose")

    def _end_prose(self) -> None:
        """Finish the text that streams, then show the notes that waited for it."""
        if self._prose is not None:
            prose, self._prose = self._prose, None
            self._put(self._err if self._is_reasoning else self._out, prose.finish(), "prose")
        self._mid_line = False
        notes, self._notes = self._notes, []
        for text in notes:
            self._note(text)

    def _note(self, text: str) -> None:
        if self._prose is not None and self._is_reasoning:
            self._end_prose()
        if self._prose is not None and self._err is self._out:
            self._notes.append(text)
        else:
            self._put(self._err, text + "\n", "note")

    def _put(self, screen: Screen, text: str, kind: str) -> None:
        """Write ``text``, an empty line before it where prose and notes meet."""
        if not text:
            return
        self._erase_status()
        meets = self._last not in {"", kind} and self._err is self._out
        screen.write("\n" + text if meets and not text.startswith("\n") else text)
        self._last = kind
        if kind == "prose":
            self._mid_line = not text.endswith("\n")

    def _erase_status(self) -> None:
        if self._status:
            self._out.write(self._erasure())
            self._status = ""

    def _erasure(self) -> str:
        """Return what takes the status away, which is of several lines while subagents work."""
        return _ERASE_LINE + _ERASE_LINE_ABOVE * self._status.count("\n")
