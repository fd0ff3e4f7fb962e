"""Runs in a sandbox: what is told, where commands run, and what no project and no resumption loosens."""

import os
import shlex
import signal
from pathlib import Path

import msgspec
import pytest
import trio

from tests.support.cli import Odek
from tests.support.delegations import answers, delegate, is_child, marked_odek, said
from tests.support.http_request import RecordedRequest
from tests.support.model_server import Answer, by_request, open_model_server, text_answer, tool_call_answer
from tests.support.processes import Marked
from tests.support.repository import Repository
from tests.support.sandboxes import NEEDS_BUBBLEWRAP, with_bubblewrap
from tests.support.waiting import wait_until

pytestmark = NEEDS_BUBBLEWRAP

HOST = "cat /proc/sys/kernel/hostname"
"""Tells the sandbox from this machine."""

ALLOW = {"ODEK_DANGEROUS_NON_INTERACTIVE": "allow"}


def shell(command: str) -> Answer:
    """Answer with a command."""
    return tool_call_answer([("shell", {"command": command})])


def sandboxed(folder: Path, base_url: str) -> Odek:
    """Return the command with bubblewrap to be found, and nobody to ask."""
    odek = Odek(folder, base_url=base_url)
    odek.environment |= {**with_bubblewrap(odek.environment), **ALLOW}
    return odek


async def test_commands_run_in_the_sandbox_and_it_is_told(tmp_path: Path) -> None:
    """One line for the person, a description for the model, a mark in the session, and the work is kept."""
    async with open_model_server([shell(f"{HOST}; ls -A ~; echo hi > made"), text_answer("ok")]) as server:
        odek = sandboxed(tmp_path, server.base_url)
        done = await odek.run("run", "--sandbox", "go")
        first, second = (request.json for request in server.requests)

    assert done.status == 0
    assert "commands run in a sandbox (bubblewrap): no network, the workspace to write\n" in done.stderr
    assert "sandbox\nwork" in second["messages"][-1]["content"]
    assert (odek.workspace / "made").read_text() == "hi\n"
    described = {tool["function"]["name"]: tool["function"]["description"] for tool in first["tools"]}
    assert "Commands run in a sandbox. There is no network" in described["shell"]
    assert msgspec.json.decode(odek.sessions()[0].read_bytes())["sandbox"] is True


async def test_a_session_that_began_in_a_sandbox_goes_on_in_one(tmp_path: Path) -> None:
    """Resumed without a word about it it stays inside; where there is none it is refused."""
    script = [text_answer("one"), shell(HOST), text_answer("two")]
    async with open_model_server(script) as server:
        odek = sandboxed(tmp_path, server.base_url)
        await odek.run("run", "--sandbox", "first")
        done = await odek.run("continue", "second")
        refused = await odek.run("continue", "third", environment={"PATH": "/nowhere"})
        result = server.requests[-1].json["messages"][-1]["content"]

    assert done.status == 0
    assert "\nsandbox\n" in result
    assert refused.status == 3
    assert "sandbox is set, and there is none here" in refused.stderr


async def test_a_project_cannot_loosen_it(tmp_path: Path) -> None:
    """Neither off nor a network by a file of the project; the person's settings hold, and it is told."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    reach = f"{HOST}; (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached"
    async with open_model_server([shell("bash reach.sh"), text_answer("ok")]) as server:
        odek = sandboxed(tmp_path, server.base_url)
        odek.home.mkdir()
        (odek.home / "config.json").write_text('{"sandbox": true}')
        (odek.workspace / "reach.sh").write_text(reach)
        (odek.workspace / "odek.json").write_text('{"sandbox": false, "sandbox_network": "allowed"}')
        done = await odek.run("run", "go")
        result = server.requests[-1].json["messages"][-1]["content"]
    await listeners[0].aclose()

    assert "a project file may only make stricter: sandbox, sandbox_network" in done.stderr
    assert "sandbox\nexit status 1" in result
    assert "reached" not in result


async def test_a_project_may_demand_it(tmp_path: Path) -> None:
    """A file of the project switches it on, and where there is none nothing runs."""
    async with open_model_server([text_answer("never")]) as server:
        odek = sandboxed(tmp_path, server.base_url)
        (odek.workspace / "odek.json").write_text('{"sandbox": true}')
        done = await odek.run("run", "go", environment={"PATH": "/nowhere"})

        assert server.requests == []
    assert done.status == 3
    assert len(done.stderr.splitlines()) == 1
    assert odek.sessions() == []


async def test_subagents_inherit_it(tmp_path: Path) -> None:
    """What a subagent runs is in a sandbox as what its parent runs is."""
    task = {"goal": "alpha", "trust_level": "trusted"}
    script = answers([delegate(task), text_answer("done")], {"alpha": shell(HOST)})

    def choose(request: RecordedRequest) -> Answer:
        return text_answer("told") if is_child(request) and said(request, "tool") else script

    async with open_model_server(default=by_request(choose)) as server:
        odek = sandboxed(tmp_path, server.base_url)
        done = await odek.run("run", "--sandbox", "go")
        results = [said(r, "tool") for r in server.requests if is_child(r) and said(r, "tool")]

    assert done.status == 0
    assert ["\nsandbox\n" in result for result in results] == [True]


async def test_a_subagent_in_a_worktree_is_in_it_too(tmp_path: Path) -> None:
    """Its worktree, which lies in odek's own home, is all that it sees of that, and git works there."""
    repository = Repository(tmp_path / "work")
    repository.commit({"a.txt": "one\n"})
    task = {"goal": "alpha", "trust_level": "trusted", "worktree": True}
    work = shell(f"{HOST}; echo two > a.txt; git status --short; ls -A {shlex.quote(str(tmp_path))}/home")
    script = answers([delegate(task), text_answer("done")], {"alpha": work})

    def choose(request: RecordedRequest) -> Answer:
        return text_answer("told") if is_child(request) and said(request, "tool") else script

    async with open_model_server(default=by_request(choose)) as server:
        odek = sandboxed(tmp_path, server.base_url)
        done = await odek.run("run", "--sandbox", "go")
        (seen,) = [said(r, "tool") for r in server.requests if is_child(r) and said(r, "tool")]
        result = said(server.requests[-1], "tool")

    assert done.status == 0
    assert "sandbox\n M a.txt\nworktrees\n" in seen
    assert "+two" in result


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
async def test_nothing_is_left_of_a_run_that_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C or kill -9: two seconds later neither the sandbox nor anything in it lives."""
    marked = Marked()
    async with open_model_server([shell("setsid sleep 300 & touch up; sleep 300")]) as server:
        odek = marked_odek(tmp_path, server.base_url, marked)
        odek.environment |= {**with_bubblewrap(odek.environment), **ALLOW}
        async with odek.start("run", "--sandbox", "go") as running:
            await wait_until((odek.workspace / "up").exists)
            inside = marked.living()
            os.kill(running.pid, number)
            await wait_until(lambda: not marked.living(), seconds=2)
            done = await running.wait()

    assert len(inside) >= 4
    assert done.status == (130 if number == signal.SIGINT else -9)
