"""The demonstration that `make demo` shows."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_demo_tells_its_whole_story_and_leaves_nothing(tmp_path: Path) -> None:
    """Every step succeeds at 80 columns without colour, and the temporary home is gone afterwards."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.demo"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "$ odek continue" in done.stdout
    assert "I prefer short answers" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert list(tmp_path.iterdir()) == []
