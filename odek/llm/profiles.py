"""What is known of families of models, and of providers by the name of their key.

A profile is found by the longest prefix of the model's name without its vendor
(``openai/gpt-5-mini`` is ``gpt-5-mini``). A model that nobody knows has no window limit
and is asked for nothing special.
"""

from typing import Final, Literal

import msgspec

__all__ = ["PROVIDERS", "ModelProfile", "Provider", "ThinkingStyle", "profile_of"]

ThinkingStyle = Literal["effort", "switch", "budget", "adaptive", "template"]

_SILENT_THINKING_SECONDS = 300.0  # before the first word of models that think unseen; not measured


class ModelProfile(msgspec.Struct, frozen=True, kw_only=True):
    """What a family of models can do and wants to be asked like.

    Attributes:
        context_window: Tokens of request and answer together; None when unknown.
        thinking: How reasoning is asked for: ``effort`` is ``reasoning_effort``; ``switch``
            is ``thinking.type`` plus an effort; ``budget`` is ``thinking.budget_tokens``;
            ``adaptive`` leaves the amount to the model and names an effort in ``output_config``;
            ``template`` is a flag for the chat template of open models.
        thinking_off: The effort that stands for none, where the family has one.
        echo_reasoning: Whether assistant messages must carry their reasoning when sent back.
        late_system: Whether a system message may stand behind the first message.
        max_tokens_field: The request field that bounds the answer.
        fixed_temperature: Whether the family refuses to be given a temperature.
        idle_timeout_seconds: Longest silence that is still normal, for families that need
            more than the default of the setting.
    """

    context_window: int | None = None
    thinking: ThinkingStyle = "effort"
    thinking_off: str = "none"
    echo_reasoning: bool = False
    late_system: bool = False
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    fixed_temperature: bool = False
    idle_timeout_seconds: float | None = None


class Provider(msgspec.Struct, frozen=True):
    """Where a key is good for, and the model to ask when none is named."""

    key_variable: str
    base_url: str
    model: str


PROVIDERS: Final = (
    Provider("DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "deepseek-flash"),
    Provider("OPENAI_API_KEY", "https://api.openai.com/v1", "gpt-5-mini"),
)
"""In the order in which their variables are looked for."""


def profile_of(model: str) -> ModelProfile:
    """Return the profile with the longest prefix of ``model``, or that of an unknown model."""
    name = model.lower().rsplit("/", 1)[-1]
    known = max((prefix for prefix in _PROFILES if name.startswith(prefix)), key=len, default=None)
    return ModelProfile() if known is None else _PROFILES[known]


def _openai(context_window: int) -> ModelProfile:
    return ModelProfile(
        context_window=context_window, late_system=True, max_tokens_field="max_completion_tokens"
    )


def _openai_reasoning(context_window: int, *, thinking_off: str = "low") -> ModelProfile:
    return ModelProfile(
        context_window=context_window,
        thinking_off=thinking_off,
        late_system=True,
        max_tokens_field="max_completion_tokens",
        fixed_temperature=True,
        idle_timeout_seconds=_SILENT_THINKING_SECONDS,
    )


def _deepseek(context_window: int) -> ModelProfile:
    return ModelProfile(
        context_window=context_window, thinking="switch", echo_reasoning=True, late_system=True
    )


def _claude(thinking: ThinkingStyle) -> ModelProfile:
    return ModelProfile(context_window=200_000, thinking=thinking)


_CLAUDE_SIZES: Final = ("opus", "sonnet", "haiku")

# Windows as the makers state them. Open models are often served with a smaller one, which
# only the server knows: set llm.context_window then.
_PROFILES: Final[dict[str, ModelProfile]] = {
    "deepseek": _deepseek(1_000_000),
    "deepseek-v3": _deepseek(131_072),
    "deepseek-r1": _deepseek(131_072),
    "gpt-3.5": _openai(16_385),
    "gpt-4": _openai(8_192),
    "gpt-4-turbo": _openai(128_000),
    "gpt-4o": _openai(128_000),
    "gpt-4.1": _openai(1_047_576),
    # 400,000 in all, but no more than 272,000 of them in the request.
    "gpt-5": _openai_reasoning(272_000, thinking_off="minimal"),
    "gpt-5.": _openai_reasoning(272_000, thinking_off="none"),
    "o1": _openai_reasoning(200_000),
    "o3": _openai_reasoning(200_000),
    "o4": _openai_reasoning(200_000),
    "gpt-oss": ModelProfile(context_window=131_072, thinking_off="low"),
    # Budgets are refused from Opus 4.7 on, the adaptive form before 4.6; 4.6 takes both.
    "claude": _claude("adaptive"),
    **dict.fromkeys(("claude-2", "claude-3", "claude-4"), _claude("budget")),
    **{f"claude-{size}-4": _claude("budget") for size in _CLAUDE_SIZES},
    **{
        f"claude-{name}": _claude("adaptive")
        for minor in range(6, 10)
        for dot in ".-"
        for name in (f"4{dot}{minor}", *(f"{size}-4{dot}{minor}" for size in _CLAUDE_SIZES))
    },
    "gemini": ModelProfile(context_window=1_048_576, idle_timeout_seconds=_SILENT_THINKING_SECONDS),
    "llama3": ModelProfile(context_window=8_192),
    "llama3.": ModelProfile(context_window=131_072),
    "llama-3": ModelProfile(context_window=8_192),
    "llama-3.": ModelProfile(context_window=131_072),
    "meta-llama-3": ModelProfile(context_window=8_192),
    "meta-llama-3.": ModelProfile(context_window=131_072),
    "qwen2.5": ModelProfile(context_window=32_768),
    "qwen3": ModelProfile(context_window=32_768, thinking="template"),
    "qwen3-coder": ModelProfile(context_window=262_144),
    "mistral-large": ModelProfile(context_window=131_072),
    "mistral-small": ModelProfile(context_window=131_072),
    "mistral-medium": ModelProfile(context_window=131_072),
    "mistral": ModelProfile(context_window=32_768),
    "devstral": ModelProfile(context_window=131_072),
    "kimi-k2": ModelProfile(context_window=262_144, thinking="switch", echo_reasoning=True),
    "glm-4": ModelProfile(context_window=128_000, thinking="switch"),
    "glm-5": ModelProfile(context_window=200_000, thinking="switch"),
}
