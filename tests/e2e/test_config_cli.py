"""``odek init`` and ``odek config`` as a person runs them."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

KEY = "sk-abcdef-0123456789"


class Shell:
    """Runs odek in a project directory, with a home of its own and a clean environment."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.home = root / ".odek"
        self.project.mkdir()
        self.environ = {"HOME": str(root), "PATH": os.environ["PATH"], "PYTHONWARNINGS": "error"}

    def odek(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "odek", *arguments],
            cwd=self.project,
            env=self.environ | environ,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Return a shell in an empty project of a new user."""
    return Shell(tmp_path)


def test_init_writes_a_file_that_works_and_is_never_overwritten(shell: Shell) -> None:
    """The second time there is one line, status 3, and the file is as it was."""
    first = shell.odek("init")
    path = shell.project / "odek.json"
    path.write_text(path.read_text() + "// mine\n")
    second = shell.odek("init")

    assert (first.returncode, first.stdout, first.stderr) == (0, "wrote ./odek.json\n", "")
    assert second.returncode == 3
    assert second.stderr.count("\n") == 1
    assert "./odek.json exists" in second.stderr
    assert path.read_text().endswith("// mine\n")
    assert shell.odek("config", "show").returncode == 0


def test_init_global_is_private_whatever_the_umask(shell: Shell) -> None:
    """The directory is 0700 and the file 0600."""
    before = os.umask(0)
    try:
        done = shell.odek("init", "--global")
    finally:
        os.umask(before)

    assert (done.returncode, done.stdout) == (0, "wrote ~/.odek/config.json\n")
    assert stat.S_IMODE(shell.home.stat().st_mode) == 0o700
    assert stat.S_IMODE((shell.home / "config.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(("flags", "name"), [((), "./odek.json"), (("--global",), "~/.odek/config.json")])
def test_init_where_nothing_can_be_written(shell: Shell, flags: tuple[str, ...], name: str) -> None:
    """The file and the reason are named in a line, and no half of it stays."""
    limited = 'ulimit -f 0; exec "$0" "$@"'  # as a disk that takes no byte more
    done = subprocess.run(
        ["sh", "-c", limited, sys.executable, "-B", "-m", "odek", "init", *flags],
        cwd=shell.project,
        env=shell.environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"odek: cannot write {name}: the file would be larger than is allowed here\n"
    assert not (shell.project / "odek.json").exists()
    assert not (shell.home / "config.json").exists()


def test_init_does_not_write_through_a_link(shell: Shell, tmp_path: Path) -> None:
    """A dangling link of the name counts as a file that exists."""
    (shell.project / "odek.json").symlink_to(tmp_path / "elsewhere")

    assert shell.odek("init").returncode == 3
    assert not (tmp_path / "elsewhere").exists()


def test_show_tells_value_and_layer_and_no_secret(shell: Shell) -> None:
    """Values are aligned within 80 columns; the key is masked wherever it appears."""
    shell.home.mkdir()
    (shell.home / "secrets.env").write_text(f"ODEK_API_KEY={KEY}\n")
    (shell.home / "secrets.env").chmod(0o644)
    (shell.home / "config.json").write_text(
        '{"system": "key ${ODEK_API_KEY} ' + "word " * 40 + '", "base_url": "http://u:pw@host/v1"}'
    )
    (shell.project / "odek.json").write_text('{"model": "m", "api_key": "x"}')

    table = shell.odek("config", "show", ODEK_MAX_ITER="7")
    as_json = shell.odek("config", "show", "--json", ODEK_MAX_ITER="7")

    lines = table.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    rows = {line.split()[0]: line for line in lines}
    assert rows["model"].endswith("./odek.json")
    assert rows["max_iterations"].split() == ["max_iterations", "7", "ODEK_MAX_ITER"]
    assert rows["shell.timeout_seconds"].split() == ["shell.timeout_seconds", "120.0", "default"]
    assert rows["api_key"].split()[1] == '"********"'
    assert "a project file may not set: api_key" in table.stderr
    assert "chmod 600 ~/.odek/secrets.env" in table.stderr
    shown = json.loads(as_json.stdout)
    assert shown["api_key"] == {"value": "********", "from": "ODEK_API_KEY in secrets.env"}
    assert shown["base_url"]["value"] == "http://********@host/v1"
    assert shown["max_iterations"] == {"value": 7, "from": "ODEK_MAX_ITER"}
    for done in (table, as_json):
        assert KEY not in done.stdout + done.stderr
        assert "pw@" not in done.stdout


def test_a_broken_file_ends_with_3_and_says_where(shell: Shell) -> None:
    """No traceback; the file, the line and the column."""
    (shell.project / "odek.json").write_text('{\n  "model": "m",\n  oops\n}')

    done = shell.odek("config", "show")

    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("odek: ./odek.json: line 3, column 3: ")
    assert done.stderr.count("\n") == 1


def test_schema_is_json(shell: Shell) -> None:
    """The schema can be fed to an editor."""
    done = shell.odek("config", "schema")

    assert json.loads(done.stdout)["$defs"]["Config"]["additionalProperties"] is False


def test_path_follows_odek_home(shell: Shell, tmp_path: Path) -> None:
    """The files are looked for where ODEK_HOME says, and missing ones are marked."""
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "config.json").write_text("{}")

    lines = shell.odek("config", "path", ODEK_HOME=str(moved)).stdout.splitlines()

    assert lines[0].endswith("~/moved/config.json")
    assert lines[2].endswith("~/moved/secrets.env  (not there)")


@pytest.mark.parametrize("command", [["init"], ["config", "show"], ["config", "path"]])
def test_nothing_heavy_is_loaded(shell: Shell, command: list[str]) -> None:
    """Neither the event loop nor the HTTP client is imported for the configuration."""
    code = (
        "import sys; from odek.cli.main import main; status = main(sys.argv[1:]); "
        "print([name for name in ('trio', 'httpx2', 'numpy', 'tree_sitter') if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        cwd=shell.project,
        env=shell.environ,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == "[]"
