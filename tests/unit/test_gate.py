"""What was shown is what is done: the gate, a person's answers and the batch together."""

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import trio

from odek.batch import Batch
from odek.config.settings import DangerousSettings
from odek.gate import PolicyGate
from odek.ledger import Ledger
from odek.messages import FunctionCall, ToolCall
from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput
from odek.trust.approval import Answer, ApprovalRequest, ApprovalState
from odek.trust.effects import Effects
from odek.trust.paths import Where


class Command(msgspec.Struct, frozen=True):
    """A command line that names a script."""

    command: str
    script: str


class Runner(Tool[Command]):
    """Declares a command, and prints the script that would have run."""

    name: ClassVar[str] = "runner"
    description: ClassVar[str] = "Run a script."
    arguments_type = Command

    async def prepare(self, arguments: Command) -> PreparedCall:
        """Declare the command."""

        async def run(_scope: CallScope) -> ToolOutput:
            return ToolOutput(await trio.Path(arguments.script).read_text())

        return PreparedCall(arguments.command, Effects(command=arguments.command), run, arguments.command)


class Person:
    """Gives the next of ``answers`` to each question; ``meanwhile`` happens before the first one."""

    def __init__(self, *answers: Answer, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.asked: list[ApprovalRequest] = []
        self._answers = list(answers)
        self._meanwhile = [meanwhile]

    async def ask(self, requests: Sequence[ApprovalRequest]) -> list[Answer]:
        """Answer."""
        await trio.lowlevel.checkpoint()
        self.asked += requests
        if self._meanwhile:
            self._meanwhile.pop()()
        return [self._answers.pop(0) for _ in requests]


def batch_with(person: Person, workspace: Path) -> Batch:
    """Return a batch whose calls ``person`` decides about."""
    gate = PolicyGate(
        where=Where(workspace, workspace, workspace / "home", workspace / "home/.odek"),
        settings=DangerousSettings(),
        state=ApprovalState(),
        approver=person,
        emit=lambda _event: None,
        taint=lambda _reasons, _ingested: None,
    )
    tools: dict[str, Tool[Any]] = {"runner": Runner()}
    return Batch(
        tools=tools,
        gate=gate,
        emit=lambda _event: None,
        mask=lambda text: text,
        max_parallel=1,
        ledger=Ledger(),
        spend=lambda _usage: None,
    )


def call(command: str, script: Path) -> ToolCall:
    """Return a call of the runner."""
    arguments = msgspec.json.encode(Command(command, str(script))).decode()
    return ToolCall("c1", FunctionCall("runner", arguments))


async def test_a_script_that_changes_behind_the_question_is_asked_about_again(tmp_path: Path) -> None:
    """Approved is what the script held when it was shown; another content needs another yes."""
    script = tmp_path / "run.sh"
    script.write_text("echo one\n")
    for command in (
        "bash run.sh",
        "./run.sh",
        f"cd . && bash {shlex.quote(str(script))}",
        "python3 run.sh",
        "env sh -x run.sh",
        "sh < run.sh",
        "cat run.sh | sh",
    ):
        script.write_text("echo one\n")
        person = Person("approve", "deny", meanwhile=lambda: script.write_text("echo two\n"))

        (message,) = await batch_with(person, tmp_path).run([call(command, script)])

        assert len(person.asked) == 2, command
        assert "did not allow" in message.content


async def test_what_a_program_looks_for_by_itself_counts_as_its_script(tmp_path: Path) -> None:
    """A recipe that changes, or appears, behind the question about its program is asked about again."""
    for command, name in (("make test", "Makefile"), ("npm test", "package.json"), ("nice make", "makefile")):
        recipe = tmp_path / name
        recipe.unlink(missing_ok=True)
        person = Person("approve", "deny", meanwhile=partial(recipe.write_text, "all:\n"))

        await batch_with(person, tmp_path).run([call(command, recipe)])

        assert len(person.asked) == 2, command


async def test_an_unchanged_script_runs_after_one_question(tmp_path: Path) -> None:
    """One yes is enough, whatever else changes."""
    script = tmp_path / "run.sh"
    script.write_text("echo one\n")
    person = Person("approve", meanwhile=lambda: (tmp_path / "other").write_text("x"))

    (message,) = await batch_with(person, tmp_path).run([call("bash run.sh", script)])

    assert len(person.asked) == 1
    assert message.content == "echo one\n"


async def test_trust_given_to_one_command_does_not_reach_a_compound(tmp_path: Path) -> None:
    """A trusted class runs single commands of it unasked, and asks about everything joined to one."""
    script = tmp_path / "run.sh"
    script.write_text("echo one\n")
    person = Person("trust_class", *("approve",) * 8)
    batch = batch_with(person, tmp_path)

    async def questions(command: str) -> int:
        before = len(person.asked)
        await batch.run([call(command, script)])
        return len(person.asked) - before

    assert await questions("bash run.sh") == 1
    assert person.asked[0].trustable
    assert await questions("bash run.sh") == 0
    assert await questions("make > log.txt 2>&1") == 0
    assert await questions("cd src && make") == 0
    assert await questions("make && make install") == 1
    assert await questions("make; pip install x") == 1
    assert await questions("make; rm -r build") == 1
    assert await questions("bash -c 'make; make'") == 1
    assert await questions("curl https://x.example") == 1
    assert [request.trustable for request in person.asked[1:]] == [False] * 4 + [True]
