"""Output for files and pipes: the answer alone on stdout, everything else on stderr."""

from typing import assert_never

from odek.cli.notes import (
    NoteEvent,
    child_lines,
    child_table,
    closing_line,
    diff_lines,
    is_detail,
    note,
    one_line,
    tool_line,
)
from odek.cli.screen import Screen
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
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from odek.text import joins, visible

__all__ = ["PlainRenderer", "answer_text"]


def answer_text(text: str) -> str:
    """Return an answer as a file may hold it: as written, tabs and joiners too, other controls shown."""
    out: list[str] = []
    last = ""
    for char in text.replace("\r\n", "\n"):
        out.append(char if char == "\t" or joins(char, last) else visible(char))
        last = char
    return "".join(out)


class PlainRenderer:
    """Writes the final answer to ``out`` once the turn is over, in the model's own Markdown.

    What the model says between its tool calls is no part of the answer and goes to
    ``err``, as do the notes. Nothing is redrawn.
    """

    def __init__(self, out: Screen, err: Screen, *, verbose: bool = False) -> None:
        self._out = out
        self._err = err
        self._verbose = verbose
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._children: dict[str, str] = {}  # name → state, of those that run

    def handle(self, event: Event) -> None:  # noqa: PLR0912 - one branch for each kind of event
        """Show ``event``.

        Raises:
            OutputClosedError: nobody reads stdout any more.
            OutputFailedError: the answer could not be written.
        """
        if isinstance(event, NoteEvent):
            if self._verbose or not is_detail(event):
                self._note(note(event, self._err.style, self._err.columns))
            return
        match event:
            case AnswerDelta(text):
                self._text.append(text)
            case ReasoningDelta(text):
                self._reasoning.append(text)
            case ModelFinished():
                self._show_reasoning()
                if event.tool_calls:
                    self._show_aside()
            case ToolStarted():
                if self._verbose:
                    self._note(
                        f"{self._err.style.glyph('arrow')} {one_line(event.name)}  {one_line(event.summary)}"
                    )
            case ToolOutputLine(_, line):
                if self._verbose:
                    self._note(self._err.style.paint(f"  {visible(line)}", Attr.DIM))
            case ToolFinished():
                self._note(tool_line(event, self._err.style, self._err.columns))
                for line in diff_lines(event.diff, self._err.style, self._err.columns):
                    self._note(line)
            case ChildrenChanged():
                self._show_children(event)
            case TurnFinished():
                self._finish(event)
            case TurnStarted() | ModelStarted():
                pass
            case unreachable:
                assert_never(unreachable)

    @property
    def is_moving(self) -> bool:
        """Nothing moves here."""
        return False

    def tick(self) -> None:
        """Nothing moves here."""

    def suspend(self) -> None:
        """Nothing to put away: nothing is redrawn."""

    def resume(self) -> None:
        """Nothing was put away."""

    def close(self) -> None:
        """Show on stderr what came of an answer that was never finished."""
        self._show_reasoning()
        self._show_aside()

    def _finish(self, event: TurnFinished) -> None:
        if event.answer.strip() and event.outcome == "answered":
            self._text.clear()
            self._out.write(answer_text(event.answer).rstrip("\n") + "\n")
        self.close()
        self._children.clear()
        self._note(closing_line(event, self._err.style))

    def _show_children(self, event: ChildrenChanged) -> None:
        """Show the subagents whose state is another than before, and at the end all of them."""
        changed = [child for child in event.children if self._children.get(child.name) != child.state]
        self._children = {child.name: child.state for child in event.children}
        for line in child_lines(
            [child for child in changed if child.state != "waiting"], self._err.style, self._err.columns
        ):
            self._note(line)
        if event.finished:
            self._children.clear()
            self._note(child_table(event, self._err.style, self._err.columns))

    def _show_aside(self) -> None:
        if text := "".join(self._text).strip():
            self._note(self._err.style.paint(visible(text), Attr.DIM))
        self._text.clear()

    def _show_reasoning(self) -> None:
        text = "".join(self._reasoning).strip()
        if text and self._verbose:
            self._note(self._err.style.paint(visible(text), Attr.DIM))
        self._reasoning.clear()

    def _note(self, text: str) -> None:
        self._err.write(text + "\n")
