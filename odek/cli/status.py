"""What goes on right now, in one line."""

from typing import Final, Literal

import msgspec

from odek.cli.layout import clip_columns
from odek.cli.notes import child_lines, one_line, seconds_text
from odek.cli.style import Style
from odek.events import ChildState

__all__ = ["Activity"]

_SILENCE_SECONDS: Final = 1.0  # an answer that pauses for less needs no word; no measurement behind it


class _Running(msgspec.Struct):
    """A call that runs, and the last line it wrote."""

    name: str
    summary: str
    since: float
    last_line: str = ""


class Activity:
    """Follows what the agent does. Times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._tools: dict[str, _Running] = {}
        self._model: Literal["idle", "thinking", "writing"] = "idle"
        self._model_since = 0.0
        self._children: tuple[ChildState, ...] = ()
        self._children_at = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether there may be something to say, now or in a while."""
        return bool(self._children or self._tools) or self._model != "idle"

    def think(self, now: float) -> None:
        """A request went out."""
        self._model, self._model_since = "thinking", now

    def write(self, now: float) -> None:
        """A piece of the answer came."""
        self._model, self._model_since = "writing", now

    def rest(self) -> None:
        """The model is done."""
        self._model = "idle"

    def start_tool(self, call_id: str, name: str, summary: str, now: float) -> None:
        """A call runs."""
        self._tools[call_id] = _Running(one_line(name), one_line(summary), now)

    def tool_wrote(self, call_id: str, line: str) -> None:
        """A running call wrote a line."""
        if running := self._tools.get(call_id):
            running.last_line = line

    def end_tool(self, call_id: str) -> None:
        """A call ended."""
        self._tools.pop(call_id, None)

    def follow_children(self, children: tuple[ChildState, ...], now: float) -> None:
        """Subagents work; none do when there are none."""
        self._children, self._children_at = children, now

    def clear(self) -> None:
        """Nothing goes on any more."""
        self._children = ()
        self._tools.clear()
        self.rest()

    def line(self, now: float, columns: int, style: Style) -> str:
        """Return the status in at most ``columns`` columns, "" when there is nothing to say.

        It is one line, or one for each subagent while there are any.
        """
        if self._children:
            return "\n".join(child_lines(self._current_children(now), style, columns))
        if self._tools:
            return self._tools_line(now, columns, style)
        silent = now - self._model_since
        match self._model:
            case "thinking":
                return clip_columns(f"thinking{style.glyph('ellipsis')} {silent:.0f} s", columns)
            case "writing" if silent >= _SILENCE_SECONDS:
                return clip_columns(f"writing{style.glyph('ellipsis')} {silent:.0f} s", columns)
            case "writing" | "idle":
                return ""

    def _current_children(self, now: float) -> list[ChildState]:
        """Return the subagents with their clocks moved on since they were heard of."""
        passed = now - self._children_at
        return [
            msgspec.structs.replace(child, seconds=child.seconds + passed)
            if child.state == "working"
            else child
            for child in self._children
        ]

    def _tools_line(self, now: float, columns: int, style: Style) -> str:
        """Show the oldest call, and how many there are; the summary yields to the last output."""
        oldest = next(iter(self._tools.values()))
        dot, ellipsis = f" {style.glyph('dot')} ", style.glyph("ellipsis")
        count = f"{len(self._tools)} tools{dot}" if len(self._tools) > 1 else ""
        seconds = now - oldest.since
        time = dot + (f"{seconds:.0f} s" if seconds < 60 else seconds_text(seconds))
        last = one_line(oldest.last_line)
        room = columns - len(count) - len(time) - len(oldest.name) - 2
        summary = clip_columns(oldest.summary, max(room * 2 // 3 if last else room, 8), ellipsis)
        text = f"{count}{oldest.name}  {summary}{time}"
        return clip_columns(f"{text}{dot}{last}" if last else text, columns, ellipsis)
