"""No credential gets out by what a provider says, an answer in pieces or the output of a command."""

import signal
from pathlib import Path

import trio

from odek.batch import SUMMARY_CHARACTERS
from tests.support.cli import Odek
from tests.support.delegations import delegate, is_child
from tests.support.endpoints import SOON
from tests.support.http_request import RecordedRequest
from tests.support.model_server import (
    DONE,
    Answer,
    by_request,
    chunk,
    error_answer,
    event_stream,
    open_model_server,
    stall,
    text_answer,
    tool_call_answer,
)
from tests.support.waiting import HANG_SECONDS

TOKEN = "ghp" + "_" + "a1B2c3D4e5F6" * 3


def kept(odek: Odek) -> str:
    """Return all that the command has written below its home."""
    return "".join(path.read_text("utf-8", "replace") for path in odek.home.rglob("*") if path.is_file())


async def test_what_a_provider_quotes_is_masked(tmp_path: Path) -> None:
    """In the notice of a retry and in the last error, on the screen and in the session."""
    failures = [error_answer(500, f"token {TOKEN} expired", headers=SOON)] * 2
    async with open_model_server(failures) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        done = await odek.run("run", "--json", "go", environment={"ODEK_LLM_MAX_RETRIES": "1"})

    assert done.status == 1
    assert [event["type"] for event in done.events].count("model_retrying") == 1
    assert done.stdout.count("[REDACTED:github-token]") >= 2
    assert TOKEN not in done.stdout + done.stderr + kept(odek)


async def test_an_answer_in_pieces_is_masked(tmp_path: Path) -> None:
    """A credential that no piece holds whole is in no event, on no screen and in no file."""
    pieces = [chunk({"content": piece}) for piece in ("it is ", TOKEN[:9], TOKEN[9:20], TOKEN[20:], ", yes")]
    async with open_model_server([event_stream(*pieces, DONE)] * 2) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        shown = await odek.run("run", "go")
        events = await odek.run("run", "--json", "go")

    assert shown.stdout == "it is [REDACTED:github-token], yes\n"
    assert TOKEN[:20] not in events.stdout + kept(odek)


async def test_what_a_command_prints_is_masked_before_the_model(tmp_path: Path) -> None:
    """Also where its middle is left out."""
    command = "yes x | head -c 60000; cat key; yes y | head -c 300000"
    script = [tool_call_answer([("shell", {"command": command})]), text_answer("ok")]
    async with open_model_server(script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        odek.environment["ODEK_SHELL_OUTPUT_LIMIT_BYTES"] = str(2 * 60_010)
        (odek.workspace / "key").write_text(TOKEN)
        await odek.run("run", "--json", "go")
        result = server.requests[1].json["messages"][-1]["content"]

    assert "[REDACTED:github-token]" in result
    assert TOKEN[:8] not in result + kept(odek)


async def test_half_a_credential_at_the_end_of_a_line_is_not_shown(tmp_path: Path) -> None:
    """What a call does is told in a line that is masked before it is cut, in events, records and sessions."""
    calls = [("shell", {"command": f"echo {'x' * shift}\\\n {TOKEN}"}) for shift in range(70, 112, 3)]
    async with open_model_server([tool_call_answer(calls), text_answer("ok")]) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        done = await odek.run("run", "--json", "go", environment={"ODEK_DANGEROUS_NON_INTERACTIVE": "allow"})

    summaries = [str(event["summary"]) for event in done.events if event["type"] == "tool_started"]
    assert done.status == 0
    assert len(summaries) == len(calls)
    assert all(len(summary) <= SUMMARY_CHARACTERS and "\n" not in summary for summary in summaries)
    assert TOKEN[:8] not in done.stdout + done.stderr
    assert TOKEN[:8] not in kept(odek)


async def test_a_task_with_a_credential_is_kept_nowhere_while_it_runs(tmp_path: Path) -> None:
    """Neither in the session nor in what `odek ps` shows, of the process itself and of its subagents."""
    goal = f"use {TOKEN} to look"
    asked = trio.Event()

    def choose(request: RecordedRequest) -> Answer:
        if is_child(request):
            asked.set()
            return stall()
        return delegate({"goal": goal})

    async with open_model_server(default=by_request(choose)) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        async with odek.start("run", goal) as running:
            with trio.fail_after(HANG_SECONDS):
                await asked.wait()
            shown = await odek.run("ps")
            held = await trio.to_thread.run_sync(kept, odek)
            running.signal(signal.SIGINT)
            await running.wait()

    assert shown.stdout.count("use [REDACTED:github-tok") == 2
    assert TOKEN[:12] not in held + shown.stdout
