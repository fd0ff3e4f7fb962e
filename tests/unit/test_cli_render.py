"""What a person sees of events, on a terminal and in files."""

import io
import json
import os
import re
from collections.abc import Generator
from pathlib import Path

import pytest

from odek.cli.notes import closing_line, diff_lines, note, seconds_text, tool_line
from odek.cli.render import TerminalRenderer
from odek.cli.renderer import make_renderer
from odek.cli.screen import OutputClosedError, OutputFailedError, Screen
from odek.cli.style import Style, detect_style
from odek.events import (
    AnswerDelta,
    BudgetWarning,
    Event,
    ModelFinished,
    ModelRetrying,
    ModelStarted,
    Notice,
    PlanChanged,
    ReasoningDelta,
    ToolFinished,
    ToolOutputLine,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    Usage,
)
from tests.support.terminal import Terminal, open_terminal

PLAIN = Style()
USAGE = Usage(4210, 512, 3900, 0.0123)
ERASE = "\r\x1b[K"


@pytest.fixture
def terminal() -> Generator[Terminal]:
    """A terminal of 60 columns."""
    with open_terminal(60) as opened:
        yield opened


class Clock:
    """A clock that stands still until told otherwise."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def renderer_on(terminal: Terminal, clock: Clock, *, verbose: bool = False) -> TerminalRenderer:
    """Return a renderer whose stdout and stderr are ``terminal``, without colour."""
    screen = Screen(terminal.file, Style(redraw=True), name="stdout", required=True)
    return TerminalRenderer(screen, screen, verbose=verbose, clock=clock)


def finished(answer: str) -> TurnFinished:
    """Return the end of a turn."""
    return TurnFinished("s", "answered", answer, USAGE, 12.3, 2)


CONVERSATION: list[Event] = [
    TurnStarted("s", 1, "task"),
    ModelStarted(1, 10),
    AnswerDelta("Let me *look*."),
    ModelFinished(Usage(), "tool_calls", 1, 0.5),
    ToolStarted("1", "shell", "ls"),
    ToolOutputLine("1", "a.py"),
    ToolFinished("1", "shell", "ls", "ok", 0.25),
    ModelStarted(2, 20),
    AnswerDelta("All **fine**: "),
    AnswerDelta("`a.py`\n"),
    ModelFinished(USAGE, "stop", 0, 0.5),
    finished("All **fine**: `a.py`\n"),
]


def test_answer_and_notes_on_a_terminal(terminal: Terminal) -> None:
    """Text streams rendered, each call leaves a line, an empty line stands between the two kinds."""
    renderer = renderer_on(terminal, Clock())

    for event in CONVERSATION:
        renderer.handle(event)
    renderer.close()

    assert terminal.read() == (
        "Let me look.\n\n✓ shell  ls · 0.2 s\n\nAll fine: `a.py`\n\n"
        "12.3 s · 4,210 in (3,900 cached) · 512 out · $0.0123\n"
    )


def test_status_shows_what_runs_and_goes_without_a_trace(terminal: Terminal) -> None:
    """The status line names the call, its seconds and its last line, and is erased before other output."""
    clock = Clock()
    renderer = renderer_on(terminal, clock)
    renderer.handle(ModelStarted(1, 10))
    clock.now = 12
    renderer.tick()
    assert terminal.read() == f"{ERASE}thinking… 12 s"
    renderer.handle(ToolStarted("1", "shell", "make -j4 test"))
    renderer.handle(ToolOutputLine("1", "\x1b[1mcc -c a.c"))
    clock.now = 15
    renderer.tick()
    renderer.tick()
    assert terminal.read() == f"{ERASE}shell  make -j4 test · 3 s · \\x1b[1mcc -c a.c"
    renderer.handle(ToolStarted("2", "read_file", "a.c"))
    renderer.tick()
    assert terminal.read().startswith(f"{ERASE}2 tools · shell  make")
    renderer.handle(Notice("hello"))
    assert terminal.read() == f"{ERASE}hello\n"
    renderer.tick()
    renderer.close()
    assert terminal.read().endswith(ERASE)


def test_status_never_wraps_and_follows_the_window(terminal: Terminal) -> None:
    """However long summary and output are, the status stays within the width of the moment."""
    clock = Clock()
    renderer = renderer_on(terminal, clock)
    renderer.handle(ToolStarted("1", "shell", "文" * 300))
    renderer.handle(ToolOutputLine("1", "x" * 300))
    for columns in (60, 30, 200):
        terminal.resize(columns)
        renderer.tick()
        text = terminal.read().removeprefix(ERASE)
        assert columns // 2 < len(text) + text.count("文") < columns
        clock.now += 1


def test_only_a_status_line_moves(terminal: Terminal) -> None:
    """There is nothing to redraw but while a status stands or is to come, and never in a file."""
    renderer = renderer_on(terminal, Clock())
    seen: list[bool] = []
    for event in CONVERSATION:
        renderer.handle(event)
        seen.append(renderer.is_moving)
    thinks, is_mid_line, runs, between = True, False, True, False
    first_request = [between, thinks, is_mid_line, between, runs, runs, between]
    assert seen == [*first_request, thinks, is_mid_line, thinks, between, between]
    renderer.handle(ToolStarted("1", "shell", "ls"))
    for change in (renderer.suspend, renderer.resume):
        change()
        seen.append(renderer.is_moving)
    assert seen[-2:] == [False, True]
    assert not make_renderer(io.StringIO(), io.StringIO(), {}).is_moving


def test_no_status_while_a_line_is_being_written(terminal: Terminal) -> None:
    """While the answer stands in the middle of a line nothing else is drawn; notes wait for its end."""
    renderer = renderer_on(terminal, Clock())
    renderer.handle(ModelStarted(1, 10))
    renderer.handle(AnswerDelta("one two "))
    renderer.tick()
    renderer.handle(Notice("late"))
    assert terminal.read() == "one two"
    renderer.handle(ModelFinished(Usage(), "stop", 0, 1))
    assert terminal.read() == "\n\nlate\n"


def test_suspended_renderer_leaves_the_terminal_alone(terminal: Terminal) -> None:
    """While a prompt has the terminal nothing is written; afterwards nothing is missing."""
    renderer = renderer_on(terminal, Clock())
    renderer.handle(ToolStarted("1", "shell", "ls"))
    renderer.tick()
    renderer.suspend()
    assert terminal.read().endswith(ERASE)
    renderer.handle(ToolFinished("1", "shell", "ls", "ok", 1))
    renderer.tick()
    assert terminal.read() == ""
    renderer.resume()
    assert terminal.read() == "✓ shell  ls · 1.0 s\n"


def test_answer_whose_pieces_were_lost_is_shown_whole(terminal: Terminal) -> None:
    """The finished turn carries the answer; what the stream did not bring is shown from it."""
    renderer = renderer_on(terminal, Clock())

    renderer.handle(finished("the **whole** answer"))

    assert terminal.read().startswith("the whole answer\n\n12.3 s")


def test_reasoning_is_shown_in_verbose_mode_only(terminal: Terminal) -> None:
    """Reasoning text is dim and verbose; otherwise only the status tells that the model thinks."""
    events: list[Event] = [ReasoningDelta("hmm "), AnswerDelta("yes"), ModelFinished(Usage(), "stop", 0, 1)]
    for verbose, shown in ((False, "yes\n"), (True, "hmm\n\nyes\n")):
        renderer = renderer_on(terminal, Clock(), verbose=verbose)
        for event in events:
            renderer.handle(event)
        assert terminal.read() == shown


def test_verbose_mode_shows_calls_and_their_output(terminal: Terminal) -> None:
    """In verbose mode the start of a call and each line of its output stay on the screen."""
    renderer = renderer_on(terminal, Clock(), verbose=True)
    for event in CONVERSATION[4:7]:
        renderer.handle(event)

    assert terminal.read() == "→ shell  ls\n  a.py\n✓ shell  ls · 0.2 s\n"


def test_a_pipe_gets_the_answer_alone(tmp_path: Path) -> None:
    """Without a terminal stdout holds the final answer as the model wrote it, stderr everything else."""
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("w") as stdout, err.open("w") as stderr:
        renderer = make_renderer(stdout, stderr, {"TERM": "xterm", "FORCE_COLOR": ""})
        for event in CONVERSATION:
            renderer.handle(event)
            renderer.tick()
        renderer.close()

    assert out.read_text() == "All **fine**: `a.py`\n"
    assert err.read_text() == (
        "Let me *look*.\n✓ shell  ls · 0.2 s\n12.3 s · 4,210 in (3,900 cached) · 512 out · $0.0123\n"
    )


def test_a_pipe_gets_no_control_characters() -> None:
    """Escapes of the model are written out, tabs and lines stay, the text ends with one line end."""
    out, err = io.StringIO(), io.StringIO()

    make_renderer(out, err, {}).handle(finished("a\x1b[2J\tb\r\nc\u202e\n\n\n"))

    assert out.getvalue() == "a\\x1b[2J\tb\nc\\u{202e}\n"


def test_an_answer_cut_short_is_no_answer() -> None:
    """When the turn was cancelled the partial text goes to stderr, stdout stays empty."""
    out, err = io.StringIO(), io.StringIO()
    renderer = make_renderer(out, err, {})
    renderer.handle(AnswerDelta("half an ans"))
    renderer.handle(TurnFinished("s", "cancelled", "", Usage(), 1.5, 1))

    assert out.getvalue() == ""
    assert err.getvalue() == "half an ans\ncancelled · 1.5 s\n"


def test_json_lines_hold_every_event() -> None:
    """With --json each event is one line of JSON that names its kind, and nothing else is written."""
    out, err = io.StringIO(), io.StringIO()
    renderer = make_renderer(out, err, {}, json=True)
    for event in [*CONVERSATION, Notice("file \udcff")]:
        renderer.handle(event)
    renderer.close()

    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["type"] for line in lines][:3] == ["turn_started", "model_started", "answer_delta"]
    assert lines[-1]["text"] == "file ?"
    assert err.getvalue() == ""


def test_a_reader_that_left_ends_the_output() -> None:
    """Writing to a closed pipe raises once, as something that is no failure; closing is silent."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    stdout = os.fdopen(write_end, "w")
    renderer = make_renderer(stdout, io.StringIO(), {})

    with pytest.raises(OutputClosedError):
        renderer.handle(finished("answer"))

    renderer.handle(finished("answer"))
    renderer.close()
    with pytest.raises(BrokenPipeError):
        stdout.close()


def test_a_full_disk_is_named() -> None:
    """An answer that cannot be written is an error that says why."""
    stdout = os.fdopen(os.open("/dev/full", os.O_WRONLY), "w")
    renderer = make_renderer(stdout, io.StringIO(), {})

    with pytest.raises(OutputFailedError, match="cannot write to stdout: the disk is full"):
        renderer.handle(finished("answer"))

    with pytest.raises(OSError, match="No space"):
        stdout.close()


def test_a_stream_without_unicode_gets_escapes() -> None:
    """Characters that the stream's encoding lacks are written as escapes instead of failing."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")

    Screen(file, detect_style(file, {}), name="stdout", required=True).write("naïve ✓")

    assert raw.getvalue() == b"na\\xefve \\u2713"


@pytest.mark.parametrize(
    ("environ", "no_color", "color"),
    [
        ({"TERM": "xterm"}, False, True),
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({}, False, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, False, True),
        ({"TERM": "xterm", "NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, False, True),
    ],
)
def test_colour_is_for_terminals_that_want_it(
    terminal: Terminal, environ: dict[str, str], no_color: bool, color: bool
) -> None:
    """Colour needs a capable terminal or a demand, and any refusal wins."""
    assert detect_style(terminal.file, environ, no_color=no_color).color is color


def test_files_get_colour_on_demand_only() -> None:
    """What is no terminal has colour only if the environment forces it, and is never redrawn."""
    assert detect_style(io.StringIO(), {"TERM": "xterm"}) == Style()
    assert detect_style(io.StringIO(), {"FORCE_COLOR": "1"}).color


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
@pytest.mark.parametrize("summary", ["ls", "x " * 200, "日本 " * 90, "a\nb\x1b[31m"])
@pytest.mark.parametrize("outcome", ["ok", "error", "denied", "cancelled"])
def test_the_line_of_a_call_fits(columns: int, summary: str, outcome: str) -> None:
    """A call's line is one line, within the width, and keeps how the call ended."""
    event = ToolFinished("1", "shell", summary, outcome, 3.2, "exit status 1")  # type: ignore[arg-type]

    line = tool_line(event, PLAIN, columns)

    assert "\n" not in line
    assert len(line) + line.count("日") + line.count("本") <= columns
    assert {"ok": "3.2 s", "error": "exit", "denied": "denied", "cancelled": "cancelled"}[outcome] in line


def test_long_diffs_are_cut_and_say_so() -> None:
    """A diff shows its first lines in colour and how many more there are."""
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n-x\n" + "".join(f"+{n}\x1b\n" for n in range(156))

    lines = diff_lines(diff, Style(color=True), 80)

    assert len(lines) == 41
    assert lines[3] == "  \x1b[31m-x\x1b[0m"
    assert lines[4] == "  \x1b[32m+0\\x1b\x1b[0m"
    assert "120 more lines" in lines[-1]


def test_notes_are_calm_lines_that_wrap() -> None:
    """Retries, budgets and plans are short lines, wrapped at the width with a hanging indent."""
    retry = note(ModelRetrying(2, 1.5, "503 from " + "host " * 20), PLAIN, 40)
    assert all(len(line) <= 40 for line in retry.splitlines())
    assert retry.splitlines()[1].startswith("  ")
    assert note(BudgetWarning("cost", 75, 0.75, 1), PLAIN, 80) == (
        "! 75 % of the cost budget used: $0.7500 of $1.0000"
    )
    assert note(BudgetWarning("tokens", 50, 5000, 10000), PLAIN, 80).endswith("5,000 of 10,000")
    plan = note(PlanChanged((("done", "a"), ("doing", "b"), ("open", "c"), ("dropped", "d"))), PLAIN, 80)
    assert plan == "  [x] a\n  [>] b\n  [ ] c\n  [-] d"


def test_closing_line_leaves_out_what_is_not_known() -> None:
    """Only figures that the provider reported appear; an unfinished turn says why it ended."""
    assert closing_line(TurnFinished("s", "answered", "x", Usage(), 0.44, 1), PLAIN) == "0.4 s"
    limit = TurnFinished("s", "limit", "", Usage(10, 5), 61, 9, "90 iterations are used up")
    assert closing_line(limit, PLAIN) == "stopped: 90 iterations are used up · 1 min 01 s · 10 in · 5 out"


def test_durations_read_naturally() -> None:
    """Seconds have one decimal, minutes none."""
    assert [seconds_text(value) for value in (0.04, 59.94, 59.96, 125.2)] == [
        "0.0 s",
        "59.9 s",
        "1 min 00 s",
        "2 min 05 s",
    ]


def test_colours_read_on_light_and_dark() -> None:
    """Nothing but bold, dim, italic, underline, strike, red, green, magenta and cyan is used."""
    style = Style(color=True)
    text = "\n".join(
        [
            tool_line(ToolFinished("1", "a", "b", "error", 1, "no"), style, 80),
            note(Notice("x", "warning"), style, 80),
            closing_line(TurnFinished("s", "failed", "", USAGE, 1, 1, "why"), style),
            *diff_lines("--- a\n+b\n-c\n@@ d", style, 80),
        ]
    )
    codes = {code for match in re.findall(r"\x1b\[([\d;]*)m", text) for code in match.split(";")}

    assert codes <= {"0", "1", "2", "3", "4", "9", "31", "32", "35", "36"}
