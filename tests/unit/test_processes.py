"""The list of running processes of a home."""

import os
import subprocess
import sys
from pathlib import Path

from odek.processes import is_running, registered, running_processes


def test_a_process_is_listed_while_it_runs(tmp_path: Path) -> None:
    """It is there within the block, with what it said of itself, and gone after it."""
    with registered(tmp_path, command="agent", session="s1", task="a task"):
        (process,) = running_processes(tmp_path)
        assert (process.pid, process.session, process.task) == (os.getpid(), "s1", "a task")
        assert is_running(tmp_path, os.getpid())

    assert running_processes(tmp_path) == []
    assert list((tmp_path / "run").iterdir()) == []


def test_the_file_of_a_dead_process_is_ignored_and_swept(tmp_path: Path) -> None:
    """A file that nobody locks speaks of nobody."""
    (tmp_path / "run").mkdir()
    stale = tmp_path / "run" / "4711.json"
    stale.write_text('{"pid": 4711, "command": "agent", "started_at": 1}')

    assert running_processes(tmp_path) == []
    assert not stale.exists()


def test_a_home_that_cannot_be_written_to_does_not_stop_the_process(tmp_path: Path) -> None:
    """It runs unlisted."""
    (tmp_path / "run").write_text("not a directory")
    with registered(tmp_path, command="agent"):
        assert running_processes(tmp_path) == []


def test_long_and_foreign_text_is_no_hindrance(tmp_path: Path) -> None:
    """A task of any length and script is listed, cut."""
    with registered(tmp_path, command="agent", task="\N{SNOWMAN}\x1b" * 5000):
        assert running_processes(tmp_path)[0].task.startswith("\N{SNOWMAN}")


def test_a_full_disk_leaves_no_empty_file_behind(tmp_path: Path) -> None:
    """A process that could not write down what it is runs unlisted, and there is nothing to sweep."""
    program = """
import resource, sys
from pathlib import Path
from odek.processes import registered
home = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with registered(home, command="agent"):
    print(*(home / "run").iterdir(), "runs")
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, check=True)

    assert done.stdout.split() == [b"runs"]
    assert list((tmp_path / "run").iterdir()) == []
