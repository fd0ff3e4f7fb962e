"""What is piped in beside a task, as far as it is text."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from odek.attachments import FILE_LIMIT_BYTES
from odek.cli.piped import read_piped
from odek.errors import ConfigError


@pytest.fixture
def piped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the file that stdin is read from."""
    path = tmp_path / "stdin"
    path.write_bytes(b"")
    with path.open("rb") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield path


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b" \n\n", ""),
        ("Zeile mit \u00e4\n".encode(), "Zeile mit \u00e4\n"),
        ("mit Marke".encode("utf-16"), "mit Marke"),
        (b"caf\xe9", "caf\u00e9"),
    ],
    ids=str,
)
def test_text_of_any_encoding_is_read(piped: Path, data: bytes, text: str) -> None:
    """As a file would be; nothing but white space is nothing."""
    piped.write_bytes(data)

    assert read_piped(wait=True) == text


@pytest.mark.parametrize("size", [FILE_LIMIT_BYTES - 1, FILE_LIMIT_BYTES, FILE_LIMIT_BYTES // 2 + 1])
def test_what_can_be_attached_is_whole(piped: Path, size: int) -> None:
    """Beginning and end are put together without a seam."""
    data = bytes(65 + at % 26 for at in range(size))
    piped.write_bytes(data)

    assert read_piped(wait=True).encode() == data


def test_a_long_text_keeps_its_beginning_and_its_end(piped: Path) -> None:
    """The end of a log is where the error is; how much is missing is said, and no character is cut."""
    data = b"first\n" + "x\u00e4".encode() * 700_000 + b"\nlast"
    piped.write_bytes(data)

    start, middle, end = read_piped(wait=True).replace("]\n", "[\u2026 ").split("[\u2026 ")

    assert (start[:6], end[-5:]) == ("first\n", "\nlast")
    assert "\ufffd" not in start + end
    left_out = int(middle.split()[0].replace(",", ""))
    assert 0 <= len(data) - left_out - len(start.strip().encode()) - len(end.encode()) <= 2


@pytest.mark.parametrize(("data", "kind"), [(b"\x89PNG\r\n\x1a\n", "PNG image"), (b"a\0b", "binary data")])
def test_what_is_no_text_is_refused(piped: Path, data: bytes, kind: str) -> None:
    """The person learns what it is taken for."""
    piped.write_bytes(data)

    with pytest.raises(ConfigError, match=f"what is piped in is {kind}, not text"):
        read_piped(wait=True)


def test_a_stdin_that_is_shared_with_whoever_started_the_command_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This process has its stdin from its parent: it may be the rest of a script."""
    with open("/dev/stdin", "rb") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)

        assert read_piped(wait=False) == ""
