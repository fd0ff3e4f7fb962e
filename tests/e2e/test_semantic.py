"""Word vectors as a person asks for them."""

import os
import subprocess
import sys
from pathlib import Path


def test_a_run_without_the_package_ends_at_once_and_says_what_to_do(tmp_path: Path) -> None:
    """Nothing is asked of a model while the settings want what is not installed."""
    (tmp_path / "wordllama.py").write_text("")  # in the way of the package, wherever that may be
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, "-m", "odek", "run", "hi"],
        cwd=tmp_path,
        env=environ | {"ODEK_EMBEDDING_PROVIDER": "static"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == (
        "odek: embedding.provider is static, but its word vectors are not installed: "
        "pip install 'odek[semantic]'"
    )
