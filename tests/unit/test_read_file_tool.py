"""What ``read_file`` returns, and what it refuses."""

import os
import socket
import tempfile
from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.errors import TargetChangedError, ToolError
from odek.tools.line_ranges import LINE_BYTES, OUTPUT_BYTES
from odek.tools.read_file import ReadFileTool
from odek.tools.textfile import LineReader, decode_text, encode_text
from tests.support.permissions import locked
from tests.support.tool_calls import SCOPE, call, prepare
from tests.support.waiting import HANG_SECONDS

HUGE_BYTES = 1_000_000_000_000
"""Of a file that is a hole: who reads it to its end takes minutes."""


@pytest.fixture
def tool(tmp_path: Path) -> ReadFileTool:
    """A tool in an empty workspace."""
    return ReadFileTool(tmp_path, trio.CapacityLimiter(4))


async def test_lines_come_with_their_numbers(tool: ReadFileTool, tmp_path: Path) -> None:
    """A whole small file is its numbered lines and nothing else."""
    (tmp_path / "a.txt").write_text("one\n\nthree\n")

    assert (await call(tool, path="a.txt")).content == "1│one\n2│\n3│three"


async def test_range_says_where_to_continue(tool: ReadFileTool, tmp_path: Path) -> None:
    """A range in the middle names the number of lines and the next start."""
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 21)))

    output = await call(tool, path="a.txt", start_line=3, end_line=4)

    assert output.content == "3│line 3\n4│line 4\n[lines 3-4 of 20; continue with start_line=5]"


async def test_range_at_the_end_says_so(tool: ReadFileTool, tmp_path: Path) -> None:
    """The last lines are known to be the last, with or without a final newline."""
    (tmp_path / "a.txt").write_text("one\ntwo")

    output = await call(tool, path="a.txt", start_line=2, end_line=99)

    assert output.content == "2│two\n[line 2, the end of the file]"


async def test_start_beyond_the_end_names_the_length(tool: ReadFileTool, tmp_path: Path) -> None:
    """A start line that does not exist is an error with the number of lines."""
    (tmp_path / "a.txt").write_text("one\ntwo")

    with pytest.raises(ToolError, match=r"a\.txt has 2 lines; start_line 4 lies beyond its end"):
        await call(tool, path="a.txt", start_line=4)


async def test_empty_file_is_named_empty(tool: ReadFileTool, tmp_path: Path) -> None:
    """An empty file is not an error."""
    (tmp_path / "a.txt").touch()

    assert (await call(tool, path="a.txt")).content == "[the file is empty]"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("größe\n".encode("utf-8-sig"), "1│größe\n[UTF-8 with byte order mark]"),
        ("größe\n".encode("utf-16"), "1│größe\n[utf-16-le]"),
        (
            b"\xfe\xff" + "a\r\nb 😀".encode("utf-16-be"),
            "1│a\n2│b 😀\n[CRLF line ends; utf-16-be]",
        ),
        ("größe\n".encode("latin-1"), "1│größe\n[not UTF-8, shown as latin-1]"),
        (b"a\r\nb\r\n", "1│a\n2│b\n[CRLF line ends]"),
        (b"a\r\nb\nc\r\n", "1│a\n2│b\n3│c\n[mixed LF and CRLF line ends]"),
    ],
)
async def test_encodings_and_line_ends_are_named(
    tool: ReadFileTool, tmp_path: Path, data: bytes, expected: str
) -> None:
    """Whatever is unusual about a text is decoded and said."""
    (tmp_path / "a.txt").write_bytes(data)

    assert (await call(tool, path="a.txt")).content == expected


async def test_binary_is_described_not_shown(tool: ReadFileTool, tmp_path: Path) -> None:
    """A picture and nameless bytes give their kind and size."""
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (tmp_path / "b").write_bytes(b"ab\0cd")

    assert (await call(tool, path="a.png")).content == "[a.png is not text: PNG image, 108 bytes]"
    assert (await call(tool, path="b")).content == "[b is not text: binary data, 5 bytes]"


async def test_one_line_of_50_megabytes_is_clipped(tool: ReadFileTool, tmp_path: Path) -> None:
    """An extremely long line takes bounded room, also when a character straddles the cut."""
    (tmp_path / "a.js").write_bytes(("x" + "é" * 25_000_000).encode() + b"\nend\n")

    content = (await call(tool, path="a.js")).content

    assert content.startswith("1│xé")
    assert "\n2│end\n[line 1 cut after 20,000 of 50,000,001 bytes" in content
    assert len(content.encode()) < LINE_BYTES + 200


async def test_output_is_bounded_and_continues(tool: ReadFileTool, tmp_path: Path) -> None:
    """A file beyond the limit comes in ranges that join without a gap."""
    (tmp_path / "a.txt").write_text("".join(f"{n:050}\n" for n in range(1, 4001)))

    first = (await call(tool, path="a.txt")).content
    start = int(first.rpartition("start_line=")[2].rstrip("]"))
    second = (await call(tool, path="a.txt", start_line=start)).content

    assert len(first.encode()) < OUTPUT_BYTES + 200
    assert f"{start - 1}│{start - 1:050}\n[lines 1-{start - 1} of 4000; continue" in first
    assert second.startswith(f"{start}│{start:050}\n")


async def test_range_of_a_huge_file(tool: ReadFileTool, tmp_path: Path) -> None:
    """The head of a huge file is there at once; its length is not counted."""
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"first\nsecond\n" * 1000)
        file.truncate(HUGE_BYTES)

    with trio.fail_after(HANG_SECONDS):
        output = await call(tool, path="huge", start_line=2, end_line=2)

    assert output.content == "2│second\n[line 2 and more follow; continue with start_line=3]"


async def test_reading_a_huge_file_can_be_cancelled(tool: ReadFileTool, tmp_path: Path) -> None:
    """A search for a line far inside a huge file stops when the turn is cancelled."""
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"text\n" * 2000)
        file.truncate(HUGE_BYTES)

    with trio.fail_after(HANG_SECONDS), trio.move_on_after(0.05) as scope:
        await call(tool, path="huge", start_line=1_000_000)

    assert scope.cancelled_caught


async def test_special_files_are_refused_at_once(tool: ReadFileTool, tmp_path: Path) -> None:
    """A pipe, a socket, a device and a directory are named for what they are."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{short}/s")
        with trio.fail_after(HANG_SECONDS):
            with pytest.raises(ToolError, match="pipe is a named pipe, not a regular file"):
                await call(tool, path="pipe")
            with pytest.raises(ToolError, match="is a socket, not a regular file"):
                await call(tool, path=f"{short}/s")
            with pytest.raises(ToolError, match="/dev/zero is a device, not a regular file"):
                await call(tool, path="/dev/zero")
            with pytest.raises(ToolError, match="folder is a directory, not a regular file; tree and glob"):
                await call(tool, path="folder")


async def test_pipe_planted_after_the_check_does_not_block(tool: ReadFileTool, tmp_path: Path) -> None:
    """A file that became a pipe between preparation and run is refused at once."""
    (tmp_path / "a.txt").touch()
    prepared = await prepare(tool, path="a.txt")
    (tmp_path / "a.txt").unlink()
    os.mkfifo(tmp_path / "a.txt")

    with trio.fail_after(HANG_SECONDS), pytest.raises(ToolError, match="a named pipe"):
        await prepared.run(SCOPE)


async def test_link_planted_after_the_check_is_not_followed(tool: ReadFileTool, tmp_path: Path) -> None:
    """What is read is what was checked, though a link took the place of the file or its directory."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.txt").write_text("mine")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "a.txt").write_text("secret")
    prepared = await prepare(tool, path="d/a.txt")
    (tmp_path / "d").rename(tmp_path / "old")
    (tmp_path / "d").symlink_to("secret")

    with pytest.raises(TargetChangedError, match=r"d/a\.txt now leads to .*secret/a\.txt"):
        await prepared.run(SCOPE)


async def test_forbidden_file_is_a_sentence(tool: ReadFileTool, tmp_path: Path) -> None:
    """A file in a directory that may not be entered is refused with the reason."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "a.txt").touch()

    with locked(tmp_path / "private"), pytest.raises(ToolError, match=r"^private/a\.txt: permission denied$"):
        await call(tool, path="private/a.txt")


async def test_link_is_declared_with_what_it_leads_to(tool: ReadFileTool, tmp_path: Path) -> None:
    """The effects of reading through a link name both paths."""
    (tmp_path / "real").write_text("text")
    (tmp_path / "link").symlink_to("real")

    prepared = await prepare(tool, path="link")

    assert prepared.effects.reads == (tmp_path / "link", tmp_path / "real")
    assert (await prepared.run(SCOPE)).content == "1│text"


async def test_missing_file_names_its_neighbours(tool: ReadFileTool, tmp_path: Path) -> None:
    """A misspelled name comes back with the names that look like it."""
    (tmp_path / "README.md").touch()
    (tmp_path / "zebra").touch()

    with pytest.raises(ToolError, match=r"^readme\.txt does not exist; beside it there is README\.md$"):
        await call(tool, path="readme.txt")
    with pytest.raises(ToolError, match="the deepest directory of that path that exists is "):
        await call(tool, path="no/such/file")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "the path is empty"),
        ("a\0b", r"a\\x00b contains a NUL character"),
        ("~nobody-of-that-name/x", "home directory is not known"),
        ("x" * 300, "file name too long"),
        ("d/" * 3000, "file name too long"),
        ("loop/x", "its symbolic links lead in a circle"),
        ("file/x", "a part of the path is no directory"),
    ],
)
async def test_impossible_paths_are_one_sentence(
    tool: ReadFileTool, tmp_path: Path, path: str, message: str
) -> None:
    """No path, however odd, is more than one short line of error."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()

    with pytest.raises(ToolError, match=message) as error:
        await call(tool, path=path)

    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 500


async def test_half_surrogates_never_reach_the_disk(tool: ReadFileTool) -> None:
    """A lone surrogate in the JSON is refused."""
    with pytest.raises(ToolError):
        await tool.prepare_json('{"path": "a\\ud800"}')


async def test_unknown_argument_is_named(tool: ReadFileTool) -> None:
    """A wrong argument name is one precise sentence."""
    with pytest.raises(ToolError, match=r"read_file: .*unknown field `lines`"):
        await call(tool, path="a", lines=3)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([b"a", b"bb\xc3\xa9", b"\r", b"\n", b"\r\n", b"", b"x" * 20])).map(b"".join),
    st.integers(1, 7),
    st.integers(0, 5),
)
def test_lines_are_those_of_split(data: bytes, step: int, skipped: int) -> None:
    """However the stream is cut into pieces, the lines, their sizes and ends are the file's."""
    expected = data.split(b"\n")
    ended = len(expected) - 1
    if expected[-1] == b"":
        expected.pop()

    reader = LineReader((data[at : at + step] for at in range(0, len(data), step)), clip_bytes=8)
    reader.skip(skipped)
    lines = list(reader)

    assert [line.head for line in lines] == [
        (text[:-1] if text.endswith(b"\r") and number < ended else text)[:8]
        for number, text in enumerate(expected)
    ][skipped:]
    assert b"".join(line.end for line in lines).count(b"\n") == max(ended - skipped, 0)
    assert reader.number == len(expected)


@settings(max_examples=60, deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
)
def test_decoding_and_encoding_give_the_same_bytes(text: str, codec: str) -> None:
    """A file that is decoded and encoded again has not changed by one byte."""
    data = text.encode(codec)

    assert encode_text(*decode_text(data)) == data
