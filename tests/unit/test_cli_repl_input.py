"""What the repl reads, and what it remembers of it."""

import os
import stat
import tempfile
from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.cli.history import ReplHistory
from odek.cli.repl_input import INPUT_LIMIT_BYTES, LineInput, needs_more
from odek.errors import OdekError, StoreError


def no_mask(text: str) -> str:
    """Leave ``text`` as it is."""
    return text


async def read_all(data: bytes) -> list[str]:
    """Return what a LineInput makes of ``data`` coming from a file."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        source, inputs = LineInput(file.fileno()), []
        while (text := await source.read()) is not None:
            inputs.append(text)
    return inputs


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("hello", False),
        ("", False),
        ("one \\", True),
        ("C:\\\\", False),
        ("```python", True),
        ("```python\nx = 1\n```", False),
        ("~~~\n```", True),
        ("see ``` here", False),
        ("```\na\n```\nthen ```\n```", True),
    ],
)
def test_input_goes_on_after_a_backslash_and_inside_code(text: str, more: bool) -> None:
    """A trailing backslash or an open fence asks for another line."""
    assert needs_more(text) is more


async def test_lines_of_a_pipe_are_inputs() -> None:
    """Each line is one input; lines that belong together are one; the last needs no line end."""
    data = "first\r\n\ntwo \\\nlines\n```\ncode\n```\nnaïve".encode()

    assert await read_all(data) == ["first", "", "two \nlines", "```\ncode\n```", "naïve"]


async def test_code_that_never_ends_is_read_to_the_end() -> None:
    """An open fence at the end of the pipe is an input all the same."""
    assert await read_all(b"```\nx") == ["```\nx\n"]


async def test_long_code_is_one_input_up_to_the_limit() -> None:
    """A megabyte of code comes in at once; what is longer is refused, in one line or in many."""
    code = b"```\n" + b"a line of code\n" * ((INPUT_LIMIT_BYTES - 100) // 15) + b"```\n"

    assert await read_all(code + b"next") == [code.decode().rstrip("\n"), "next"]
    for data in (b"x" * (INPUT_LIMIT_BYTES + 1), b"```\n" + b"a line\n" * (INPUT_LIMIT_BYTES // 7 + 1)):
        with pytest.raises(OdekError, match="longer than 1,048,576 bytes; attach it as a file"):
            await read_all(data)


async def test_bytes_that_are_no_text_are_named() -> None:
    """Input that is not UTF-8 is an error that says which byte."""
    with pytest.raises(OdekError, match="stdin is not UTF-8: byte 0xff"):
        await read_all(b"\xff\n")


async def test_a_cancelled_read_returns_at_once() -> None:
    """Waiting for a line that does not come can be cancelled."""
    read_end, write_end = os.pipe()
    with trio.move_on_after(0.01) as scope:
        await LineInput(read_end).read()
    os.close(write_end)  # lets the thread go
    assert scope.cancelled_caught


def test_history_is_private_masked_and_kept(tmp_path: Path) -> None:
    """Entries of many lines come back in order, without secrets, from a file of mode 0600."""
    path = tmp_path / "new" / "repl_history"
    history = ReplHistory(path, lambda text: text.replace("sk-1", "[REDACTED]"))
    assert history.load() == []

    history.append("key sk-1")
    history.append("two\nlines \udcff")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ReplHistory(path, no_mask).load() == ["key [REDACTED]", "two\nlines ?"]


def test_history_narrows_the_mode_of_an_existing_file(tmp_path: Path) -> None:
    """A history that others could read is made private with the next entry."""
    path = tmp_path / "h"
    path.touch(mode=0o644)

    ReplHistory(path, no_mask).append("x")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_history_loses_no_entry_behind_one_that_was_cut_off(tmp_path: Path) -> None:
    """What a full disk or a kill left unfinished does not take the next entry along."""
    path = tmp_path / "h"
    history = ReplHistory(path, no_mask)
    history.append("whole")
    path.write_bytes(path.read_bytes() + b'"half an ent')

    history.append("next")

    assert history.load() == ["whole", "next"]


def test_history_is_bounded(tmp_path: Path) -> None:
    """Only the newest thousand entries are read, a file too large is cut back, a huge entry left out."""
    path = tmp_path / "h"
    history = ReplHistory(path, no_mask)
    history.append("y" * 100_000)
    assert not path.exists()
    for number in range(1200):
        history.append(f"{number} {'x' * 1000}")

    entries = history.load()

    assert len(entries) == 1000
    assert entries[-1].startswith("1199 ")
    assert path.stat().st_size < 1 << 20
    assert history.load()[-1] == entries[-1]


def test_history_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    """A link planted in place of the file is not followed; the error names the file."""
    (tmp_path / "h").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StoreError, match=r"cannot write .*/h: "):
        ReplHistory(tmp_path / "h", no_mask).append("x")


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_history_survives_any_file(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Whatever the file holds, reading it succeeds and an entry added later is there."""
    path = tmp_path_factory.mktemp("history") / "h"
    path.write_bytes(data + b"\n")
    history = ReplHistory(path, no_mask)

    history.append("new")

    assert history.load()[-1] == "new"
