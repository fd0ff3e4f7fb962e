"""The scanner, the masker and the fence take any text, and take it in linear time."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odek.trust.fence import fence, strip_fences
from odek.trust.scan import scan
from odek.trust.secret_stream import StreamMasker
from odek.trust.secrets import Masker, contains_secret, find_secrets, mask

ANY = st.text(max_size=300) | st.text(alphabet="sk-ABab01_=:.\n\"' eyJ/@%", max_size=120)
SECRET = "ghp" + "_" + "a1B2" * 9


@given(ANY)
@settings(max_examples=200, deadline=None)
def test_any_text_is_scanned_and_masked(text: str) -> None:
    """Nothing raises; positions lie in the text; masking twice masks no more."""
    rejection = scan(text)
    once = mask(text)

    assert rejection is None or 0 <= rejection.position <= len(text)
    assert all(0 <= span.start < span.end <= len(text) for span in find_secrets(text))
    assert mask(once) == once
    assert contains_secret(text) in {True, False}


@given(ANY, ANY, st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_no_cut_of_a_stream_lets_a_token_through(before: str, after: str, size: int) -> None:
    """However an output is cut into pieces, the token in it does not appear."""
    text = f"{before}\n{SECRET}\n{after}"
    masker = StreamMasker(Masker())

    out = "".join(masker.feed(text[at : at + size]) for at in range(0, len(text), size)) + masker.flush()

    assert SECRET not in out


@given(ANY, ANY)
@settings(max_examples=100, deadline=None)
def test_a_fence_holds_exactly_one_body(content: str, source: str) -> None:
    """Whatever stands inside, a fence opens once, ends once, and gives back what it holds."""
    fenced = fence(content, source=source)

    assert fenced.count("<untrusted_content ") == 1
    assert fenced.count("</untrusted_content ") == 1
    if "ntrusted" not in content.lower():
        assert strip_fences(fenced) == content


@pytest.mark.parametrize(
    "piece",
    [
        "(",
        "a",
        " ",
        "'",
        "<!--",
        "ignore ",
        "ignore all ",
        "sk-",
        "sk-a1",
        "eyJ",
        "eyJa.",
        "a ",
        "password=",
        "://:",
        "\u0430",
        "%41",
        "ab",
        "curl ",
        "curl | ",
        "if the user ",
        "cookie:",
        "aB1_",
        "x.atlasv1.",
        "***",
        "[INST",
        "\u00a7\n",
        "-----BEGIN ",
        ".",
        "-----BEGIN RSA PRIVATE KEY-----",
        "curl -u ",
        "mnemonic a ",
        "rm -r ",
        "\u200d",
        "\U0001f468\u200d",
        "\u2801",
        "user:1:a:b:",
        '"role":',
        "=== ",
        "i.g.",
        "0110100",
        "69 ",
        "&#105;",
        ".- ",
        "do not ",
        "your rules ",
        "system: ",
        "forget your ",
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    """64 KB of one construct is scanned and masked in seconds at the very worst."""
    text = piece * (64 * 1024 // len(piece.encode()))
    started = time.process_time()

    scan(text)
    mask(text)
    contains_secret(text)

    assert time.process_time() - started < 5


def test_ten_megabytes_of_output_are_masked_quickly() -> None:
    """Output of 10 MB costs about a second; the bound leaves room for a slow machine."""
    line = "2026-12-02 09:00:01 INFO worker[12] path=/api/items?id=123 token_limit=4096 user=a https://x.example/a\n"
    text = line * (10 * 1024 * 1024 // len(line))
    started = time.process_time()

    assert mask(text) == text

    assert time.process_time() - started < 5
