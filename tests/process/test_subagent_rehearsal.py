"""The rehearsal of the template: what a subagent no longer has to do itself."""

import json
import subprocess
import sys
from pathlib import Path

import trio

from tests.support.model_server import open_model_server, text_answer

ROOT = Path(__file__).parents[2]


async def test_a_subagent_loads_and_compiles_nothing_that_could_have_been_rehearsed(tmp_path: Path) -> None:
    """From its task to its answer a subagent imports no module and compiles no pattern."""
    command = [sys.executable, "-m", "tests.support.rehearsed_subagent"]
    async with open_model_server([text_answer("something")]) as server:
        with trio.fail_after(30):
            done = await trio.run_process(
                [*command, server.base_url, str(tmp_path / "home")],
                cwd=tmp_path,
                env={"PYTHONPATH": str(ROOT)},
                capture_stdout=True,
            )

    assert json.loads(done.stdout) == {"loaded": [], "compiled": [], "answer": "something"}


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
