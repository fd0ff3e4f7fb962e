"""What is known of models and providers by name."""

import pytest

from odek.config.settings import Config
from odek.errors import ConfigError
from odek.llm.choice import choose
from odek.llm.profiles import PROVIDERS, ModelProfile, Provider, profile_of


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4", 8_192),
        ("gpt-4o-mini-2024-07-18", 128_000),
        ("openai/gpt-4.1-nano", 1_047_576),
        ("OpenAI/GPT-4o", 128_000),
        ("llama3:8b", 8_192),
        ("llama3.2", 131_072),
        ("meta-llama/Llama-3.3-70B-Instruct", 131_072),
        ("anthropic/claude-sonnet-4-5", 200_000),
        ("models/gemini-2.5-flash", 1_048_576),
        ("deepseek-ai/DeepSeek-V3", 131_072),
        ("qwen3:8b", 32_768),
        ("qwen3-coder:30b", 262_144),
    ],
)
def test_the_longest_prefix_wins(model: str, window: int) -> None:
    """Vendor and case do not matter, and the nearest family is taken."""
    assert profile_of(model).context_window == window


@pytest.mark.parametrize("model", ["", "my-finetune", "x/gpt", "someone/llama2"])
def test_an_unknown_model_has_no_limit(model: str) -> None:
    """Nothing is assumed of a name that nobody knows."""
    assert profile_of(model) == ModelProfile()
    assert profile_of(model).context_window is None


def test_default_models_are_known() -> None:
    """The model of a provider's key has a profile, and its address is a secure one."""
    for provider in PROVIDERS:
        assert profile_of(provider.model).context_window
        assert provider.base_url.startswith("https://")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_providers_own_address_has_its_usual_model(provider: Provider) -> None:
    """Whether it was named or not; at another address a model has to be."""
    named = choose(Config(base_url=f"{provider.base_url}/", api_key="k"), "ODEK_API_KEY")

    assert named.endpoint is not None
    assert named.endpoint.model == provider.model
    with pytest.raises(ConfigError, match="no model is named"):
        choose(Config(base_url="https://proxy.example.com/v1", api_key="k"), provider.key_variable)


@pytest.mark.parametrize(
    ("model", "style"),
    [
        ("claude-3-7-sonnet-20250219", "budget"),
        ("claude-sonnet-4-20250514", "budget"),
        ("claude-haiku-4-5", "budget"),
        ("claude-opus-4-6", "adaptive"),
        ("anthropic/claude-4.6-opus", "adaptive"),
        ("claude-sonnet-5-20260801", "adaptive"),
    ],
)
def test_which_models_think_as_they_see_fit(model: str, style: str) -> None:
    """Versions up to 4.5 take a budget, later ones and names that nobody knows the adaptive form."""
    assert profile_of(model).thinking == style
