"""Addresses, keys and limits of an endpoint."""

import pytest

from odek.config.settings import LlmSettings
from odek.errors import ConfigError
from odek.llm.endpoint import Endpoint


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://api.example.com/v1", "https://api.example.com/v1/chat/completions"),
        ("https://api.example.com/v1/", "https://api.example.com/v1/chat/completions"),
        ("http://localhost:11434", "http://localhost:11434/chat/completions"),
        ("https://api.example.com/v1/chat/completions/", "https://api.example.com/v1/chat/completions"),
        ("http://localhost:11434/v1/embeddings", "http://localhost:11434/v1/chat/completions"),
        ("http://[::1]:8080/v1/chat/completions", "http://[::1]:8080/v1/chat/completions"),
        ("https://x.example.com/d?api-version=7", "https://x.example.com/d/chat/completions?api-version=7"),
    ],
)
def test_the_address_of_requests(base_url: str, url: str) -> None:
    """The path is added once, and a query stays behind it."""
    assert Endpoint(base_url=base_url, model="m").url == url


@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "localhost:11434",
        "ftp://x/v1",
        "http://",
        "http://x:99999",
        "http://x:y",
        "http://a b/",
        "http://x/\n",
    ],
)
def test_what_is_no_address_is_refused(base_url: str) -> None:
    """The message shows the value and what one looks like."""
    with pytest.raises(ConfigError, match="must look like http://localhost:11434/v1"):
        Endpoint(base_url=base_url, model="m")


@pytest.mark.parametrize("key", ["sk-abc\n", "sk abc", "sk-äbc", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    """Without showing it."""
    with pytest.raises(ConfigError) as caught:
        Endpoint(base_url="http://x/v1", model="m", api_key=key)
    assert key not in str(caught.value)


def test_a_model_must_be_named() -> None:
    """An empty name would be refused by every server with a riddle."""
    with pytest.raises(ConfigError, match="--model"):
        Endpoint(base_url="http://x/v1", model="")


def test_the_key_is_not_shown() -> None:
    """Neither in the repr nor in what messages show of the address."""
    endpoint = Endpoint(base_url="http://user:pass@x:81/v1", model="m", api_key="sk-secret")
    assert "secret" not in repr(endpoint)
    assert endpoint.host == "x:81"
    assert endpoint.shown_url == "http://x:81/v1/chat/completions"


def test_limits_from_settings_and_from_what_is_known() -> None:
    """A setting that somebody made wins over the model's family."""
    known = Endpoint(base_url="http://x/v1", model="gpt-5-mini")
    assert (known.context_window, known.idle_timeout_seconds) == (272_000, 300)
    settings = LlmSettings(context_window=1000, idle_timeout_seconds=5)
    chosen = Endpoint(base_url="http://x/v1", model="gpt-5-mini", settings=settings)
    assert (chosen.context_window, chosen.idle_timeout_seconds) == (1000, 5)
    unknown = Endpoint(base_url="http://x/v1", model="m")
    assert (unknown.context_window, unknown.idle_timeout_seconds) == (
        None,
        LlmSettings().idle_timeout_seconds,
    )


@pytest.mark.parametrize(
    ("base_url", "here"),
    [
        ("http://localhost:11434/v1", True),
        ("http://LOCALHOST./v1", True),
        ("http://ollama.localhost/v1", True),
        ("http://127.8.9.1:1234/v1", True),
        ("https://[::1]:8080/v1", True),
        ("http://localhost.example.com/v1", False),
        ("http://192.168.0.7:11434/v1", False),
        ("http://0.0.0.0:11434/v1", False),
        ("https://api.example.com/v1", False),
    ],
)
def test_what_is_on_this_machine(base_url: str, here: bool) -> None:
    """Told by the name alone; a private network may well lie behind a proxy."""
    assert Endpoint(base_url=base_url, model="m").is_loopback is here
