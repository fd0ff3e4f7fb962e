"""What ``search_files`` finds, leaves out, and survives."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from odek.errors import TargetChangedError, ToolError
from odek.tools.regex_search import FILE_SECONDS
from odek.tools.search_files import SearchFilesTool
from subagent.warden import descendants
from tests.support.processes import has_open
from tests.support.tool_calls import SCOPE, call, prepare
from tests.support.waiting import HANG_SECONDS, open_stopwatch, wait_until


@pytest.fixture
def tool(tmp_path: Path) -> SearchFilesTool:
    """A tool in an empty workspace."""
    return SearchFilesTool(tmp_path, trio.CapacityLimiter(4))


async def search(tool: SearchFilesTool, pattern: str, **arguments: object) -> str:
    """Search within a time that only a stuck search would need."""
    with trio.fail_after(HANG_SECONDS):
        return (await call(tool, pattern=pattern, **arguments)).content


def is_searching(folder: Path) -> bool:
    """Tell whether a child of this process reads a file below ``folder``."""
    return any(has_open(pid, folder) for pid, _, _, _ in descendants(os.getpid()))


async def test_matches_come_under_their_file(tool: SearchFilesTool, tmp_path: Path) -> None:
    """Each file is named once, each matching line has its number."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text("import os\n\ndef f():\n    import re\n")
    (tmp_path / "y.txt").write_text("no\r\nimport this\r\n")

    assert await search(tool, r"^\s*import \w+$") == (
        "y.txt\n2: import this\na/x.py\n1: import os\n4:     import re"
    )


async def test_file_glob_case_and_context(tool: SearchFilesTool, tmp_path: Path) -> None:
    """The options narrow the files, fold the case, and add the lines around, without doubles."""
    (tmp_path / "a.py").write_text("1\nTwo\ntwo\n4\n5\n6\n7\ntwo\n")
    (tmp_path / "b.md").write_text("two\n")

    assert await search(tool, "two", glob="*.py", ignore_case=True, context_lines=1) == (
        "a.py\n1- 1\n2: Two\n3: two\n4- 4\n--\n7- 7\n8: two"
    )
    assert await search(tool, "two", path="b.md") == "b.md\n1: two"


async def test_ignored_binary_and_linked_files_are_left_out(tool: SearchFilesTool, tmp_path: Path) -> None:
    """Only text files of the project are searched; ignored ones are counted if nothing was found."""
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "x").write_text("needle")
    (tmp_path / "data.bin").write_bytes(b"\0needle")
    (tmp_path / "link").symlink_to("build/x")
    (tmp_path / "loop").symlink_to(".")
    os.mkfifo(tmp_path / "pipe")

    assert await search(tool, "needle") == ("[no line matches; 1 entries are ignored by git's rules]")
    assert await search(tool, "needle", path="build") == "build/x\n1: needle"


async def test_encodings_are_searched_as_text(tool: SearchFilesTool, tmp_path: Path) -> None:
    """A word is found whatever encoding its file has."""
    for codec in ("utf-8", "utf-8-sig", "utf-16", "latin-1"):
        (tmp_path / f"{codec}.txt").write_bytes("eine größe\n".encode(codec))

    found = await search(tool, "^eine größe$")

    assert [line for line in found.splitlines() if line.endswith(".txt")] == [
        "latin-1.txt",
        "utf-16.txt",
        "utf-8-sig.txt",
        "utf-8.txt",
    ]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a", "not valid at character 1: missing \\), unterminated subpattern"),
        ("a**", "not valid at character 3: multiple repeat"),
        ("x" * 2001, "search_files: expected `str` of length <= 2000, in `pattern`"),
        ("(" * 900 + ")" * 900, "too deeply nested|not valid"),
        ("a{99999999999999999999}", "repeats too often"),
    ],
)
async def test_invalid_pattern_says_where(tool: SearchFilesTool, pattern: str, message: str) -> None:
    """A pattern that cannot be is one sentence, before anything is asked or read."""
    with pytest.raises(ToolError, match=message):
        await prepare(tool, pattern=pattern)


async def test_pattern_that_backtracks_for_ever_costs_one_file(tool: SearchFilesTool, tmp_path: Path) -> None:
    """A catastrophic pattern gives up on the hostile file, names it, and finds the rest; the loop goes on."""
    (tmp_path / "a-hostile").write_text("a" * 40 + "!\n")
    (tmp_path / "b").write_text("aaaa\n")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await trio.sleep(0.05)
            ticks += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        found = await search(tool, "^(a+)+$")
        nursery.cancel_scope.cancel()

    assert found.startswith("b\n1: aaaa\n[gave up after 2 s each on a-hostile: the pattern backtracks")
    assert ticks > 10


async def test_cancelled_search_leaves_no_process(tool: SearchFilesTool, tmp_path: Path) -> None:
    """Cancelling a search that is stuck in a pattern ends it at once, long before it would give up."""
    (tmp_path / "hostile").write_text("a" * 40 + "!\n")

    async with open_stopwatch() as watch:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(call, tool, pattern="^(a+)+$"))
                await wait_until(lambda: is_searching(tmp_path))
                watch.start()
                scope.cancel()
        assert watch.seconds < FILE_SECONDS / 2

    assert not is_searching(tmp_path)


async def test_search_imports_nothing_from_the_workspace(
    tool: SearchFilesTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modules that lie where the agent works are text to be searched, never code to be run."""
    (tmp_path / "json.py").write_text("raise SystemExit('ran')  # needle\n")
    (tmp_path / "odek").mkdir()
    (tmp_path / "odek" / "__init__.py").write_text("raise SystemExit('ran')\n")
    monkeypatch.chdir(tmp_path)

    assert await search(tool, "needle") == "json.py\n1: raise SystemExit('ran')  # needle"


async def test_answer_is_bounded(tool: SearchFilesTool, tmp_path: Path) -> None:
    """Matches, long lines and huge one-line files stay within the answer's limits, and the cut is said."""
    (tmp_path / "many").write_text("needle\n" * 1000)
    (tmp_path / "one-line").write_text("x" * 5000 + "needle" + "y" * 50_000_000)
    (tmp_path / "wide").write_text(("needle" + "é" * 1000 + "\n") * 1000)

    many = await search(tool, "needle", path="many", max_results=10)
    one = await search(tool, "needle", path="one-line")
    wide = await search(tool, "needle", path="wide", max_results=1000)

    assert many.count("needle") == 10
    assert many.endswith("[stopped after 10 matches; narrow the search or raise max_results]")
    assert one.startswith("one-line\n1: …" + "x" * 100 + "needleyyy")
    assert "[1 lines were searched in their first 20,000 bytes only]" in one
    assert len(one) < 700
    assert len(wide.encode()) < 62_000
    assert "stopped after 60 kB" in wide


async def test_10000_files_in_time(tool: SearchFilesTool, tmp_path: Path) -> None:
    """Ten thousand files are searched in a few seconds."""
    for directory in range(10):
        (tmp_path / f"d{directory}").mkdir()
        for number in range(1000):
            (tmp_path / f"d{directory}" / f"f{number}").write_text("nothing\nhere\n")
    (tmp_path / "d9" / "z").write_text("needle\n")

    assert await search(tool, "nee.le") == "d9/z\n1: needle"


async def test_odd_file_and_directory_names(tmp_path: Path) -> None:
    """Names that are no UTF-8, or hold a line break, are searched and shown on one line."""
    workspace = tmp_path / os.fsdecode(b"caf\xe9")
    workspace.mkdir()
    (workspace / os.fsdecode(b"b\xff\n")).write_text("needle")

    assert (
        await search(SearchFilesTool(workspace, trio.CapacityLimiter(1)), "needle")
        == "b\\xff\\x0a\n1: needle"
    )


async def test_place_is_checked_again(tool: SearchFilesTool, tmp_path: Path) -> None:
    """A directory exchanged for a link after approval is not searched; a missing one or a device neither."""
    (tmp_path / "d").mkdir()
    prepared = await prepare(tool, pattern="x", path="d")
    (tmp_path / "d").rmdir()
    (tmp_path / "d").symlink_to("/etc")

    with pytest.raises(TargetChangedError):
        await prepared.run(SCOPE)
    with pytest.raises(ToolError, match="nowhere does not exist"):
        await prepare(tool, pattern="x", path="nowhere")
    with pytest.raises(ToolError, match="/dev/zero is a device, which cannot be searched"):
        await prepare(tool, pattern="x", path="/dev/zero")


def test_search_process_ends_when_nobody_asks() -> None:
    """A search child whose parent died before it could ask ends by itself."""
    done = subprocess.run(
        [sys.executable, "-m", "odek.tools.regex_search"],
        input=b"",
        capture_output=True,
        timeout=20,
        check=False,
        cwd=Path(__file__).parents[2],
    )

    assert done.returncode == 1
