"""What a person sees of subagents: a line each while they work, a table at the end."""

from odek.cli.notes import child_lines, child_table
from odek.cli.plain import PlainRenderer
from odek.cli.render import TerminalRenderer
from odek.cli.screen import Screen
from odek.cli.style import Style
from odek.event_queue import EventQueue
from odek.events import ChildrenChanged, ChildState, Event, ToolStarted
from tests.support.terminal import open_terminal

WORKING = ChildState("task 1", "working", 2.0, 1234, "read_file a.txt")
DONE = ChildState("task 2", "done", 3.0, 10, "", 0.5, 30 * 2**20)
FAILED = ChildState("task 1", "failed", 4.0, 1300, "it was ended", 1.5, 64 * 2**20)


def test_a_line_has_name_state_seconds_tokens_and_action() -> None:
    """Lines stay in order and within the width; control characters do no harm."""
    hostile = ChildState("task 3", "working", 1.0, 0, "\x1b[2Jshell " + "x" * 300)
    lines = child_lines([WORKING, DONE, hostile], Style(), 60)

    assert [line.split()[1] for line in lines] == ["1", "2", "3"]
    assert all(word in lines[0] for word in ("working", "2.0 s", "1,234 tokens", "read_file a.txt"))
    assert all(len(line) <= 60 and "\x1b" not in line for line in lines)


def test_the_table_has_result_time_tokens_cpu_and_memory() -> None:
    """One row each; a failure says why."""
    rows = child_table(ChildrenChanged("c", (FAILED, DONE), finished=True), Style(), 100).splitlines()

    assert rows[0].split() == ["task", "result", "time", "tokens", "CPU", "peak"]
    assert " ".join(rows[1].split()) == "task 1 failed 4.0 s 1,300 1.5 s 64 MiB it was ended"
    assert " ".join(rows[2].split()) == "task 2 done 3.0 s 10 0.5 s 30 MiB"


def test_a_terminal_redraws_the_lines_in_place() -> None:
    """As many lines as there are subagents are erased before the next picture, and before the table."""
    now = 0.0
    with open_terminal(80) as terminal:
        screen = Screen(terminal.file, Style(redraw=True), name="stdout", required=True)
        renderer = TerminalRenderer(screen, screen, clock=lambda: now)
        renderer.handle(ToolStarted("c", "delegate_tasks", "2 tasks"))
        renderer.handle(ChildrenChanged("c", (WORKING, DONE)))
        renderer.tick()
        first = terminal.read()
        now = 1.0
        renderer.tick()
        second = terminal.read()
        renderer.handle(ChildrenChanged("c", (FAILED, DONE), finished=True))
        table = terminal.read()

    assert first.count("\n") == 1
    assert second.count("3.0 s") == 2
    assert second.startswith("\r\x1b[K\x1b[A\x1b[K")
    assert table.startswith("\r\x1b[K\x1b[A\x1b[K")
    assert "64 MiB" in table


def test_a_pipe_gets_a_line_when_a_state_changes() -> None:
    """Seconds and tokens alone are no news there."""
    with open_terminal(100) as terminal:
        screen = Screen(terminal.file, Style(), name="stderr", required=False)
        renderer = PlainRenderer(screen, screen)
        later = ChildState("task 1", "working", 9.0, 2000, "shell make")
        for children in ((WORKING, DONE), (later, DONE)):
            renderer.handle(ChildrenChanged("c", children))
        assert len(terminal.read().splitlines()) == 2
        renderer.handle(ChildrenChanged("c", (FAILED, DONE), finished=True))
        assert len(terminal.read().splitlines()) == 4


async def test_a_slow_screen_gets_the_newest_picture_alone() -> None:
    """Pictures that nobody has looked at are replaced, not piled up."""
    queue = EventQueue()
    last: Event = ChildrenChanged("c", (FAILED,), finished=True)
    for seconds in range(100):
        queue.emit(ChildrenChanged("c", (ChildState("task 1", "working", seconds),)))
    queue.emit(last)

    assert await queue.take() == [last]
