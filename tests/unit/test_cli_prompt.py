"""Approvals asked for over a real terminal."""

import re
import termios
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing

from odek.cli.approval_text import exact_block, request_text
from odek.cli.prompt import TerminalApprover
from odek.cli.style import Style
from odek.trust.approval import Answer, ApprovalRequest
from odek.trust.risk import Part, Risk, Verdict
from tests.support.terminal import Terminal, open_terminal
from tests.support.waiting import HANG_SECONDS

PLAIN = Style()


class Writer:
    """Something else that writes to the terminal; counts how often it had to stop and go on."""

    def __init__(self) -> None:
        self.suspended = 0
        self.resumed = 0

    @asynccontextmanager
    async def paused(self) -> AsyncGenerator[None]:
        """Stop for the block."""
        self.suspended += 1
        try:
            yield
        finally:
            self.resumed += 1


class Asked:
    """A question put by a task of its own, and the answers once they are there."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.answers: Sequence[Answer] = ()

    async def ask(self, approver: TerminalApprover, requests: Sequence[ApprovalRequest]) -> None:
        """Ask."""
        self.answers = await approver.ask(requests)
        self.done.set()

    async def wait_answers(self) -> Sequence[Answer]:
        """Wait for the answers and return them."""
        with trio.fail_after(HANG_SECONDS):
            await self.done.wait()
        return self.answers


@pytest.fixture
def terminal() -> Generator[Terminal]:
    """A terminal of 60 columns."""
    with open_terminal(60) as opened:
        yield opened


def request(
    command: str = "curl -O https://a.b/c", risk: Risk = Risk.NETWORK_EGRESS, *, trustable: bool = True
) -> ApprovalRequest:
    """Return a request of the shell tool."""
    verdict = Verdict.of((Part(command, risk, "contacts a.b"),))
    return ApprovalRequest(
        call_id="1", tool="shell", summary=command, preview=command, verdict=verdict, trustable=trustable
    )


def approver_on(
    terminal: Terminal, writer: Writer | None = None, *, friction: bool = False
) -> TerminalApprover:
    """Return an approver who asks on ``terminal``."""
    return TerminalApprover(
        writer or Writer(),
        PLAIN,
        needs_friction=lambda _risk: friction,
        context=lambda: "I need the file\x1b[2J",
        path=terminal.path,
    )


@pytest.mark.parametrize(
    ("key", "answer"),
    [("y", "approve"), ("n", "deny"), ("t", "trust_class"), ("\x04", "deny"), ("y\n", "approve")],
)
async def test_one_key_answers(terminal: Terminal, nursery: trio.Nursery, key: str, answer: str) -> None:
    """A single key is the answer; the whole command, its class and the reason are shown before."""
    writer, asked = Writer(), Asked()
    before = termios.tcgetattr(terminal.file.fileno())
    nursery.start_soon(asked.ask, approver_on(terminal, writer), [request()])

    shown = await terminal.wait_for("[?] context")
    assert writer.suspended == 1
    terminal.type(key)

    assert await asked.wait_answers() == [answer]
    assert shown.startswith(
        "\napproval needed: shell · network_egress\n│ curl -O https://a.b/c\n  network_egress  contacts a.b\n"
        "[y] once  [n] no  [t] trust this class  [?] context"
    )
    assert writer.resumed == 1
    assert termios.tcgetattr(terminal.file.fileno()) == before


async def test_keys_pressed_before_the_question_do_not_answer_it(
    terminal: Terminal, nursery: trio.Nursery
) -> None:
    """What was typed ahead is thrown away."""
    asked = Asked()
    terminal.type("yyy\ny")
    nursery.start_soon(asked.ask, approver_on(terminal), [request()])
    await terminal.wait_for("[?] context")

    terminal.type("n")

    assert await asked.wait_answers() == ["deny"]


async def test_pastes_function_keys_and_other_keys_do_not_answer(
    terminal: Terminal, nursery: trio.Nursery
) -> None:
    """Only a single key that is offered counts; trust is not offered where it may not be given."""
    asked = Asked()
    nursery.start_soon(asked.ask, approver_on(terminal), [request(trustable=False)])
    shown = await terminal.wait_for("[?] context")
    assert "[t]" not in shown
    for keys in ("yes please", "\x1b[A", "\x1bOy", "t", "x", "\n"):
        terminal.type(keys)
        await trio.testing.wait_all_tasks_blocked(0.05)  # keys that come together are a paste
    assert not asked.done.is_set()

    while not asked.done.is_set():
        terminal.type("y")
        await trio.testing.wait_all_tasks_blocked(0.05)
    assert asked.answers == ["approve"]


async def test_context_explains_and_asks_again(terminal: Terminal, nursery: trio.Nursery) -> None:
    """The question mark shows what led to the call, safe for the terminal, and the question once more."""
    nursery.start_soon(Asked().ask, approver_on(terminal), [request()])
    await terminal.wait_for("[?] context")
    terminal.type("?")
    shown = await terminal.wait_for("[?] context")
    assert "I need the file\\x1b[2J" in shown

    terminal.type("n")
    await terminal.wait_for("n\n")


async def test_without_a_terminal_the_answer_is_no() -> None:
    """Nobody to ask means no, for each call."""
    approver = TerminalApprover(Writer(), PLAIN, needs_friction=lambda _risk: False, path="/dev/null")

    assert await approver.ask([request(), request()]) == ["deny", "deny"]
    approver = TerminalApprover(Writer(), PLAIN, needs_friction=lambda _risk: False, path="/nowhere/tty")
    assert await approver.ask([request()]) == ["deny"]


async def test_a_terminal_that_closes_means_no(terminal: Terminal, nursery: trio.Nursery) -> None:
    """Closing the window while the question stands denies."""
    asked, writer = Asked(), Writer()
    nursery.start_soon(asked.ask, approver_on(terminal, writer), [request()])
    await terminal.wait_for("[?] context")

    terminal.hang_up()

    assert await asked.wait_answers() == ["deny"]
    assert writer.resumed == 1


async def test_a_cancelled_question_restores_the_terminal(terminal: Terminal) -> None:
    """Cancelling leaves the terminal as it was, on a line of its own, and lets the others write again."""
    writer = Writer()
    before = termios.tcgetattr(terminal.file.fileno())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(approver_on(terminal, writer).ask, [request()])
        await terminal.wait_for("[?] context")
        assert termios.tcgetattr(terminal.file.fileno()) != before
        nursery.cancel_scope.cancel()

    assert terminal.read().endswith("\n")
    assert termios.tcgetattr(terminal.file.fileno()) == before
    assert writer.resumed == 1


async def test_several_calls_are_one_question(terminal: Terminal, nursery: trio.Nursery) -> None:
    """A batch lists every call whole and takes one answer for all."""
    for key, answer in (("y", "approve"), ("n", "deny")):
        asked = Asked()
        nursery.start_soon(asked.ask, approver_on(terminal), [request("curl a"), request("curl b")])
        shown = await terminal.wait_for("[?] context")
        assert shown.startswith("\n2 calls need approval\n\n1. shell")
        assert "│ curl a\n" in shown
        assert "2. shell" in shown
        assert "│ curl b\n" in shown
        assert "[y] all  [n] none  [o] one by one" in shown
        terminal.type(key)
        assert await asked.wait_answers() == [answer, answer]
        terminal.read()


async def test_a_batch_can_be_answered_one_by_one(terminal: Terminal, nursery: trio.Nursery) -> None:
    """Going through a batch gives each call an answer of its own, in order."""
    asked = Asked()
    nursery.start_soon(asked.ask, approver_on(terminal), [request(name) for name in ("a", "b", "c")])
    await terminal.wait_for("[?] context")
    terminal.type("o")
    for number, key in enumerate("ynt", 1):
        shown = await terminal.wait_for("[?] context")
        assert f"{number} of 3: shell" in shown
        terminal.type(key)

    assert await asked.wait_answers() == ["approve", "deny", "trust_class"]


@pytest.mark.parametrize(
    ("typed", "answer"), [("approve\n", "approve"), ("yes\n", "deny"), ("appx\x7frove\n", "approve")]
)
async def test_hasty_approvals_take_a_typed_word(
    terminal: Terminal, nursery: trio.Nursery, typed: str, answer: str
) -> None:
    """With friction a pause comes first, keys pressed during it are lost, and only the word approves."""
    asked = Asked()
    started = trio.current_time()
    nursery.start_soon(asked.ask, approver_on(terminal, friction=True), [request()])
    await terminal.wait_for("read it again")
    terminal.type("approve\n")
    await terminal.wait_for("anything else denies: ")
    assert trio.current_time() - started > 1.4
    assert not asked.done.is_set()
    terminal.type(typed)

    assert await asked.wait_answers() == [answer]


async def test_questions_come_one_at_a_time(terminal: Terminal, nursery: trio.Nursery) -> None:
    """A second question waits until the first is answered."""
    approver = approver_on(terminal)
    first, second = Asked(), Asked()
    nursery.start_soon(first.ask, approver, [request("one")])
    await terminal.wait_for("[?] context")
    nursery.start_soon(second.ask, approver, [request("two")])
    await trio.testing.wait_all_tasks_blocked(0.02)
    assert "two" not in terminal.read()
    terminal.type("y")
    shown = await terminal.wait_for("[?] context")
    assert "two" in shown
    terminal.type("n")

    assert await first.wait_answers() == ["approve"]
    assert await second.wait_answers() == ["deny"]


async def test_a_huge_command_is_shown_whole(terminal: Terminal, nursery: trio.Nursery) -> None:
    """Nothing is cut, however slowly the terminal takes it."""
    command = "\n".join(f"echo line {n}" for n in range(3000))
    nursery.start_soon(Asked().ask, approver_on(terminal), [request(command)])

    shown = await terminal.wait_for("[?] context")

    assert all(f"│ echo line {n}\n" in shown for n in range(3000))
    terminal.type("n")
    await terminal.wait_for("n\n")


@pytest.mark.parametrize("columns", [20, 60, 80, 200])
def test_a_command_is_shown_exactly(columns: int) -> None:
    """Long lines go on behind a dotted bar, controls are written out, and nothing is left out."""
    text = "echo " + "a b  c" * 60 + "\n\n\trm\x1b[8m -rf \u202e/ # \x9b日本\r\nend\n"

    lines = exact_block(text, PLAIN, columns)

    assert all(len(line) + line.count("日") + line.count("本") <= columns for line in lines)
    joined = re.sub("\n┊ ", "", "\n".join(lines)).split("\n")
    assert joined == [
        "│ echo " + "a b  c" * 60,
        "│ ",
        "│     rm\\x1b[8m -rf \\u{202e}/ # \\x9b日本\\x0d",
        "│ end",
    ]


def test_a_diff_is_coloured_by_line() -> None:
    """Wrapped pieces of a changed line keep its colour; a command that looks like one has none."""
    style = Style(color=True)
    lines = exact_block("--- a\n+++ b\n@@ -1 +1 @@\n-" + "x" * 40 + "\n+y", style, 30)
    assert [re.sub(r"\x1b\[2m.*?\x1b\[0m ", "", line) for line in lines][3:] == [
        f"\x1b[31m-{'x' * 27}\x1b[0m",
        f"\x1b[31m{'x' * 13}\x1b[0m",
        "\x1b[32m+y\x1b[0m",
    ]
    assert exact_block("-x", style, 30)[0].endswith(" -x")


def test_a_disguised_program_and_its_place_are_named() -> None:
    """Beside the command as it is written stands what it runs, and where."""
    command = "r''m out/x"
    part = Part(command, Risk.SYSTEM_WRITE, "removes what lies outside", program="rm", path="~/elsewhere/x")
    asked = ApprovalRequest("1", "shell", command, command, Verdict.of((part,)))

    text = request_text(asked, PLAIN, 80, title="")

    assert text.endswith("  system_write  removes what lies outside [runs rm, ~/elsewhere/x]\n")


def test_the_place_of_a_command_is_told() -> None:
    """A command that is to run in a sandbox is asked about as one."""
    verdict = Verdict.of((Part("make", Risk.CODE_EXECUTION, "runs the Makefile"),))

    text = request_text(
        ApprovalRequest("1", "shell", "make", "make", verdict, place="in the sandbox"), PLAIN, 80, title=""
    )

    assert text.splitlines()[0] == "shell · code_execution · in the sandbox"


def test_each_risky_part_has_its_class_and_reason() -> None:
    """A compound lists its parts, the worst first, and counts the safe ones."""
    parts = (
        Part("ls", Risk.SAFE, "reads"),
        Part("curl x.y", Risk.NETWORK_EGRESS, "contacts x.y"),
        Part("rm -rf /", Risk.DESTRUCTIVE, "removes a tree"),
    )
    compound = partial(ApprovalRequest, call_id="1", tool="shell", summary="ls…", trustable=False)

    text = request_text(
        compound(preview="ls; curl x.y; rm -rf /", verdict=Verdict.of(parts)), PLAIN, 80, title=""
    )

    assert text == (
        "shell · destructive\n  ls…\n│ ls; curl x.y; rm -rf /\n"
        "  destructive     rm -rf /: removes a tree\n  network_egress  curl x.y: contacts x.y\n"
        "  and 1 safe part\n"
    )
