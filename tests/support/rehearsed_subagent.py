"""A process that prepares as the template of the subagents does, does one task, and says what was left to do.

    python -m tests.support.rehearsed_subagent BASE_URL HOME

Prints one JSON object: the modules that were loaded and the patterns that were compiled
after the rehearsal, and the answer.
"""

import json
import os
import sys
import threading
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import trio

from odek.budget import Limits
from odek.config.files import load
from odek.delegation import Credentials, DelegatedTask, WorkOrder, clamped, config_for
from odek.delegation_wiring import SUBAGENT_MODULES
from odek.rehearsal import prepare
from odek.worker import run_task

__all__: list[str] = []

PATTERN_COMPILER = str(Path("re", "_compiler.py"))


def main(base_url: str, home: Path) -> None:
    """Prepare, do the task, and report."""
    for name in SUBAGENT_MODULES:
        import_module(name)
    prepare()
    order = an_order(base_url, home)
    loaded = set(sys.modules)
    compiled: list[str] = []

    def watch(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name == "compile" and code.co_filename.endswith(PATTERN_COMPILER):
            compiled.append(str(frame.f_locals["p"]))

    threading.setprofile(watch)
    sys.setprofile(watch)
    result = trio.run(
        run_task, order, Credentials({"api_key": "key"}), lambda _: None, lambda _: None, os.environ
    )
    sys.setprofile(None)
    late = sorted(set(sys.modules) - loaded)
    sys.stdout.write(json.dumps({"loaded": late, "compiled": compiled, "answer": result.summary}))


def an_order(base_url: str, home: Path) -> WorkOrder:
    """Return a task as a session would hand it out."""
    task = DelegatedTask("say something")
    config = load(home, Path.cwd(), {}, {"base_url": base_url, "model": "m"}).config
    rights = clamped(task, config.dangerous, (), asks_nobody=True)
    return WorkOrder(
        name="task 1",
        task=task,
        config=config_for(task, config, rights, Limits()),
        home=str(home),
        workspace=str(Path.cwd()),
        usage_file=str(home / "usage" / "session" / "one.json"),
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
