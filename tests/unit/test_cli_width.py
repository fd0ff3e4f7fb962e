"""Lists are as wide as the terminal: `odek ps`, `odek config show` and `odek audit`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from odek.cli.layout import columns_of
from odek.memory.episodes import EpisodeStore, Provenance
from odek.processes import registered
from odek.sessions.names import audit_path
from odek.trust.audit import AuditTrail, Ingest
from tests.support.sessions import write_foreign
from tests.support.terminal import open_terminal

SESSION = "20260102-0123456789abcdef"
TASK = "read \x1b[2J the 世界 of " + "words " * 40


def shown(home: Path, *arguments: str, columns: int | None) -> list[str]:
    """Return the lines that a command writes to a terminal of ``columns``, or to a pipe for None."""
    argv = [sys.executable, "-m", "odek", *arguments]
    environ = {**os.environ, "HOME": str(home.parent), "ODEK_HOME": str(home), "PYTHONIOENCODING": "utf-8"}
    if columns is None:
        return subprocess.run(
            argv, env=environ, cwd=home, capture_output=True, check=True, encoding="utf-8"
        ).stdout.splitlines()
    with open_terminal(columns) as terminal:
        subprocess.run(argv, env=environ, cwd=home, stdout=terminal.file, check=True)
        return terminal.read().splitlines()


@pytest.mark.parametrize("columns", [60, 80, 100, None])
def test_processes_are_a_line_each_that_fits(tmp_path: Path, columns: int | None) -> None:
    """What a process does takes the room that is left; where there is little, sessions are not shown."""
    with registered(tmp_path, command="run", session=SESSION, task=TASK):
        lines = shown(tmp_path, "ps", columns=columns)

    width = columns or 80
    with_session = ["SESSION"] if width > 60 else []
    assert lines[0].split() == ["PID", "MEMORY", "AGE", *with_session, "COMMAND"]
    assert lines[1].startswith(f"{os.getpid()} ")
    assert (SESSION[:17] in lines[1]) == bool(with_session)
    assert r"run read \x1b[2J the" in lines[1]
    assert len(lines) == 2
    assert columns_of(lines[1]) in range(width - 1, width + 1)


@pytest.mark.parametrize("columns", [60, 80, None])
def test_settings_are_aligned_within_the_terminal(tmp_path: Path, columns: int | None) -> None:
    """Every key comes with value and origin; a key is whole, its value below it where it takes a line."""
    home = tmp_path / ".odek"
    home.mkdir()
    (home / "config.json").write_text(
        '{"system": "世界 ' + "x" * 300 + '", "memory": {"extended": {"semantic_search_overfetch": 7}}}'
    )
    lines = shown(home, "config", "show", columns=columns)

    origin = "~/.odek/config.json"
    words = " ".join(lines).split()
    at = words.index("memory.extended.semantic_search_overfetch")
    assert words[at + 1 : at + 3] == ["7", origin]
    whole = [line for line in lines if line.endswith(("  default", f"  {origin}"))]
    assert len({columns_of(line.removesuffix("default").removesuffix(origin)) for line in whole}) == 1
    assert all(line.count(".") and " " not in line for line in lines if line not in whole)
    assert max(map(columns_of, lines)) <= (columns or 80)


@pytest.mark.parametrize("columns", [60, 100, None])
def test_a_record_is_wrapped_at_the_width_of_the_terminal(tmp_path: Path, columns: int | None) -> None:
    """What came in and where it is from takes as many lines as it needs, and no more."""
    write_foreign(tmp_path / "sessions", SESSION, [{"role": "user", "content": TASK}])
    ingest = Ingest(
        time="2026-01-02T00:00:00Z", turn=1, source="word " * 50, sha256="0" * 16, size_bytes=7, call_id=""
    )
    AuditTrail(audit_path(tmp_path / "sessions", SESSION)).append([ingest])

    lines = shown(tmp_path, "audit", columns=columns)

    width = columns or 80
    assert max(map(columns_of, lines)) in range(width - 6, width + 1)
    assert " ".join(" ".join(lines).split()).count("word") == 50


@pytest.mark.parametrize("columns", [50, 60, 80])
def test_lines_about_the_memory_are_parted_between_words(tmp_path: Path, columns: int) -> None:
    """What does not fit goes on below, further in; a pipe gets each line whole."""
    store = EpisodeStore(tmp_path / "memory")
    untrusted = Provenance(untrusted=True, sources=("unknown_provenance", "network", "agent"))
    store.write(
        "20260102-" + "0" * 32,
        f"The person did {'word ' * 40}and 世界.\n\n- a list\n",
        turns=4,
        provenance=untrusted,
    )
    (tmp_path / "memory" / "20260103-x.md").write_text("The person moved to Lisbon.")

    for arguments in (["memory", "list"], ["memory", "show", "20260102"]):
        whole = shown(tmp_path, *arguments, columns=None)
        lines = shown(tmp_path, *arguments, columns=columns)

        assert max(map(columns_of, lines)) <= columns
        assert " ".join(" ".join(lines).split()) == " ".join(" ".join(whole).split())
