"""Every setting: its key, type, default, bounds and meaning. The one source.

Checking, the JSON schema, ``docs/reference/configuration.md``, the template of
``odek init`` and ``odek config show`` are all made from these Structs.

Upper bounds catch slips of the hand, such as milliseconds for seconds; no
measurement is behind them unless a comment says so.
"""

from typing import Annotated, Literal

from msgspec import Meta

from odek.config.embedding_settings import EmbeddingSettings
from odek.config.guard_settings import GuardSettings
from odek.config.memory_settings import MemorySettings
from odek.config.section import Facets, Section, address, credential, setting

__all__ = [
    "REFUSED_IN_PROJECTS",
    "UNUSED",
    "BudgetSettings",
    "Config",
    "DangerousSettings",
    "EmbeddingSettings",
    "GuardSettings",
    "LlmSettings",
    "MemorySettings",
    "PriceSettings",
    "ShellSettings",
    "SubagentSettings",
    "ToolsSettings",
]

Action = Literal["allow", "prompt", "deny"]
_DAY_SECONDS = 86_400.0
_CLASSES = (
    "safe",
    "local_write",
    "system_write",
    "network_egress",
    "code_execution",
    "install",
    "unknown",
    "destructive",
    "blocked",
)


_LOWER = Facets(project="lower")
_Commands = tuple[Annotated[str, Meta(min_length=1)], ...]
_Paths = tuple[Annotated[str, Meta(min_length=1)], ...]
_RiskClass = Annotated[
    str,
    setting(
        "A class of harm.",
        Facets(expected="the risk classes " + ", ".join(_CLASSES)),
        pattern=f"^({'|'.join(_CLASSES)})$",
    ),
]


class LlmSettings(Section, frozen=True, kw_only=True):
    """How requests to the model's endpoint are made."""

    connect_timeout_seconds: Annotated[
        float, setting("Time to reach the endpoint, TLS included.", gt=0, le=600)
    ] = 10.0
    idle_timeout_seconds: Annotated[
        float, setting("Longest silence inside an answer before it counts as dead.", gt=0, le=_DAY_SECONDS)
    ] = 120.0
    request_timeout_seconds: Annotated[
        float, setting("Longest time for one request, all of its answer included.", gt=0, le=_DAY_SECONDS)
    ] = 600.0
    max_retries: Annotated[
        int, setting("Further tries after 429, 5xx and connection faults.", ge=0, le=20)
    ] = 4
    max_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=10_000_000)] | None,
        setting("Longest answer in tokens, below context_window; null leaves it to the provider."),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        setting("Sampling temperature; null leaves it to the provider."),
    ] = None
    context_window: Annotated[
        Annotated[int, Meta(ge=1, le=100_000_000)] | None,
        setting("Tokens of the model's window; null takes it from the model's profile."),
    ] = None


class PriceSettings(Section, frozen=True, kw_only=True):
    """What a model costs, in US dollars per million tokens."""

    input: Annotated[float, Meta(ge=0, le=1_000_000, description="Prompt tokens.")]
    output: Annotated[float, Meta(ge=0, le=1_000_000, description="Answer tokens.")]
    cached: Annotated[
        Annotated[float, Meta(ge=0, le=1_000_000)] | None,
        Meta(description="Prompt tokens read from the provider's cache; null: as input."),
    ] = None


class BudgetSettings(Section, frozen=True, kw_only=True):
    """Limits of one task. 0 means no limit."""

    tokens: Annotated[
        int, setting("Prompt and answer tokens together.", _LOWER, ge=0, le=1_000_000_000_000)
    ] = 0
    cost_usd: Annotated[
        float,
        setting("Money in US dollars; needs a price for the model.", _LOWER, ge=0, le=1_000_000),
    ] = 0.0
    seconds: Annotated[float, setting("Wall-clock time.", _LOWER, ge=0, le=365 * _DAY_SECONDS)] = 0.0


class DangerousSettings(Section, frozen=True, kw_only=True):
    """Which risk classes run, ask or are refused."""

    classes: Annotated[
        dict[_RiskClass, Action],
        setting("Risk class → allow, prompt or deny; `blocked` cannot be changed."),
    ] = {}  # noqa: RUF012 - msgspec copies the default
    allowlist: Annotated[_Commands, setting("Exact commands that run unasked.")] = ()
    denylist: Annotated[_Commands, setting("Exact commands that never run.")] = ()
    non_interactive: Annotated[
        Literal["allow", "deny"], setting("What `prompt` means when nobody can be asked.")
    ] = "deny"


class ToolsSettings(Section, frozen=True, kw_only=True):
    """Which tools the model is offered."""

    enabled: Annotated[
        tuple[str, ...],
        setting("Only these; empty means all.", Facets(project="refused", flag="--tool")),
    ] = ()
    disabled: Annotated[
        tuple[str, ...],
        setting("Never these; the lists of all layers add up.", Facets(additive=True, flag="--no-tool")),
    ] = ()


class ShellSettings(Section, frozen=True, kw_only=True):
    """The `shell` tool."""

    timeout_seconds: Annotated[float, setting("Default time limit of a command.", gt=0, le=3600)] = 120.0
    output_limit_bytes: Annotated[
        int,
        setting(
            "Output of a command that the model sees; the middle of more is left out.", ge=1024, le=10_000_000
        ),
    ] = 100_000


class SubagentSettings(Section, frozen=True, kw_only=True):
    """Fan-out to child processes."""

    max_concurrency: Annotated[int, setting("Children at once.", ge=1, le=8)] = 3
    max_depth: Annotated[int, setting("How deep delegation may nest.", ge=0, le=4)] = 1


class Config(Section, frozen=True, kw_only=True):
    """The whole configuration of one process, resolved from all layers."""

    model: Annotated[
        str,
        setting(
            "Model name; empty: the provider default of the key, else the offline model.",
            Facets(flag="--model"),
        ),
    ] = ""
    base_url: Annotated[
        str,
        address(
            "Root of a chat-completions endpoint, such as http://localhost:11434/v1.",
            "http://localhost:11434/v1",
            project="refused",
            flag="--base-url",
        ),
    ] = ""
    api_key: Annotated[
        str,
        credential("Key of the endpoint; better kept in secrets.env.", project="refused"),
    ] = ""
    thinking: Annotated[
        Literal["", "disabled", "enabled", "low", "medium", "high"],
        setting(
            "Reasoning of models that have it; empty: the model's own default.", Facets(flag="--thinking")
        ),
    ] = ""
    system: Annotated[
        str,
        setting("Text that replaces the built-in system prompt.", Facets(project="refused", flag="--system")),
    ] = ""
    max_iterations: Annotated[
        int,
        setting(
            "Requests to the model in one turn.",
            Facets(env="ODEK_MAX_ITER", flag="--max-iter"),
            ge=1,
            le=1000,
        ),
    ] = 90
    max_tool_parallel: Annotated[int, setting("Tool calls at once.", ge=1, le=32)] = 4
    interaction_mode: Annotated[
        Literal["engaging", "verbose"],
        setting("How much the terminal shows while working.", Facets(flag="--interaction-mode")),
    ] = "engaging"
    no_color: Annotated[bool, setting("Plain text without colour.", Facets(flag="--no-color"))] = False
    no_agents: Annotated[
        bool, setting("Do not read AGENTS.md into the system prompt.", Facets(flag="--no-agents"))
    ] = False
    sandbox: Annotated[
        bool,
        setting(
            "Run commands, those of subagents too, in a sandbox, or not at all.",
            Facets(project="switch_on", flag="--sandbox"),
        ),
    ] = False
    sandbox_backend: Annotated[
        Literal["auto", "bubblewrap", "docker"],
        setting("What makes the sandbox; auto: the first that works.", Facets(project="refused")),
    ] = "auto"
    sandbox_network: Annotated[
        Literal["none", "allowed"],
        setting("Whether commands in the sandbox have a network.", Facets(project="default")),
    ] = "none"
    sandbox_readonly: Annotated[
        bool, setting("Show the workspace only to read.", Facets(project="switch_on"))
    ] = False
    sandbox_readable: Annotated[
        _Paths,
        setting("More paths that the sandbox shows, to read, such as ~/.cargo.", Facets(project="refused")),
    ] = ()
    sandbox_image: Annotated[
        str,
        setting("Image of the containers of docker; it must be there already.", Facets(project="refused")),
    ] = ""
    llm: LlmSettings = LlmSettings()
    prices: Annotated[
        dict[str, PriceSettings],
        setting("Model name → price, for the cost in the closing line.", Facets(project="refused")),
    ] = {}  # noqa: RUF012 - msgspec copies the default
    budget: BudgetSettings = BudgetSettings()
    dangerous: DangerousSettings = DangerousSettings()
    tools: ToolsSettings = ToolsSettings()
    shell: ShellSettings = ShellSettings()
    subagent: SubagentSettings = SubagentSettings()
    memory: MemorySettings = MemorySettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    guard: GuardSettings = GuardSettings()


UNUSED = frozenset(
    {
        "compaction",
        "guard.scan.mcp_descriptions",
        "guard.scan.skills",
        "guard.scan.system_prompt",
        "guard.scan.telegram",
        "guard.scan.tool_outputs",
        "maintenance",
        "mcp_servers",
        "planning",
        "profiles",
        "prompt_caching",
        "sandbox_cpus",
        "sandbox_env",
        "sandbox_memory",
        "sandbox_user",
        "sandbox_volumes",
        "schedules",
        "sessions",
        "skills",
        "stream",
        "telegram",
        "tool_progress",
        "tool_progress_cleanup",
        "transcription",
        "trusted_proxies",
        "vision",
        "web_search",
        "subagent.announce_budget",
        "subagent.budget_inherit",
        "subagent.default_profile",
        "subagent.max_iterations",
        "subagent.timeout_seconds",
    }
)
"""Keys of existing installations that are accepted, not acted on, and named in a notice."""

REFUSED_IN_PROJECTS = frozenset(
    {
        "dangerous",
        "embedding",
        "guard",
        "maintenance",
        "memory",
        "sessions",
        "skills.dirs",
        "skills.embedding",
        "telegram",
        "trusted_proxies",
        "web_search",
    }
)
"""Sections and unused keys that ``./odek.json`` may not set, beside the keys marked so."""
