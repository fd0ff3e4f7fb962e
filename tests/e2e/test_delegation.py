"""Tasks handed to subagents: real processes, a real endpoint, and nothing left behind."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
import trio

from odek.delegation import MAX_TASKS
from tests.support.cli import Odek
from tests.support.delegations import (
    answers,
    delegate,
    is_child,
    kill_template,
    marked_odek,
    said,
    start_delegating,
)
from tests.support.http_request import RecordedRequest
from tests.support.model_server import (
    DONE,
    Answer,
    Exchange,
    by_request,
    call_delta,
    chunk,
    gated,
    open_model_server,
    stall,
    text_answer,
    tool_call_answer,
)
from tests.support.processes import Marked
from tests.support.waiting import HANG_SECONDS, wait_until


async def test_results_come_back_in_the_order_of_the_tasks(tmp_path: Path) -> None:
    """Three subagents answer; the parent reads all results, tagged and fenced, and counts what they used."""
    script = answers(
        [delegate({"goal": "alpha"}, {"goal": "beta"}, {"goal": "gamma"}), text_answer("all done")],
        {"alpha": text_answer("A!"), "beta": text_answer("B!"), "gamma": text_answer("C!")},
    )
    async with open_model_server(default=script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        done = await odek.run("run", "--json", "do three things")
        result = said([r for r in server.requests if not is_child(r)][-1], "tool")

    assert done.status == 0
    assert result.startswith("<untrusted_content")
    assert result.index("A!") < result.index("B!") < result.index("C!")
    usage = msgspec.json.decode(odek.sessions()[0].read_bytes())["usage"]
    assert usage == {"prompt_tokens": 5 * 7, "completion_tokens": 5 * 3}
    finished = [e for e in done.events if e["type"] == "turn_finished"]
    assert finished[0]["usage"] == usage
    children = [e for e in done.events if e["type"] == "children_changed"][-1]
    assert children["finished"]


async def test_however_much_there_is_to_be_hidden_subagents_start(tmp_path: Path) -> None:
    """Keys of services in secrets.env, far more than a small pipe takes, go along with each task."""
    script = answers([delegate({"goal": "alpha"}), text_answer("done")], {"alpha": text_answer("A!")})
    async with open_model_server(default=script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        odek.home.mkdir(mode=0o700)
        lines = [f'SERVICE_{n}="{os.urandom(1000).hex()}"' for n in range(40)]
        (odek.home / "secrets.env").write_text("\n".join(lines))
        (odek.home / "secrets.env").chmod(0o600)
        await odek.run("run", "do a thing")
        result = said(server.requests[-1], "tool")

    assert "[task 1: success" in result


async def test_a_proxy_that_cannot_be_used_keeps_no_subagent_from_a_server_here(tmp_path: Path) -> None:
    """What the environment says of proxies is for servers elsewhere."""
    script = answers([delegate({"goal": "alpha"}), text_answer("done")], {"alpha": text_answer("A!")})
    async with open_model_server(default=script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await odek.run("run", "do a thing", environment={"all_proxy": "socks5://127.0.0.1:9"})
        result = said(server.requests[-1], "tool")

    assert "[task 1: success" in result


async def test_a_subagent_that_is_killed_is_an_error_and_its_tokens_count(tmp_path: Path) -> None:
    """The others go on, and what it had used before is in the parent's usage."""
    script = answers(
        [delegate({"goal": "doomed"}, {"goal": "fine"}), text_answer("noted")],
        {"fine": text_answer("fine!"), "doomed": tool_call_answer([("plan", {"steps": []})])},
    )
    stuck = trio.Event()

    def choose(request: RecordedRequest) -> Answer:
        if is_child(request) and "doomed" in said(request, "user") and said(request, "tool"):
            stuck.set()
            return stall()
        return script

    async with open_model_server(default=by_request(choose)) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        async with odek.start("run", "--json", "go") as running:
            with trio.fail_after(HANG_SECONDS):
                await stuck.wait()
            await running.wait_for('"state":"done"')
            listed = msgspec.json.decode((await odek.run("ps", "--json")).stdout)
            child = next(process for process in listed if process["task"] == "doomed")
            os.kill(child["pid"], signal.SIGKILL)
            done = await running.wait()
        result = said([r for r in server.requests if not is_child(r)][-1], "tool")

    assert done.status == 0
    assert child["parent"] == running.pid
    assert "task 1: error" in result
    assert "SIGKILL" in result
    assert "fine!" in result
    usage = msgspec.json.decode(odek.sessions()[0].read_bytes())["usage"]
    assert usage == {"prompt_tokens": 4 * 7, "completion_tokens": 4 * 3}
    assert not list((odek.home / "usage").rglob("*.json"))


@pytest.mark.skipif(sys.platform != "linux", reason="forking a warm process is for Linux")
async def test_subagents_are_ready_while_the_model_still_writes_their_tasks(tmp_path: Path) -> None:
    """Once the call has begun processes wait for its tasks; they do them, under titles of their own."""
    marked = Marked()
    marked.watch(tmp_path / "work")
    ready: set[int] = set()
    at_work = trio.Event()

    async def write_slowly(exchange: Exchange) -> None:
        arguments = msgspec.json.encode({"tasks": [{"goal": "alpha"}]}).decode()
        await exchange.start_stream()
        await exchange.send_part(
            chunk({"tool_calls": [call_delta(0, "delegate_tasks", "", call_id="call_1")]})
        )
        await wait_until(lambda: len(titled("odek subagent: waiting", marked)) == 3)
        ready.update(titled("odek subagent: waiting", marked))
        await exchange.send_part(chunk({"tool_calls": [call_delta(0, None, arguments)]}))
        await exchange.send_part(chunk(finish_reason="tool_calls") + DONE)
        await exchange.send_part(b"")

    script = answers([write_slowly, text_answer("done")], {"alpha": gated(at_work, text_answer("A!"))})
    async with open_model_server(default=script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        async with odek.start("run", "go") as running:
            with trio.fail_after(HANG_SECONDS):
                await server.wait_requests(2)
                working = titled("odek subagent: task 1", marked)
                at_work.set()
                done = await running.wait()

    assert done.status == 0
    assert working < ready
    assert len(working) == 1
    await wait_until(lambda: not marked.living(), seconds=2)


def titled(title: str, marked: Marked) -> set[int]:
    """Return the processes that ``ps`` shows under just this title."""
    found = set()
    for pid in marked.living():
        with suppress(OSError):  # it has ended meanwhile
            if Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0") == title.encode():
                found.add(pid)
    return found


async def test_a_task_ends_at_its_time_limit(tmp_path: Path) -> None:
    """A subagent that waits for ever is ended, and the text names the limit."""
    script = answers(
        [delegate({"goal": "slow", "timeout_seconds": 2}), text_answer("too slow")], {"slow": stall()}
    )
    async with open_model_server(default=script) as server:
        done = await Odek(tmp_path, base_url=server.base_url).run("run", "go")
        result = said(server.requests[-1], "tool")

    assert done.status == 0
    assert "within 2 s" in result


@pytest.mark.skipif(sys.platform != "linux", reason="there is a template on Linux")
async def test_a_template_that_is_killed_does_not_stop_delegation(tmp_path: Path) -> None:
    """A subagent that it forked goes on, the next tasks are done, and one line in verbose mode says how."""
    started, killed = trio.Event(), trio.Event()
    script = answers(
        [
            gated(started, delegate({"goal": "forked"})),
            delegate({"goal": "afresh"}, {"goal": "afresh too"}),
            text_answer("all done"),
        ],
        {"forked": gated(killed, text_answer("forked!")), "afresh": text_answer("fresh!")},
    )
    async with open_model_server(default=script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        async with start_delegating(odek, "warm", started) as running:
            with trio.fail_after(HANG_SECONDS):
                await server.wait_requests(2)
            await kill_template(running)
            killed.set()
            done = await running.wait()
        results = [m["content"] for m in server.requests[-1].json["messages"] if m["role"] == "tool"]
    notices = [event["text"] for event in done.events if event["type"] == "notice"]

    assert done.status == 0
    assert "forked!" in results[0]
    assert results[1].count("fresh!") == 2
    assert [text for text in notices if "afresh" in str(text)] == [
        "subagents start afresh, which takes longer: the template process has ended"
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
async def test_nothing_is_left_of_subagents_when_their_parent_ends(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Two seconds after Ctrl-C or kill -9, neither subagents nor template live."""
    marked = Marked()
    marked.watch(tmp_path / "work")
    script = answers([delegate({"goal": "wait"}, {"goal": "wait too"})], {"wait": stall()})
    async with open_model_server(default=script) as server:
        odek = marked_odek(tmp_path, server.base_url, marked)
        async with odek.start("run", "go") as running:
            with trio.fail_after(HANG_SECONDS):
                await server.wait_requests(3)
            assert len(marked.living()) >= 5
            running.signal(number)
            await running.wait()
        await wait_until(lambda: not marked.living(), seconds=2)


async def test_what_subagents_used_counts_although_their_parent_was_killed(tmp_path: Path) -> None:
    """Whoever goes on with the session finds their tokens in its usage, once."""
    asked_again = trio.Event()

    def choose(request: RecordedRequest) -> Answer:
        if not is_child(request):
            return parent.pop(0)
        if said(request, "tool"):
            asked_again.set()
            return stall()
        return tool_call_answer([("plan", {"steps": []})])

    parent = [delegate({"goal": "work"}), text_answer("went on"), text_answer("and on")]
    async with open_model_server(default=by_request(choose)) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        odek.environment["ODEK_MEMORY_ENABLED"] = "false"  # what it asks the model is another matter
        async with odek.start("run", "go") as running:
            with trio.fail_after(HANG_SECONDS):
                await asked_again.wait()
            running.signal(signal.SIGKILL)
            await running.wait()
        await odek.run("continue", "go on")
        await odek.run("continue", "and on")
    usage = msgspec.json.decode(odek.sessions()[0].read_bytes())["usage"]

    assert usage == {"prompt_tokens": 4 * 7, "completion_tokens": 4 * 3}


async def test_an_untrusted_task_neither_writes_outside_nor_uses_the_network(tmp_path: Path) -> None:
    """Its calls are denied even where the parent allows them to itself; a trusted task may."""
    outside = tmp_path / "outside.txt"
    calls = tool_call_answer(
        [
            ("write_file", {"path": str(outside), "content": "x"}),
            ("shell", {"command": "curl http://127.0.0.1:9/"}),
            ("write_file", {"path": "inside.txt", "content": "x"}),
        ]
    )
    denied: list[str] = []

    def choose(request: RecordedRequest) -> Answer:
        if not is_child(request):
            return parent.pop(0)
        results = [m["content"] for m in request.json["messages"] if m["role"] == "tool"]
        denied.extend(text for text in results if text.startswith("not run"))
        return text_answer("tried") if results else calls

    parent = [delegate({"goal": "try it"}), text_answer("ok")]
    async with open_model_server(default=by_request(choose)) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        done = await odek.run("run", "go", environment={"ODEK_DANGEROUS_NON_INTERACTIVE": "allow"})
        request = next(request for request in server.requests if is_child(request))
        result = said(server.requests[-1], "tool")

    assert done.status == 0
    assert len(denied) == 2
    assert not outside.exists()
    assert "files changed: inside.txt" in result
    assert "try it" not in request.json["messages"][0]["content"]
    assert "<untrusted_content" in said(request, "user")
    assert "delegate_tasks" not in {tool["function"]["name"] for tool in request.json["tools"]}


async def test_facts_of_many_subagents_are_all_there(tmp_path: Path) -> None:
    """Eight subagents and their parent add facts at once; none is lost."""
    subjects = ["coffee", "docker", "violins", "glaciers", "kernels", "postage", "harbours", "tulips"]
    goals = "; ".join(f"remember that {subject} belong to team {n}" for n, subject in enumerate(subjects))
    odek = Odek(tmp_path)
    done = await odek.run("run", f"delegate: {goals}\nremember that the parent runs on host nine")
    facts = (await odek.run("memory", "facts")).stdout

    assert done.status == 0
    assert len(subjects) == MAX_TASKS
    assert [subject for subject in subjects if subject not in facts] == []
    assert "host nine" in facts


async def test_two_subagents_that_write_one_file_are_a_conflict(tmp_path: Path) -> None:
    """The parent is told which file, and by which tasks."""
    odek = Odek(tmp_path)
    done = await odek.run("run", "delegate: write a.txt: one; write a.txt: two; write b.txt: three")

    assert "CONFLICT: a.txt was changed by tasks 1 and 2" in done.stdout
    assert (odek.workspace / "b.txt").read_text() == "three\n"


async def test_a_subagent_by_hand_prints_one_json_object(tmp_path: Path) -> None:
    """The result is the last line of stdout; a task file stays as it is; a wrong one is exit status 3."""
    odek = Odek(tmp_path)
    task = odek.workspace / "task.json"
    task.write_text('{"goal": "write b.txt: hi"}')
    done = await odek.run("subagent", "--task", "task.json", "--parent-session", "p1", "--stream")
    wrong = await odek.run("subagent", "--task", "missing.json")

    assert done.status == 0
    result = done.events[-1]
    assert (result["status"], result["files_changed"], result["parent_session"]) == (
        "success",
        ["b.txt"],
        "p1",
    )
    assert all("type" in event for event in done.events[:-1])
    assert task.read_text() == '{"goal": "write b.txt: hi"}'
    assert wrong.status == 3
    assert "missing.json" in str(wrong.events[-1]["error"])


async def test_ps_lists_and_stop_ends(tmp_path: Path) -> None:
    """A running process is listed with its session and ended whole; a strange pid is refused."""
    async with open_model_server(default=stall()) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        async with odek.start("run", "wait here") as running:
            with trio.fail_after(HANG_SECONDS):
                await server.wait_requests(1)
            listed = await odek.run("ps")
            refused = await odek.run("stop", str(os.getpid()))
            stopped = await odek.run("stop", str(running.pid))
            done = await running.wait()
        none = await odek.run("ps")

    assert none.stdout == "no odek process of this home is running\n"
    assert f"{running.pid}" in listed.stdout
    assert "wait here" in listed.stdout
    assert refused.status == 3
    assert stopped.status == 0
    assert done.status == 143


@pytest.mark.parametrize(("tokens", "asked"), [(0, 2), (25, 2), (10, 1)])
async def test_an_answer_of_the_wrong_form_is_asked_for_again_within_the_budget(
    tokens: int, asked: int, tmp_path: Path
) -> None:
    """Once, and only with what the first answer has left of the task's tokens."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    task = {"goal": "count", "trust_level": "trusted", "output_schema": schema}
    (tmp_path / "task.json").write_bytes(msgspec.json.encode(task))
    script = [text_answer("about seven"), text_answer('{"n": 7}')]
    async with open_model_server(default=by_request(lambda _: script.pop(0))) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        odek.environment["ODEK_BUDGET_TOKENS"] = str(tokens)
        done = await odek.run("subagent", "--task", str(tmp_path / "task.json"))
        requests = len(server.requests)

    result = msgspec.json.decode(done.stdout)
    assert requests == asked
    if asked == 2:
        assert (result["status"], result["summary"]) == ("success", '{"n": 7}')
    else:
        assert (result["status"], result["summary"]) == ("error", "about seven")
        assert "it is not JSON" in result["error"]
        assert "10 tokens (budget.tokens) is used up" in result["error"]
