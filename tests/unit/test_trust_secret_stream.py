"""A text masked on its way through: no cut hides a credential, and nothing piles up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odek.trust.secret_stream import HELD_CHARS, StreamMasker
from odek.trust.secrets import Masker
from tests.support.memory_use import kept_bytes

GITHUB = "ghp" + "_" + "a1B2" * 9
KEY = "-----BEGIN " + "RSA PRIVATE KEY-----\n" + "Ab3dEf6h" * 8 + "\n" + "-----END " + "RSA PRIVATE KEY-----"


def streamed(pieces: list[str]) -> str:
    """Return what comes out for ``pieces``."""
    masker = StreamMasker(Masker())
    return "".join([*map(masker.feed, pieces), masker.flush()])


@pytest.mark.parametrize("size", [1, 3, 7, 40, 10_000])
def test_a_credential_cut_by_the_stream_is_masked(size: int) -> None:
    """Wherever the pieces end, no part of a credential comes through, and nothing else is lost."""
    text = f"one {GITHUB}\ntwo\n{KEY}\nthree token = 'kjQx9vWmPz7' end"

    out = streamed([text[at : at + size] for at in range(0, len(text), size)])

    assert out == (
        "one [REDACTED:github-token]\ntwo\n[REDACTED:private-key]\n"
        "three token = '[REDACTED:assigned-secret]' end"
    )


@given(
    parts=st.lists(
        st.sampled_from(["word ", "a\n", "password: ", "kjQx9vWmPz7", " ", GITHUB, KEY, "-----BEGIN ", "é"]),
        max_size=12,
    ),
    size=st.integers(1, 90),
)
def test_pieces_make_no_difference(parts: list[str], size: int) -> None:
    """A text comes out the same in pieces as in one."""
    text = "".join(parts)

    assert streamed([text[at : at + size] for at in range(0, len(text), size)]) == streamed([text])


@pytest.mark.parametrize("unit", ["word ", "x", "-----BEGIN " + "PRIVATE KEY-----", "ab3 " * 9 + "\n"])
def test_what_is_held_back_is_bounded(unit: str) -> None:
    """A word or a key that never ends does not pile up."""
    piece = unit * (8192 // len(unit))
    masker = StreamMasker(Masker())

    def feed(times: int) -> int:
        return sum(len(masker.feed(piece)) for _ in range(times))

    feed(10)
    assert kept_bytes(lambda: feed(100)) < 2 * (HELD_CHARS + len(piece))
    assert feed(10) + len(masker.flush()) > 0


def test_words_come_out_as_they_end() -> None:
    """Nothing waits longer than its word."""
    masker = StreamMasker(Masker())

    assert masker.feed("Hel") == ""
    assert masker.feed("lo wor") == "Hello "
    assert masker.feed("ld") == ""
    assert masker.flush() == "world"
