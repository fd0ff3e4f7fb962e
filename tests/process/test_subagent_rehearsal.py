"""The rehearsal of the template: what a subagent no longer has to do itself."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import trio

from tests.support.model_server import Answer, open_model_server, text_answer, tool_call_answer
from tests.support.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[2]


CALLS: dict[str, dict[str, Any]] = {
    "write_file": {"path": "a.txt", "content": "one\ntwo\n"},
    "read_file": {"path": "a.txt"},
    "patch": {"path": "a.txt", "edits": [{"old_text": "one", "new_text": "three"}]},
    "glob": {"pattern": "*.txt"},
    "tree": {},
    "search_files": {"pattern": "t.o"},
    "shell": {"command": "ls | head -3"},
}


async def rehearsed(directory: Path, script: list[Answer]) -> dict[str, Any]:
    """Return what a prepared process still had to load and to compile for a task answered by ``script``."""
    command = [sys.executable, "-m", "tests.support.rehearsed_subagent"]
    async with open_model_server(script) as server:
        with trio.fail_after(HANG_SECONDS):
            done = await trio.run_process(
                [*command, server.base_url, str(directory / "home")],
                cwd=directory,
                env={"PYTHONPATH": str(ROOT)},
                capture_stdout=True,
            )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def test_a_subagent_loads_and_compiles_nothing_that_could_have_been_rehearsed(tmp_path: Path) -> None:
    """From its task to its answer a subagent imports no module and compiles no pattern."""
    found = await rehearsed(tmp_path, [text_answer("something")])

    assert found == {"loaded": [], "compiled": [], "answer": "something"}


async def test_the_first_calls_of_a_subagent_load_nothing(tmp_path: Path) -> None:
    """What judges and runs commands and works on files is there."""
    script = [tool_call_answer([call]) for call in CALLS.items()]
    found = await rehearsed(tmp_path, [*script, text_answer("all done")])

    assert (found["loaded"], found["answer"]) == ([], "all done")
    assert (tmp_path / "a.txt").read_text() == "three\ntwo\n"


def test_the_rehearsal_starts_no_thread_and_no_event_loop_and_keeps_no_file_open() -> None:
    """What it leaves behind may be forked."""
    code = (
        "import os, threading\n"
        "before = len(os.listdir('/dev/fd'))\n"
        "from odek.rehearsal import prepare\n"
        "prepare()\n"
        "import trio\n"
        "assert threading.active_count() == 1\n"
        "assert len(os.listdir('/dev/fd')) == before\n"
        "assert not trio.lowlevel.in_trio_run()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30, cwd=ROOT)
