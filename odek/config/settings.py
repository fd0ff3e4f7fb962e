"""Every setting: its key, type, default and meaning. The one source.

The JSON schema, ``docs/reference/configuration.md``, the template of ``odek init``
and ``odek config show`` are all made from these Structs.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

__all__ = [
    "BudgetSettings",
    "Config",
    "DangerousSettings",
    "LlmSettings",
    "MemorySettings",
    "PriceSettings",
    "ShellSettings",
    "SubagentSettings",
    "ToolsSettings",
]

Action = Literal["allow", "prompt", "deny"]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all sections: immutable, and a key that nobody knows is an error."""


class LlmSettings(Section, frozen=True, kw_only=True):
    """How requests to the model's endpoint are made."""

    connect_timeout_seconds: Annotated[
        float, Meta(gt=0, description="Time to reach the endpoint, TLS included.")
    ] = 10.0
    idle_timeout_seconds: Annotated[
        float, Meta(gt=0, description="Longest silence inside an answer before it counts as dead.")
    ] = 120.0
    request_timeout_seconds: Annotated[
        float, Meta(gt=0, description="Longest time for one request, all of its answer included.")
    ] = 600.0
    max_retries: Annotated[
        int, Meta(ge=0, le=20, description="Further tries after 429, 5xx and connection faults.")
    ] = 4
    max_tokens: Annotated[
        int | None, Meta(description="Longest answer in tokens; null leaves it to the provider.")
    ] = None
    temperature: Annotated[
        float | None, Meta(description="Sampling temperature; null leaves it to the provider.")
    ] = None
    context_window: Annotated[
        int | None, Meta(description="Tokens of the model's window; null takes it from the model's profile.")
    ] = None


class PriceSettings(Section, frozen=True, kw_only=True):
    """What a model costs, in US dollars per million tokens."""

    input: Annotated[float, Meta(ge=0, description="Prompt tokens.")]
    output: Annotated[float, Meta(ge=0, description="Answer tokens.")]
    cached: Annotated[
        float | None, Meta(description="Prompt tokens read from the provider's cache; null: as input.")
    ] = None


class BudgetSettings(Section, frozen=True, kw_only=True):
    """Limits of one task. 0 means no limit."""

    tokens: Annotated[int, Meta(ge=0, description="Prompt and answer tokens together.")] = 0
    cost_usd: Annotated[
        float, Meta(ge=0, description="Money in US dollars; needs a price for the model.")
    ] = 0.0
    seconds: Annotated[float, Meta(ge=0, description="Wall-clock time.")] = 0.0


class DangerousSettings(Section, frozen=True, kw_only=True):
    """Which risk classes run, ask or are refused."""

    classes: Annotated[
        dict[str, Action],
        Meta(description="Risk class → allow, prompt or deny; `blocked` cannot be changed."),
    ] = {}
    allowlist: Annotated[tuple[str, ...], Meta(description="Exact commands that run unasked.")] = ()
    denylist: Annotated[tuple[str, ...], Meta(description="Exact commands that never run.")] = ()
    non_interactive: Annotated[
        Literal["allow", "deny"], Meta(description="What `prompt` means when nobody can be asked.")
    ] = "deny"


class ToolsSettings(Section, frozen=True, kw_only=True):
    """Which tools the model is offered."""

    enabled: Annotated[tuple[str, ...], Meta(description="Only these; empty means all.")] = ()
    disabled: Annotated[tuple[str, ...], Meta(description="Never these.")] = ()


class ShellSettings(Section, frozen=True, kw_only=True):
    """The `shell` tool."""

    timeout_seconds: Annotated[float, Meta(gt=0, le=3600, description="Default time limit of a command.")] = (
        120.0
    )
    output_limit_bytes: Annotated[
        int,
        Meta(ge=1024, description="Output of a command that the model sees; the middle of more is left out."),
    ] = 100_000


class SubagentSettings(Section, frozen=True, kw_only=True):
    """Fan-out to child processes."""

    max_concurrency: Annotated[int, Meta(ge=1, le=8, description="Children at once.")] = 3
    max_depth: Annotated[int, Meta(ge=0, le=4, description="How deep delegation may nest.")] = 1


class MemorySettings(Section, frozen=True, kw_only=True):
    """What is remembered across sessions."""

    enabled: Annotated[bool, Meta(description="Offer the memory tool and show facts to the model.")] = True
    facts_limit_user: Annotated[
        int, Meta(ge=0, description="Size of user.md in bytes, separators included.")
    ] = 4000
    facts_limit_env: Annotated[
        int, Meta(ge=0, description="Size of env.md in bytes, separators included.")
    ] = 8000


class Config(Section, frozen=True, kw_only=True):
    """The whole configuration of one process, resolved from all layers."""

    model: Annotated[
        str, Meta(description="Model name; empty: the provider default of the key, else the offline model.")
    ] = ""
    base_url: Annotated[
        str, Meta(description="Root of a chat-completions endpoint, such as http://localhost:11434/v1.")
    ] = ""
    api_key: Annotated[str, Meta(description="Key of the endpoint; better kept in secrets.env.")] = ""
    thinking: Annotated[
        Literal["", "disabled", "enabled", "low", "medium", "high"],
        Meta(description="Reasoning of models that have it; empty: the model's own default."),
    ] = ""
    system: Annotated[str, Meta(description="Text that replaces the built-in system prompt.")] = ""
    max_iterations: Annotated[int, Meta(ge=1, le=1000, description="Requests to the model in one turn.")] = 90
    max_tool_parallel: Annotated[int, Meta(ge=1, le=32, description="Tool calls at once.")] = 4
    interaction_mode: Annotated[
        Literal["engaging", "verbose"], Meta(description="How much the terminal shows while working.")
    ] = "engaging"
    no_color: Annotated[bool, Meta(description="Plain text without colour.")] = False
    no_agents: Annotated[bool, Meta(description="Do not read AGENTS.md into the system prompt.")] = False
    sandbox: Annotated[bool, Meta(description="Run commands in a sandbox.")] = False
    llm: LlmSettings = LlmSettings()
    prices: Annotated[
        dict[str, PriceSettings], Meta(description="Model name → price, for the cost in the closing line.")
    ] = {}
    budget: BudgetSettings = BudgetSettings()
    dangerous: DangerousSettings = DangerousSettings()
    tools: ToolsSettings = ToolsSettings()
    shell: ShellSettings = ShellSettings()
    subagent: SubagentSettings = SubagentSettings()
    memory: MemorySettings = MemorySettings()
