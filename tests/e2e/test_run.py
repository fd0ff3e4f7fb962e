"""``odek run`` and ``odek continue`` over a real endpoint: what a person sees and what is kept."""

import os
import shlex
import sys
from pathlib import Path

import msgspec
import pytest
import trio

from tests.support.cli import Odek
from tests.support.model_server import (
    chunk,
    error_answer,
    event_stream,
    gated,
    open_model_server,
    text_answer,
    tool_call_answer,
    usage_chunk,
)
from tests.support.waiting import HANG_SECONDS

ODEK = f"{shlex.quote(sys.executable)} -m odek"
"""The command, in a command line."""


async def test_stdout_is_the_answer_and_nothing_else(tmp_path: Path) -> None:
    """In a pipe, the answer alone comes out; everything else is on stderr."""
    async with open_model_server([text_answer("The answer is **4**.\n")]) as server:
        done = await Odek(tmp_path, base_url=server.base_url).run("run", "2+2?")

    assert (done.status, done.stdout) == (0, "The answer is **4**.\n")
    assert "\x1b" not in done.stdout + done.stderr


async def test_a_tool_runs_and_its_result_goes_back(tmp_path: Path) -> None:
    """The model's call is carried out, and the next request holds its result."""
    script = [tool_call_answer([("read_file", {"path": "a.txt"})]), text_answer("It says hello.")]
    odek = Odek(tmp_path)
    (odek.workspace / "a.txt").write_text("hello\n")
    async with open_model_server(script) as server:
        odek.environment |= {"ODEK_BASE_URL": server.base_url, "ODEK_MODEL": "m"}
        done = await odek.run("run", "what does a.txt say?")
        messages = server.requests[1].json["messages"]

    assert done.stdout == "It says hello.\n"
    assert messages[-1]["role"] == "tool"
    assert "hello" in messages[-1]["content"]
    assert messages[-1]["tool_call_id"] == messages[-2]["tool_calls"][0]["id"]


async def test_continue_goes_on_with_the_newest_session(tmp_path: Path) -> None:
    """The second process sends the first one's conversation, byte for byte, and adds to it."""
    async with open_model_server([text_answer("one"), text_answer("two")]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await odek.run("run", "first")
        done = await odek.run("continue", "second")
        first, second = (request.body for request in server.requests)

    assert (done.status, done.stdout) == (0, "two\n")
    prefix = first[first.index(b'"messages":') :].split(b"]", 1)[0]
    assert prefix in second
    assert len(odek.sessions()) == 1


async def test_a_session_that_goes_on_elsewhere_knows_where_it_is(tmp_path: Path) -> None:
    """Person and model are told of another directory once, behind a history that stays as it was."""
    async with open_model_server(default=text_answer("well")) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        odek.environment["ODEK_MODEL"] = "gpt-4o"  # which takes each message by itself
        here, there = odek.workspace, tmp_path / "there"
        there.mkdir()
        told = [(await odek.run("run", "first")).stderr]
        for place in (there, there, here):
            odek.workspace = place
            told.append((await odek.run("continue", "more")).stderr)
        sent = [request.json["messages"] for request in server.requests]

    requests = [messages for messages in sent if messages[-1]["content"] in {"first", "more"}]
    assert ["goes on in" in text for text in told] == [False, True, False, True]
    assert requests[1][: len(requests[0])] == requests[0]
    assert f"The workspace is now {there}" in requests[1][len(requests[0]) + 1]["content"]
    assert requests[2][: len(requests[1])] == requests[1]
    said = [message["content"] for message in requests[3] if "The workspace is now" in message["content"]]
    assert [text.splitlines()[0].partition(" is now ")[2] for text in said] == [str(there), str(here)]


async def test_the_key_goes_to_the_endpoint_and_nowhere_else(tmp_path: Path) -> None:
    """Commands do not see the key, and no file holds it, even when the model repeats it."""
    key = "sk-proj-hidden-0123456789abcdefABCDEF"
    script = [
        tool_call_answer([("shell", {"command": "env | sort"})]),
        text_answer(f"your key is {key}"),
    ]
    async with open_model_server(script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        done = await odek.run(
            "run",
            f"what is {key}?",
            environment={"ODEK_API_KEY": key, "ODEK_DANGEROUS_NON_INTERACTIVE": "allow"},
        )
        headers = server.requests[0].headers
        tool_result = server.requests[1].json["messages"][-1]["content"]

    assert headers["authorization"] == f"Bearer {key}"
    assert done.status == 0
    assert "PATH=" in tool_result
    assert key not in tool_result
    for path in odek.home.rglob("*"):
        assert not path.is_file() or key not in path.read_text(), path


async def test_events_as_json_lines(tmp_path: Path) -> None:
    """With --json each line of stdout is an event; the last one holds the answer and the usage."""
    script = [text_answer("hi", usage=(9, 1))]
    async with open_model_server(script) as server:
        done = await Odek(tmp_path, base_url=server.base_url).run("run", "--json", "hello")

    assert done.events[0]["type"] == "turn_started"
    last = done.events[-1]
    assert (last["type"], last["answer"], last["outcome"]) == ("turn_finished", "hi", "answered")
    assert last["usage"] == {"prompt_tokens": 9, "completion_tokens": 1}


@pytest.mark.parametrize(
    ("arguments", "environment", "text"),
    [
        (["run"], {}, "there is no task"),
        (
            ["run", "--max-iter", "abc", "x"],
            {},
            "--max-iter: expected a whole number of at least 1, got 'abc'",
        ),
        (
            ["run", "--unknown", "x"],
            {},
            "odek run: unrecognized arguments: --unknown (see `odek run --help`)",
        ),
        (["walk"], {}, "invalid choice: 'walk'"),
        (["run", "--model", "gpt-9", "x"], {}, 'model "gpt-9" needs an endpoint'),
        (["run", "--base-url", "nonsense", "--model", "m", "x"], {}, "nonsense"),
        (["run", "--tool", "shel", "x"], {}, "there is no tool 'shel'"),
        (["run", "x"], {"ODEK_MAX_ITER": "many"}, "ODEK_MAX_ITER"),
        (
            ["run", "--sandbox", "x"],
            {"PATH": "/nowhere"},
            "sandbox is set, and there is none here: bubblewrap is not",
        ),
        (["run", "-c", "gone.txt", "x"], {}, "gone.txt"),
    ],
)
async def test_a_mistake_in_the_setup_is_one_line_and_exit_3(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], text: str
) -> None:
    """What is wrong, where, on one line, nothing on stdout, and no session begun."""
    done = await Odek(tmp_path).run(*arguments, environment=environment)

    assert (done.status, done.stdout) == (3, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr


async def test_a_failed_model_is_said_once_with_exit_1(tmp_path: Path) -> None:
    """A refused key is tried once, named in one line, and the session can go on."""
    refused = error_answer(401, "Incorrect API key provided")
    async with open_model_server([refused, text_answer("now")]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        done = await odek.run("run", "hello")
        requests = len(server.requests)
        again = await odek.run("continue", "again")

    assert (done.status, done.stdout, requests) == (1, "", 1)
    assert done.stderr.count("Incorrect API key") == 1
    assert (again.status, again.stdout) == (0, "now\n")


async def test_a_spent_budget_is_exit_2(tmp_path: Path) -> None:
    """Limits end the turn with a status of their own."""
    call = tool_call_answer([("glob", {"pattern": "*"})])
    async with open_model_server(default=call) as server:
        done = await Odek(tmp_path, base_url=server.base_url).run("run", "--max-iter", "3", "loop")

    assert done.status == 2
    assert "max_iterations" in done.stderr
    assert len(server.requests) == 3


async def test_without_a_terminal_what_needs_a_person_does_not_run(tmp_path: Path) -> None:
    """Fail closed: the call is refused, the model is told why, and the file is still there."""
    script = [tool_call_answer([("shell", {"command": "curl http://127.0.0.1:9/x"})]), text_answer("refused")]
    async with open_model_server(script) as server:
        done = await Odek(tmp_path, base_url=server.base_url).run("run", "fetch it")
        result = server.requests[1].json["messages"][-1]["content"]

    assert done.status == 0
    assert "needs a person's approval" in result


async def test_a_session_that_another_process_has_is_left_alone(tmp_path: Path) -> None:
    """The second process is told which pid has it, exits with 3, and changes nothing."""
    gate = trio.Event()
    async with open_model_server([text_answer("one"), gated(gate, text_answer("two"))]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await odek.run("run", "first")
        before = odek.sessions()[0].read_bytes()
        async with odek.start("continue", "second") as running:
            with trio.fail_after(HANG_SECONDS):
                await server.wait_requests(2)
            held = odek.sessions()[0].read_bytes()
            refused = await odek.run("continue", "third")
            after = odek.sessions()[0].read_bytes()
            gate.set()
            finished = await running.wait()

    assert refused.status == 3
    assert str(running.pid) in refused.stderr
    assert held == after
    assert before != held
    assert (finished.status, finished.stdout) == (0, "two\n")


async def test_a_task_may_come_from_a_pipe(tmp_path: Path) -> None:
    """`odek run -` reads the task from stdin."""
    async with open_model_server([text_answer("ok")]) as server:
        await Odek(tmp_path, base_url=server.base_url).run("run", "-", stdin=b"from the pipe\n")

    assert server.requests[0].json["messages"][-1]["content"] == "from the pipe"


@pytest.mark.parametrize("words", [["explain"], ["explain", "-"]], ids=str)
async def test_what_is_piped_in_beside_a_task_is_outside_content(words: list[str], tmp_path: Path) -> None:
    """It comes behind the task in a fence, is told, and taints the session; `@` in it attaches nothing."""
    async with open_model_server([text_answer("ok")]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        (odek.workspace / "a.py").write_text("print(1)")
        done = await odek.run("run", *words, stdin=b"error in @a.py\nsee above\n")
        audit = await odek.run("audit")

    asked = server.requests[0].json["messages"][-1]["content"]
    assert asked.startswith('explain\n\n<untrusted_content source="piped input" nonce=')
    assert "\nPiped in beside the task:\n```\nerror in @a.py\nsee above\n```\n" in asked
    assert "print(1)" not in asked
    assert "attached piped input (25 bytes)" in done.stderr
    assert "piped input" in audit.stdout
    assert b'"episode_untrusted":true' in odek.sessions()[0].read_bytes()


async def test_the_stdin_of_a_loop_is_left_to_the_loop(tmp_path: Path) -> None:
    """A command inside a loop over lines does not swallow those that are still to come."""
    async with open_model_server(default=text_answer("ok")) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        loop = f'while read -r line; do {ODEK} run --no-session "do $line"; done'
        await trio.run_process(
            ["sh", "-c", loop],
            stdin=b"one\ntwo\n",
            capture_stdout=True,
            capture_stderr=True,
            cwd=odek.workspace,
            env=odek.environment,
        )

    assert [request.json["messages"][-1]["content"] for request in server.requests] == ["do one", "do two"]


async def test_a_pipe_that_nobody_writes_to_holds_nothing_up(tmp_path: Path) -> None:
    """A program that starts the command and keeps its stdin open gets its answer, and a word about it."""
    reads, writes = os.pipe()
    try:
        async with open_model_server([text_answer("ok")]) as server:
            odek = Odek(tmp_path, base_url=server.base_url)
            async with odek.start("run", "hi", stdin=reads) as running:
                done = await running.wait()
    finally:
        os.close(reads)
        os.close(writes)

    assert (done.status, done.stdout) == (0, "ok\n")
    assert "nothing came through the pipe" in done.stderr


async def test_no_session_leaves_nothing(tmp_path: Path) -> None:
    """A run that shall not be kept is not."""
    async with open_model_server([text_answer("ok")]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        done = await odek.run("run", "--no-session", "secret")

    assert done.status == 0
    assert odek.sessions() == []


async def test_usage_is_in_the_closing_line(tmp_path: Path) -> None:
    """Time, tokens and cache hits are told when the provider reports them."""
    usage = usage_chunk(1200, 34, prompt_tokens_details={"cached_tokens": 1000})
    answer = event_stream(chunk({"content": "ok"}), chunk(finish_reason="stop"), usage)
    async with open_model_server([answer]) as server:
        done = await Odek(tmp_path, base_url=server.base_url).run("run", "hi")

    assert "1,200 in (1,000 cached) · 34 out" in done.stderr


async def test_everything_written_is_private(tmp_path: Path) -> None:
    """Files are 0600 and directories 0700, whatever the umask."""
    async with open_model_server([text_answer("ok")]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await odek.run("run", "hi")

    for path in [odek.home, *odek.home.rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


async def test_session_files_hold_the_conversation(tmp_path: Path) -> None:
    """What is on disk is what was said, in the order in which it was said."""
    async with open_model_server([text_answer("ok")]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        await odek.run("run", "hi")

    session = msgspec.json.decode(odek.sessions()[0].read_bytes())
    assert [message["role"] for message in session["messages"]] == ["system", "user", "assistant"]
    assert (session["task"], session["turns"], session["model"]) == ("hi", 1, "test-model")


@pytest.mark.parametrize(
    "arguments", [["session", "delete", ""], ["session", "trim", "", "1"], ["continue", "--id", "", "x"]]
)
async def test_an_empty_id_is_not_the_newest_session(tmp_path: Path, arguments: list[str]) -> None:
    """An unset variable in a script touches nothing."""
    odek = Odek(tmp_path)
    await odek.run("run", "help")
    before = odek.sessions()[0].read_bytes()
    done = await odek.run(*arguments)

    assert done.status == 3
    assert "the id is empty" in done.stderr
    assert odek.sessions()[0].read_bytes() == before


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
async def test_closed_standard_streams_are_no_fault(tmp_path: Path, redirection: str) -> None:
    """A process without stdin, stdout or stderr does its work."""
    odek = Odek(tmp_path)
    done = await trio.run_process(
        f"{ODEK} run 'write a.txt: hello' {redirection}",
        shell=True,
        cwd=odek.workspace,
        env=odek.environment,
        check=False,
        capture_stdout=True,
        capture_stderr=True,
    )

    assert done.returncode == 0, done.stderr
    assert b"internal error" not in done.stderr
    assert (odek.workspace / "a.txt").read_text() == "hello\n"


@pytest.mark.parametrize(
    "command", ["session list", "config schema", "--help", "run help", "run --json help"]
)
async def test_output_that_cannot_be_written_is_one_line(tmp_path: Path, command: str) -> None:
    """A full disk behind stdout is said, with exit 1."""
    odek = Odek(tmp_path)
    await odek.run("run", "help")
    odek.environment.pop("PYTHONUNBUFFERED", None)
    done = await trio.run_process(
        f"{ODEK} {command} >/dev/full",
        shell=True,
        cwd=odek.workspace,
        env=odek.environment,
        check=False,
        capture_stderr=True,
    )

    assert done.returncode == 1
    assert b"cannot write to stdout: the disk is full" in done.stderr
    assert b"internal error" not in done.stderr


async def test_a_home_that_cannot_be_written_does_not_stop_the_work(tmp_path: Path) -> None:
    """As with a full disk: one warning, and the answer."""
    odek = Odek(tmp_path)
    odek.home.mkdir()
    (odek.home / "sessions").write_text("a file in the place of the directory")
    done = await odek.run("run", "list .")

    assert done.status == 0
    assert "this session is not kept" in done.stderr
