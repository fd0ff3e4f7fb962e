"""Command output becomes bounded text that a person or a model can read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.tools.command_output import LINE_LIMIT_CHARS, MARGIN_BYTES, CommandOutput
from odek.trust.secrets import Masker
from tests.support.memory_use import kept_bytes


def cleaned(*chunks: bytes, limit_bytes: int = 100_000) -> str:
    """Return what remains of the chunks."""
    output = CommandOutput(limit_bytes, Masker())
    for chunk in chunks:
        output.feed(chunk)
    return output.finish()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"plain\ttext\n\nmore\n", "plain\ttext\n\nmore"),
        (b"dos\r\nlines\r\n", "dos\nlines"),
        (b"\x1b[1;31mred\x1b[0m \x1b[2K\x1b[?25lcursor", "red cursor"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        (b"\x1bPq#0;2\x1b\\sixel \x1b(Bcharset \x1bM\x1b7", "sixel charset "[:-1]),
        (b"10%\r50%\r100%\ndone", "100%\ndone"),
        (b"\r 1/2\r 2/2", " 2/2"),
        (b"wait\r\x1b[K\nnext", "wait\nnext"),
        (b"100%\r", "100%"),
        (b"bell\x07 nul\x00 back\x08 del\x7f c1\xc2\x9b!", "bell nul back del c1!"),
        (b"caf\xc3\xa9 \xff\xfe \xe2\x82", "café \ufffd\ufffd \ufffd"),
        ("日本 👩\u200d💻".encode(), "日本 👩\u200d💻"),
        (b"unfinished \x1b[3", "unfinished"),
        (b"title that never ends \x1b]0;abc\nnext", "title that never ends \nnext"),
        (b"", ""),
    ],
)
def test_what_a_terminal_would_not_show_is_gone(raw: bytes, text: str) -> None:
    """Escapes, controls, overwritten text and invalid bytes, in one piece or byte by byte."""
    assert cleaned(raw) == text
    assert cleaned(*(raw[i : i + 1] for i in range(len(raw)))) == text


@settings(max_examples=60)
@given(
    pieces=st.lists(
        st.sampled_from(
            [b"\x1b[31m", b"\x1b]0;t\x07", b"\r", b"\n", b"\r\n", b"ab", b"\xc3\xa9", b"\xff", b"\0", b" "]
        )
        | st.binary(max_size=6),
        max_size=30,
    ),
    cut=st.integers(1, 7),
    limit_bytes=st.integers(8, 60),
)
def test_chunks_do_not_matter_and_the_limit_holds(pieces: list[bytes], cut: int, limit_bytes: int) -> None:
    """However the bytes arrive the text is the same, clean, and no longer than the limit and its mark."""
    raw = b"".join(pieces)

    whole = cleaned(raw, limit_bytes=limit_bytes)
    parts = cleaned(*(raw[i : i + cut] for i in range(0, len(raw), cut)), limit_bytes=limit_bytes)

    assert parts == whole
    assert not any(char < " " and char not in "\n\t" for char in whole)
    assert len(whole.encode()) <= limit_bytes + len("\n[… 1,000 bytes left out …]\n".encode())


def test_the_middle_is_left_out_and_its_size_is_named() -> None:
    """Head and tail stay, and the figures add up to the whole."""
    text = cleaned(*(b"%06d\n" % number for number in range(10_000)), limit_bytes=700)

    assert text.startswith("000000\n000001\n")
    assert text.endswith("\n009998\n009999")
    assert "\n[… 69,300 bytes left out …]\n" in text


def test_a_cut_inside_a_character_leaves_no_debris() -> None:
    """The limit counts bytes, the text is made of characters."""
    text = cleaned("é".encode() * 1000, limit_bytes=101)

    assert set(text.replace("[… 1,900 bytes left out …]", "")) == {"é", "\n"}


@pytest.mark.parametrize(
    "chunk", [b"x" * 65_536, b"10%\r" * 16_384, b"y\n" * 32_768, b"\x1b]0;" + b"z" * 65_000]
)
def test_memory_is_bounded_whatever_comes(chunk: bytes) -> None:
    """A line without end, progress without end and lines without end are all kept small."""
    output = CommandOutput(1024, Masker())

    def feed() -> None:
        for _ in range(100):
            output.feed(chunk)

    assert kept_bytes(feed) <= 3 * (MARGIN_BYTES + LINE_LIMIT_CHARS + len(chunk))
    assert output.received_bytes == 100 * len(chunk)
    output.finish()


def test_hostile_output_is_cleaned_in_linear_time() -> None:
    """Long lines of half escapes and carriage returns cost no more than others."""
    for unit in (b"\x1b", b"\x1b[", b"\x1b]", b"\r", b"a\r", b"\x1b[0", b"\x00"):
        text = cleaned(*([unit * 20_000] * 20))
        assert len(text) < 100_100


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"", ""),
        (b"first\nsecond\n", "second"),
        (b"first\nhalf a li", "first"),
        (b"first\n\n  \n", "first"),
        (b"\x1b[32mok\x1b[0m\n", "ok"),
        (b"start\n 10%\r 20%", "20%"),
        (b"start\n 10%\r 20%\r", "20%"),
        (b"start\n\r\r", "start"),
    ],
)
def test_the_newest_line_is_whole_and_says_something(raw: bytes, line: str) -> None:
    """Half a line is not shown, a progress bar is shown as it stands."""
    output = CommandOutput(1000, Masker())
    output.feed(raw)
    assert output.newest_line() == line


KEY = (
    "-----BEGIN {}\n".format("RSA PRIVATE" + " KEY-----")
    + ("Ab3dEf6h" * 8 + "\n") * 40
    + "-----END "
    + "RSA PRIVATE KEY-----\n"
)
TOKEN = "ghp" + "_" + "a1B2c3D4e5F6" * 3


@pytest.mark.parametrize("secret", [KEY, TOKEN], ids=["key", "token"])
@pytest.mark.parametrize("before", [0, 300, 480, 511, 600, 5_000, 20_000])
@pytest.mark.parametrize("after", [0, 300, 490, 511, 600, 5_000, 20_000])
def test_no_part_of_a_credential_is_left_at_a_cut(secret: str, before: int, after: int) -> None:
    """Wherever the middle is left out, what stays shows no piece of a key that lies there."""
    raw = "x\n" * (before // 2) + secret + "y\n" * (after // 2)

    text = cleaned(raw.encode(), limit_bytes=1024)
    masked = Masker().mask(text)

    for start in range(0, len(secret) - 16, 8):
        assert secret[start : start + 16] not in masked
    assert len(text) < 1024 + 100 or "left out" not in text


def test_the_newest_line_shows_no_credential() -> None:
    """A token is masked in it, and a line of a key is known for one by what stood before it."""
    output = CommandOutput(1000, Masker())
    output.feed(f"token {TOKEN} ok\n".encode())
    assert output.newest_line() == "token [REDACTED:github-token] ok"

    output.feed(KEY[:300].encode())
    assert output.newest_line() == "[REDACTED:private-key]"

    output.feed(KEY[300:].encode() + b"done\n")
    assert output.newest_line() == "done"
