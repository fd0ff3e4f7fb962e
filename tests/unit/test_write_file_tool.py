"""What ``write_file`` shows, does and refuses; ``patch`` writes by the same means."""

import os
import shutil
import sys
from pathlib import Path

import pytest
import trio

from odek.errors import TargetChangedError, ToolError
from odek.tools.diffs import unified_diff
from odek.tools.edit_files import WriteFileTool
from tests.support.files import state_of
from tests.support.permissions import locked
from tests.support.tool_calls import SCOPE, call, prepare
from tests.support.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tool(tmp_path: Path) -> WriteFileTool:
    """A tool in an empty workspace."""
    return WriteFileTool(tmp_path, trio.CapacityLimiter(4))


def names(directory: Path) -> list[str]:
    """Return what is in a directory, temporary files included."""
    return sorted(path.name for path in directory.iterdir())


async def test_new_file_with_its_directories(tool: WriteFileTool, tmp_path: Path) -> None:
    """A new file is shown as all added, and its missing directories are made only when it runs."""
    prepared = await prepare(tool, path="a/b/c.txt", content="one\ntwo\n")

    assert prepared.summary == "a/b/c.txt"
    assert prepared.preview == "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    assert prepared.effects.writes == (tmp_path / "a/b/c.txt",)
    assert names(tmp_path) == []
    output = await prepared.run(SCOPE)
    assert output.content == "created a/b/c.txt: 2 lines, 8 bytes"
    assert output.changed == ("a/b/c.txt",)
    assert output.diff == prepared.preview
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"one\ntwo\n"
    assert names(tmp_path / "a/b") == ["c.txt"]


async def test_replacing_shows_the_change_and_keeps_the_mode(tool: WriteFileTool, tmp_path: Path) -> None:
    """An executable file stays executable, and the diff is against what was there."""
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\necho a\nexit 0\n")
    script.chmod(0o751)

    output = await call(tool, path="run.sh", content="#!/bin/sh\necho b\nexit 0\n")

    assert output.content == "replaced run.sh: 3 lines, 24 bytes (+1 -1 lines)"
    assert "@@ -1,3 +1,3 @@\n #!/bin/sh\n-echo a\n+echo b\n exit 0\n" in output.diff
    assert script.stat().st_mode & 0o7777 == 0o751
    assert names(tmp_path) == ["run.sh"]


async def test_replacing_keeps_extended_attributes(tool: WriteFileTool, tmp_path: Path) -> None:
    """What people have noted beside a file, or whom they have given access, is there afterwards."""
    path = tmp_path / "a.txt"
    path.write_text("old\n")
    try:
        os.setxattr(path, "user.origin", b"scanner")
    except OSError:
        pytest.skip("the file system keeps no attributes")

    await call(tool, path="a.txt", content="new\n")

    assert path.read_text() == "new\n"
    assert os.getxattr(path, "user.origin") == b"scanner"


async def test_a_file_that_is_mounted_alone_is_written_where_it_is(tmp_path: Path) -> None:
    """A container is often given single files; nothing can be put in the place of such a one."""
    outside, inside = tmp_path / "outside", tmp_path / "work"
    inside.mkdir()
    for path in (outside, inside / "a.txt"):
        path.write_text("a longer old content\n")
    program = (
        "import sys, trio; from pathlib import Path; from odek.tools.edit_files import WriteFileTool;"
        "from tests.support.tool_calls import call;"
        "tool = WriteFileTool(Path(sys.argv[1]), trio.CapacityLimiter(1));"
        "print(trio.run(lambda: call(tool, path='a.txt', content='new\\n')).content)"
    )
    if shutil.which("unshare") is None:
        pytest.skip("nothing can be mounted here")
    done = await trio.run_process(
        [
            *(
                "unshare",
                "-rm",
                "sh",
                "-c",
                'mount --bind "$1" "$2/a.txt" || exit 77; exec "$3" -c "$4" "$2"',
            ),
            *("sh", str(outside), str(inside), sys.executable, program),
        ],
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        cwd=ROOT,
    )
    if done.returncode == 77 or b"unshare:" in done.stderr:
        pytest.skip("nothing can be mounted here")

    assert done.stdout.decode() == "replaced a.txt: 1 line, 4 bytes (+1 -1 lines)\n", done.stderr.decode()
    assert outside.read_text() == "new\n"
    assert (inside / "a.txt").read_text() == "a longer old content\n"
    assert names(inside) == ["a.txt"]


async def test_new_file_gets_the_mode_of_the_umask(tool: WriteFileTool, tmp_path: Path) -> None:
    """A new file has the permissions that any other program would give it."""
    old = os.umask(0o027)
    try:
        await call(tool, path="a.txt", content="x")
    finally:
        os.umask(old)

    assert (tmp_path / "a.txt").stat().st_mode & 0o7777 == 0o640


async def test_same_content_writes_nothing(tool: WriteFileTool, tmp_path: Path) -> None:
    """Content that is already there changes neither file nor ledger."""
    (tmp_path / "a.txt").write_text("x\n")
    before = state_of(tmp_path / "a.txt")

    output = await call(tool, path="a.txt", content="x\n")

    assert output.content == "a.txt already has exactly this content; nothing was written"
    assert output.changed == ()
    assert state_of(tmp_path / "a.txt") == before


async def test_what_the_old_file_was_is_said(tool: WriteFileTool, tmp_path: Path) -> None:
    """A change of encoding or line ends, and a lost binary, are not silent."""
    (tmp_path / "wide.txt").write_bytes("a\r\nb\r\n".encode("utf-16"))
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")

    wide = await call(tool, path="wide.txt", content="a\nb\n")
    picture = await prepare(tool, path="a.png", content="text\n")

    assert (
        "its encoding was utf-16-le and is now utf-8; its line ends were CRLF and are now LF" in wide.content
    )
    assert picture.preview.startswith("a.png: PNG image (10 bytes) is replaced by text\n")


async def test_link_is_kept_and_both_names_declared(tool: WriteFileTool, tmp_path: Path) -> None:
    """Writing through a link changes what it leads to, and the effects say so."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "real").write_text("old")
    (tmp_path / "link").symlink_to("elsewhere/real")

    prepared = await prepare(tool, path="link", content="new")
    await prepared.run(SCOPE)

    assert prepared.effects.writes == (tmp_path / "link", tmp_path / "elsewhere" / "real")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "elsewhere" / "real").read_text() == "new"


async def test_dangling_link_declares_where_the_file_will_be(tool: WriteFileTool, tmp_path: Path) -> None:
    """A link to nothing is a write to its target, known before it is made."""
    (tmp_path / "link").symlink_to("target")

    prepared = await prepare(tool, path="link", content="new")
    await prepared.run(SCOPE)

    assert prepared.effects.writes == (tmp_path / "link", tmp_path / "target")
    assert (tmp_path / "target").read_text() == "new"


@pytest.mark.parametrize("existed", [True, False])
async def test_link_planted_after_approval_is_not_written_through(
    tool: WriteFileTool, tmp_path: Path, existed: bool
) -> None:
    """A link that takes the place of the approved file stops the write; its target is untouched."""
    (tmp_path / "precious").write_text("precious")
    if existed:
        (tmp_path / "a.txt").write_text("old")
    prepared = await prepare(tool, path="a.txt", content="new")
    (tmp_path / "a.txt").unlink(missing_ok=True)
    (tmp_path / "a.txt").symlink_to("precious")

    with pytest.raises(TargetChangedError, match=r"a\.txt now leads to .*precious"):
        await prepared.run(SCOPE)
    assert (tmp_path / "precious").read_text() == "precious"


async def test_file_changed_after_approval_is_not_overwritten(tool: WriteFileTool, tmp_path: Path) -> None:
    """Content that arrived since the diff was shown is never lost."""
    (tmp_path / "a.txt").write_text("old")
    changed = await prepare(tool, path="a.txt", content="new")
    created = await prepare(tool, path="b.txt", content="new")
    (tmp_path / "a.txt").write_text("theirs")
    (tmp_path / "b.txt").write_text("theirs")

    for prepared in (changed, created):
        with pytest.raises(TargetChangedError, match="changed while its edit waited"):
            await prepared.run(SCOPE)
    assert (tmp_path / "a.txt").read_text() == (tmp_path / "b.txt").read_text() == "theirs"


async def test_other_name_of_a_hard_link_keeps_its_content(tool: WriteFileTool, tmp_path: Path) -> None:
    """A file outside that shares its inode with one inside is not changed through it."""
    (tmp_path / "outside").write_text("old")
    (tmp_path / "inside").hardlink_to(tmp_path / "outside")

    await call(tool, path="inside", content="new")

    assert (tmp_path / "inside").read_text() == "new"
    assert (tmp_path / "outside").read_text() == "old"


async def test_what_is_no_file_is_refused(tool: WriteFileTool, tmp_path: Path) -> None:
    """A pipe, a device, a directory and a path below a file are refused before anything is asked."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()

    with trio.fail_after(HANG_SECONDS):
        for path, message in (
            ("pipe", "pipe is a named pipe"),
            ("/dev/null", "/dev/null is a device"),
            ("folder", "folder is a directory"),
            ("file/x", "file/x: a part of the path is no directory"),
            ("file/x/y", "no directory"),
        ):
            with pytest.raises(ToolError, match=message):
                await prepare(tool, path=path, content="x")


async def test_what_may_not_be_written_is_refused_beforehand(tool: WriteFileTool, tmp_path: Path) -> None:
    """A read-only file and a forbidden directory are refused before anything is asked."""
    (tmp_path / "private").mkdir()
    (tmp_path / "read-only").touch()
    (tmp_path / "read-only").chmod(0o444)

    with locked(tmp_path / "private"):
        with pytest.raises(ToolError, match=r"^private/a\.txt: permission denied$"):
            await prepare(tool, path="private/a.txt", content="x")
        with pytest.raises(ToolError, match=r"^read-only is read-only; change its mode first"):
            await prepare(tool, path="read-only", content="x")


async def test_huge_file_is_not_replaced(tool: WriteFileTool, tmp_path: Path) -> None:
    """A file too large to be shown as a diff is refused, by its size."""
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(5_000_000_000)

    with (
        trio.fail_after(HANG_SECONDS),
        pytest.raises(ToolError, match=r"huge has 5,000,000,000 bytes; files beyond"),
    ):
        await prepare(tool, path="huge", content="x")


async def test_name_that_leaves_no_room_for_a_temporary_one(tool: WriteFileTool, tmp_path: Path) -> None:
    """The longest name that the system allows can be written twice."""
    name = "x" * 255

    await call(tool, path=name, content="one")
    await call(tool, path=name, content="two")

    assert (tmp_path / name).read_text() == "two"
    assert names(tmp_path) == [name]


def test_diff_of_large_texts_is_bounded() -> None:
    """Two unlike texts of 100,000 lines are compared at once, and the diff accounts for every line."""
    old = "".join(f"a{n}\n" for n in range(100_000))
    new = "".join(f"b{n}\n" for n in range(100_000))

    diff = unified_diff("same\n" + old, "same\n" + new, "x")

    assert diff.startswith("--- a/x\n+++ b/x\n@@ -1,100001 +1,100001 @@\n same\n-a0\n")
    assert diff.count("\n") == 200_004


def test_diff_marks_a_missing_final_newline() -> None:
    """A final newline that is added or lost is a change that can be seen."""
    assert unified_diff("a\nb", "a\nb\n", "x") == (
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
    )
