"""Ctrl-C and signals: the turn ends, nothing is left running, the session goes on."""

import signal
from pathlib import Path

import pytest
import trio

from tests.support.cli import Odek
from tests.support.delegations import answers, delegate, is_child, said
from tests.support.model_server import chunk, open_model_server, stall, text_answer, tool_call_answer
from tests.support.processes import SLEEPER, Marked
from tests.support.waiting import HANG_SECONDS, wait_until

BATCH = tool_call_answer(
    [
        ("shell", {"command": "sleep 300 & sleep 300"}),
        ("shell", {"command": "setsid sleep 300"}),
        ("shell", {"command": "echo quick"}),
    ]
)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
async def test_a_signal_during_a_batch_leaves_no_process(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    """Two seconds later nothing is left, what had finished is kept, and the session continues."""
    marked = Marked()
    async with open_model_server([BATCH, text_answer("going on")]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        odek.environment |= {
            name: value for name, value in marked.environment.items() if name.startswith("ODEK_TEST")
        }
        async with odek.start("run", "--json", "sleep") as running:
            await running.wait_for('"outcome":"ok"')
            await wait_until(
                lambda: len(marked.living()) >= 6, seconds=20
            )  # odek, two wardens, their commands
            running.signal(number)
            finished = await running.wait()
        await wait_until(lambda: not marked.living(), seconds=2)
        again = await odek.run("continue", "and now?")
        results = [m["content"] for m in server.requests[1].json["messages"] if m["role"] == "tool"]

    assert finished.status == status
    assert finished.events[-1]["outcome"] == "cancelled"
    assert (again.status, again.stdout) == (0, "going on\n")
    assert results == ["cancelled by the user", "cancelled by the user", "quick"]


async def test_what_a_cancelled_command_had_written_is_not_lost(tmp_path: Path) -> None:
    """Whoever ends a command that hangs can ask why: the model sees how far it came, secrets masked."""
    token = "ghp" + "_" + "a1B2c3D4e5F6" * 3
    command = f"echo compiling 3 of 7 {token}; echo; sleep 300"
    script = [tool_call_answer([("shell", {"command": command})]), text_answer("It hung at 3.")]
    async with open_model_server(script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        async with odek.start("run", "--json", "build") as running:
            await running.wait_for("tool_output_line")
            running.signal(signal.SIGINT)
            await running.wait()
        await odek.run("continue", "why does it hang?")
        (result,) = [m["content"] for m in server.requests[1].json["messages"] if m["role"] == "tool"]

    assert result == "compiling 3 of 7 [REDACTED:github-token]\ncancelled by the user"


async def test_kill_9_during_a_batch_leaves_no_process(tmp_path: Path) -> None:
    """No handler runs, and still nothing survives."""
    marked = Marked()
    async with open_model_server([BATCH]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        odek.environment |= {
            name: value for name, value in marked.environment.items() if name.startswith("ODEK_TEST")
        }
        async with odek.start("run", "sleep") as running:
            await wait_until(lambda: len(marked.living()) >= 6)
            running.signal(signal.SIGKILL)
            await running.wait()
        await wait_until(lambda: not marked.living(), seconds=2)


async def test_ctrl_c_while_the_model_answers_closes_the_connection(tmp_path: Path) -> None:
    """The request ends at once; what was shown is in the session, marked as cut."""
    answer = stall(chunk({"content": "Once upon "}), chunk({"content": "a time now"}))
    async with open_model_server([answer, text_answer("The end.")]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        async with odek.start("run", "--json", "tell") as running:
            await running.wait_for("a time")
            running.signal(signal.SIGINT)
            finished = await running.wait()
            with trio.fail_after(HANG_SECONDS):
                await server.wait_open_connections(0)
        await odek.run("continue", "go on")
        said = [m for m in server.requests[1].json["messages"] if m["role"] == "assistant"]

    assert finished.status == 130
    assert said == [{"role": "assistant", "content": "Once upon a time now\n\n[cancelled by the user]"}]


async def test_what_a_command_leaves_in_the_background_ends_with_odek(tmp_path: Path) -> None:
    """A server started with & lives on during the session, and no longer."""
    marked = Marked()
    script = [
        tool_call_answer([("shell", {"command": f"{SLEEPER}; echo started"})]),
        tool_call_answer([("shell", {"command": "echo next"})]),
        text_answer("done"),
    ]
    async with open_model_server(script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        odek.environment |= {
            name: value for name, value in marked.environment.items() if name.startswith("ODEK_TEST")
        }
        done = await odek.run("run", "serve")
        told = server.requests[1].json["messages"][-1]["content"]

    assert done.stdout == "done\n"
    assert "sleep" in told
    await wait_until(lambda: not marked.living(), seconds=2)


async def test_what_tasks_came_to_is_kept_when_the_rest_is_cancelled(tmp_path: Path) -> None:
    """Whoever waits no longer for the last subagent has not paid for the others in vain."""
    script = answers(
        [delegate({"goal": "alpha"}, {"goal": "beta"}), text_answer("so far")],
        {"alpha": text_answer("A is done!"), "beta": stall(chunk({"content": "B"}))},
    )
    async with open_model_server(default=script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        async with odek.start("run", "--json", "do two things") as running:
            await running.wait_for('"state":"done"')
            running.signal(signal.SIGINT)
            assert (await running.wait()).status == 130
        await odek.run("continue", "what do we have?")
        result = said([r for r in server.requests if not is_child(r)][-1], "tool")

    assert result.startswith("<untrusted_content")
    assert "[task 1: success" in result
    assert "A is done!" in result
    assert "cancelled before its end" in result
    assert result.endswith("\ncancelled by the user")
