"""What the display of an agent does while nothing happens."""

import io
import math

import trio

from odek.cli.display import Display, open_display
from odek.cli.renderer import make_renderer
from odek.events import ModelFinished, ModelStarted, Notice, Usage
from tests.support.terminal import open_terminal

ERASE = "\r\x1b[K"


async def seconds_to_next_timer(display: Display) -> float:
    """Return when the program will next do something by itself, once all is shown."""
    await display.settle()
    await trio.testing.wait_all_tasks_blocked()
    while trio.to_thread.current_default_thread_limiter().borrowed_tokens:  # it is being drawn
        await trio.sleep(0.001)
        await trio.testing.wait_all_tasks_blocked()
    return trio.lowlevel.current_statistics().seconds_to_next_deadline


async def test_output_to_a_file_needs_no_clock() -> None:
    """Whatever goes on, nothing is done between two events."""
    for json in (False, True):
        async with open_display(make_renderer(io.StringIO(), io.StringIO(), {}, json=json)) as display:
            display.emit(ModelStarted(1, 10))
            assert await seconds_to_next_timer(display) == math.inf


async def test_a_terminal_needs_a_clock_while_something_goes_on() -> None:
    """A counter moves with the seconds; when it is gone nothing is done until something happens."""
    with open_terminal() as terminal:
        renderer = make_renderer(terminal.file, terminal.file, {"TERM": "xterm"})
        async with open_display(renderer) as display:
            display.emit(Notice("hello"))
            assert await seconds_to_next_timer(display) == math.inf
            display.emit(ModelStarted(1, 10))
            await terminal.wait_for("thinking")
            assert 0 < await seconds_to_next_timer(display) <= 1
            display.emit(ModelFinished(Usage(), "stop", 0, 0.5))
            await terminal.wait_for(ERASE)
            assert await seconds_to_next_timer(display) == math.inf


async def test_a_status_comes_back_after_a_question() -> None:
    """What went on before a question was asked is shown again after it, though nothing new happened."""
    with open_terminal() as terminal:
        renderer = make_renderer(terminal.file, terminal.file, {"TERM": "xterm"})
        async with open_display(renderer) as display:
            display.emit(ModelStarted(1, 10))
            await terminal.wait_for("thinking")
            async with display.paused():
                await terminal.wait_for(ERASE)
            await terminal.wait_for("thinking")
