"""The API key while subagents use it: whoever does not need it cannot be made to tell it."""

import re
import signal
import sys
from pathlib import Path

import pytest
import trio

from tests.support.cli import Odek
from tests.support.delegations import answers, delegate, marked_odek, start_delegating
from tests.support.model_server import gated, open_model_server, stall, text_answer, tool_call_answer
from tests.support.proc_search import files_with, holds_in_memory, shown_with
from tests.support.processes import Marked
from tests.support.waiting import HANG_SECONDS

linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is the witness")

KEY = "sk-proj-hidden-0123456789abcdefABCDEF"


def command_line(pid: int) -> str:
    """Return the arguments of a process, or "" when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@linux
@pytest.mark.parametrize(("way", "source"), [("warm", "file"), ("fresh", "environment")])
async def test_nothing_but_memory_that_needs_it_holds_the_key(way: str, source: str, tmp_path: Path) -> None:
    """No file of any process in /proc, no file below home and temporary directory, no template or warden.

    The search finds it where it must be: in the memory of those who ask the endpoint, and in the
    environment that a person put it into.
    """
    marked = Marked()
    marked.watch(tmp_path / "work")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    ready = trio.Event()
    first = gated(ready, delegate({"goal": "wait"}, {"goal": "wait too", "trust_level": "trusted"}))
    async with open_model_server(default=answers([first], {"wait": stall()})) as server:
        odek = marked_odek(tmp_path, server.base_url, marked)
        odek.environment["TMPDIR"] = str(temporary)
        if source == "environment":
            odek.environment["ODEK_API_KEY"] = KEY
        else:
            odek.home.mkdir(mode=0o700)
            (odek.home / "secrets.env").write_text(f"ODEK_API_KEY={KEY}\n")
            (odek.home / "secrets.env").chmod(0o600)
        async with start_delegating(odek, way, ready) as running:
            with trio.fail_after(HANG_SECONDS):
                await server.wait_requests(3)
            processes = {pid: command_line(pid) for pid in marked.living()}
            shown = await trio.to_thread.run_sync(
                lambda: [place for pid in processes for place in shown_with(pid, KEY.encode())]
            )
            remembering = await trio.to_thread.run_sync(
                lambda: {pid: holds_in_memory(pid, KEY.encode()) for pid in processes}
            )
            running.signal(signal.SIGINT)
            await running.wait()
        headers = [request.headers["authorization"] for request in server.requests]
    files = await trio.to_thread.run_sync(files_with, tmp_path, KEY.encode())

    assert headers == [f"Bearer {KEY}"] * 3
    own = {f"/proc/{running.pid}/environ", f"/proc/{running.pid}/task/{running.pid}/environ"}
    assert {place for place in shown if not place.startswith(f"/proc/{running.pid}/")} == set()
    assert set(shown) >= own if source == "environment" else shown == []
    assert files == ([] if source == "environment" else [odek.home / "secrets.env"])
    templates = {pid for pid, line in processes.items() if line.startswith("odek subagent template")}
    # Some of them may wait for a task.
    subagents = {pid for pid, line in processes.items() if re.search("subagent(:| --supervised)", line)}
    assert len(templates) == (1 if way == "warm" else 0)
    assert len(subagents) >= 2
    assert len(processes) >= 3 + len(subagents)
    if remembering[running.pid] is None:
        pytest.skip("this system lets nobody look into another process")
    remembered = {pid for pid, found in remembering.items() if found}
    assert remembered <= {running.pid, *subagents}
    assert len(remembered) >= 3, "the search should find it where it is needed"


async def test_a_subagent_by_hand_keeps_its_key_from_what_it_runs(tmp_path: Path) -> None:
    """The variable that brings the key is not in the environment of its commands."""
    looking = {"command": "python3 -c 'import os; print(*os.environ)'"}
    script = [tool_call_answer([("shell", looking)]), text_answer("looked")]
    given = {"ODEK_API_KEY": KEY, "OTHER": "1", "ODEK_DANGEROUS_NON_INTERACTIVE": "allow"}
    async with open_model_server(script) as server:
        odek = Odek(tmp_path, base_url=server.base_url)
        done = await odek.run("subagent", "--goal", "look", environment=given)
        names = server.requests[-1].json["messages"][-1]["content"].split()

    assert done.status == 0, done.stdout
    assert "OTHER" in names
    assert "ODEK_API_KEY" not in names
