"""Credentials are found by their shape, or because this process holds them, and masked."""

import base64
import urllib.parse

import pytest

from odek.trust.secrets import Masker, contains_secret, find_secrets, mask

# Put together here, so that no scanner of sources takes them for real ones.
GITHUB = "ghp" + "_" + "a1B2" * 9
OPENAI = "sk" + "-proj-" + "Ab3_xY9z" * 6
AWS = "AKIA" + "Q7RT2XW4" * 2
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
KEY = "-----BEGIN " + "RSA PRIVATE KEY-----\n" + "Ab3dEf6h" * 8 + "\n" + "-----END " + "RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"key {GITHUB} end", "key [REDACTED:github-token] end"),
        (f"x{GITHUB}", "x[REDACTED:github-token]"),
        (f'{{"k": "{OPENAI}"}}', '{"k": "[REDACTED:openai-key]"}'),
        (f"id={AWS}\n", "id=[REDACTED:aws-key-id]\n"),
        (f"A=1\0TOKEN_X={JWT}\0B=2", "A=1\0TOKEN_X=[REDACTED:jwt]\0B=2"),
        (f"a\n{KEY}\nb", "a\n[REDACTED:private-key]\nb"),
        (f"a\n{KEY[:70]}", "a\n[REDACTED:private-key]"),
        ("export DB_PASSWORD='tr0ub4dor&3xyz'", "export DB_PASSWORD='[REDACTED:assigned-secret]'"),
        ("password: kjQx9vWmPz", "password: [REDACTED:assigned-secret]"),
        ("postgres://app:kjQx9vWmPz@db/app", "postgres://app:[REDACTED:url-password]@db/app"),
        ("machine h login u password kjQx9vWmPz", "machine h login u password [REDACTED:netrc]"),
    ],
)
def test_a_credential_is_masked_and_nothing_else(text: str, masked: str) -> None:
    """What is masked is exactly the credential; what stands around it stays readable."""
    assert mask(text) == masked
    assert mask(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "docs/risk-classification-and-approval-policy-matrix.md",
        "sk-SK is the Slovak locale; sk-learn-compatible-estimators-extras is a package",
        "regex: AKIA[0-9A-Z]{16} and ghp_[A-Za-z0-9]{36}",
        "AWS docs use AKIAIOSFODNN7" + "EXAMPLE",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "password = os.environ['DB_PASSWORD']",
        "password = get_password_from_keychain()",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "api_key: your-api-key-here",
        "max_tokens=4096, the token limit is 128000",
        "secret_key: see-vault-path-kv/prod/app",
        "https://user@host/path:8080 http://localhost:8080/a@b",
        "-----BEGIN PUBLIC KEY-----\nIUdkuXtjfh\n-----END PUBLIC KEY-----",
        "npm_config_registry=https://registry.example/",
    ],
)
def test_what_only_looks_like_a_credential_stays(text: str) -> None:
    """Names, references, examples, hashes and patterns are not touched."""
    assert mask(text) == text
    assert not contains_secret(text)


@pytest.mark.parametrize(
    "disguised",
    [
        OPENAI[:24] + "\n" + OPENAI[24:],
        "\u0455" + OPENAI[1:],
        base64.b64encode(OPENAI.encode()).decode(),
        OPENAI.encode().hex(),
        OPENAI[::-1],
        OPENAI[:10] + "\u200b" + OPENAI[10:],
    ],
)
def test_a_thin_disguise_does_not_hide_a_credential(disguised: str) -> None:
    """Look-alike letters, breaks, encodings and reversal are seen through."""
    assert contains_secret(f"note: {disguised} ok")


@pytest.mark.parametrize(
    "form",
    [
        lambda value: value,
        lambda value: value[::-1],
        lambda value: value.encode().hex(),
        lambda value: value.encode().hex().upper(),
        lambda value: urllib.parse.quote(value, safe=""),
        lambda value: base64.b64encode(value.encode()).decode(),
        lambda value: base64.b64encode(f"u:{value}".encode()).decode(),
        lambda value: base64.b64encode(f"usr:{value}@".encode()).decode(),
        lambda value: base64.urlsafe_b64encode(f"user:{value}".encode()).decode(),
    ],
)
def test_a_value_that_the_process_holds_is_masked_in_every_encoding(form: object) -> None:
    """A known secret of no known format does not get out by being encoded."""
    assert callable(form)
    known = "correct/horse+battery=staple"
    masked = Masker([known]).mask(f"out: {form(known)}.")

    assert "[REDACTED:known-secret]" in masked
    assert known not in masked


def test_short_values_are_not_known_secrets() -> None:
    """A key of three letters would mask ordinary words."""
    assert Masker(["abc", ""]).mask("abc") == "abc"


def test_spans_are_ordered_and_apart() -> None:
    """Credentials found by several rules are reported once each, in order."""
    text = f"password={GITHUB} and {AWS}"
    spans = find_secrets(text)

    assert [text[span.start : span.end] for span in spans] == [GITHUB, AWS]


def test_a_credential_is_found_in_the_first_short_text_and_after_many() -> None:
    """Long runs look for all formats at once, and find the same."""
    texts = [
        f"token {GITHUB} of line {number}" if number % 50 == 0 else f"line {number}" for number in range(301)
    ]

    found = [
        number
        for number, text in enumerate(texts)
        if mask(text) == f"token [REDACTED:github-token] of line {number}"
    ]

    assert found == list(range(0, 301, 50))
    assert mask("line 7") == "line 7"
