"""Every setting: its key, type, default, bounds and meaning. The one source.

Checking, the JSON schema, ``docs/reference/configuration.md``, the template of
``odek init`` and ``odek config show`` are all made from these Structs.

Upper bounds catch slips of the hand, such as milliseconds for seconds; no
measurement is behind them unless a comment says so.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

__all__ = [
    "REFUSED_IN_PROJECTS",
    "UNUSED",
    "BudgetSettings",
    "Config",
    "DangerousSettings",
    "Facets",
    "LlmSettings",
    "MemorySettings",
    "PriceSettings",
    "ProjectRule",
    "Section",
    "ShellSettings",
    "SubagentSettings",
    "ToolsSettings",
]

Action = Literal["allow", "prompt", "deny"]
ProjectRule = Literal["free", "refused", "lower", "switch_on"]
"""What ``./odek.json`` may do with a key. "lower": only to a tighter limit, where 0 is no limit."""

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


class Facets(msgspec.Struct, frozen=True):
    """What there is to know of a key beside its type.

    ``env`` is a name beside the general ``ODEK_<SECTION>_<KEY>``, ``flag`` the option of
    ``odek run``. Values of an ``additive`` list add up over the layers. ``expected``
    stands in for the description of the type in an error.
    """

    project: ProjectRule = "free"
    additive: bool = False
    secret: bool = False
    env: str = ""
    flag: str = ""
    expected: str = ""


def _setting(meaning: str, facets: Facets = Facets(), **bounds: Any) -> Meta:  # noqa: B008 - frozen
    return Meta(description=meaning, extra={"facets": facets}, **bounds)


_LOWER = Facets(project="lower")
_Commands = tuple[Annotated[str, Meta(min_length=1)], ...]
_RiskClass = Annotated[
    str,
    _setting(
        "A class of harm.",
        Facets(expected="the risk classes " + ", ".join(_CLASSES)),
        pattern=f"^({'|'.join(_CLASSES)})$",
    ),
]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all sections: immutable, and a key that nobody knows is an error."""


class LlmSettings(Section, frozen=True, kw_only=True):
    """How requests to the model's endpoint are made."""

    connect_timeout_seconds: Annotated[
        float, _setting("Time to reach the endpoint, TLS included.", gt=0, le=600)
    ] = 10.0
    idle_timeout_seconds: Annotated[
        float, _setting("Longest silence inside an answer before it counts as dead.", gt=0, le=_DAY_SECONDS)
    ] = 120.0
    request_timeout_seconds: Annotated[
        float, _setting("Longest time for one request, all of its answer included.", gt=0, le=_DAY_SECONDS)
    ] = 600.0
    max_retries: Annotated[
        int, _setting("Further tries after 429, 5xx and connection faults.", ge=0, le=20)
    ] = 4
    max_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=10_000_000)] | None,
        _setting("Longest answer in tokens; null leaves it to the provider."),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        _setting("Sampling temperature; null leaves it to the provider."),
    ] = None
    context_window: Annotated[
        Annotated[int, Meta(ge=1, le=100_000_000)] | None,
        _setting("Tokens of the model's window; null takes it from the model's profile."),
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
        int, _setting("Prompt and answer tokens together.", _LOWER, ge=0, le=1_000_000_000_000)
    ] = 0
    cost_usd: Annotated[
        float,
        _setting("Money in US dollars; needs a price for the model.", _LOWER, ge=0, le=1_000_000),
    ] = 0.0
    seconds: Annotated[float, _setting("Wall-clock time.", _LOWER, ge=0, le=365 * _DAY_SECONDS)] = 0.0


class DangerousSettings(Section, frozen=True, kw_only=True):
    """Which risk classes run, ask or are refused."""

    classes: Annotated[
        dict[_RiskClass, Action],
        _setting("Risk class → allow, prompt or deny; `blocked` cannot be changed."),
    ] = {}
    allowlist: Annotated[_Commands, _setting("Exact commands that run unasked.")] = ()
    denylist: Annotated[_Commands, _setting("Exact commands that never run.")] = ()
    non_interactive: Annotated[
        Literal["allow", "deny"], _setting("What `prompt` means when nobody can be asked.")
    ] = "deny"


class ToolsSettings(Section, frozen=True, kw_only=True):
    """Which tools the model is offered."""

    enabled: Annotated[
        tuple[str, ...],
        _setting("Only these; empty means all.", Facets(project="refused", flag="--tool")),
    ] = ()
    disabled: Annotated[
        tuple[str, ...],
        _setting("Never these; the lists of all layers add up.", Facets(additive=True, flag="--no-tool")),
    ] = ()


class ShellSettings(Section, frozen=True, kw_only=True):
    """The `shell` tool."""

    timeout_seconds: Annotated[float, _setting("Default time limit of a command.", gt=0, le=3600)] = 120.0
    output_limit_bytes: Annotated[
        int,
        _setting(
            "Output of a command that the model sees; the middle of more is left out.", ge=1024, le=10_000_000
        ),
    ] = 100_000


class SubagentSettings(Section, frozen=True, kw_only=True):
    """Fan-out to child processes."""

    max_concurrency: Annotated[int, _setting("Children at once.", ge=1, le=8)] = 3
    max_depth: Annotated[int, _setting("How deep delegation may nest.", ge=0, le=4)] = 1


class MemorySettings(Section, frozen=True, kw_only=True):
    """What is remembered across sessions."""

    enabled: Annotated[bool, _setting("Offer the memory tool and show facts to the model.")] = True
    facts_limit_user: Annotated[
        int, _setting("Size of user.md in bytes, separators included.", ge=0, le=1_000_000)
    ] = 4000
    facts_limit_env: Annotated[
        int, _setting("Size of env.md in bytes, separators included.", ge=0, le=1_000_000)
    ] = 8000


class Config(Section, frozen=True, kw_only=True):
    """The whole configuration of one process, resolved from all layers."""

    model: Annotated[
        str,
        _setting(
            "Model name; empty: the provider default of the key, else the offline model.",
            Facets(flag="--model"),
        ),
    ] = ""
    base_url: Annotated[
        str,
        _setting(
            "Root of a chat-completions endpoint, such as http://localhost:11434/v1.",
            Facets(
                project="refused",
                flag="--base-url",
                expected="an http or https URL such as http://localhost:11434/v1",
            ),
            pattern=r"^(https?://[^\s/]\S*)?$",
        ),
    ] = ""
    api_key: Annotated[
        str,
        _setting(
            "Key of the endpoint; better kept in secrets.env.",
            Facets(project="refused", secret=True, expected="printable ASCII without spaces"),
            pattern=r"^[!-~]*$",
        ),
    ] = ""
    thinking: Annotated[
        Literal["", "disabled", "enabled", "low", "medium", "high"],
        _setting(
            "Reasoning of models that have it; empty: the model's own default.", Facets(flag="--thinking")
        ),
    ] = ""
    system: Annotated[
        str,
        _setting(
            "Text that replaces the built-in system prompt.", Facets(project="refused", flag="--system")
        ),
    ] = ""
    max_iterations: Annotated[
        int,
        _setting(
            "Requests to the model in one turn.",
            Facets(env="ODEK_MAX_ITER", flag="--max-iter"),
            ge=1,
            le=1000,
        ),
    ] = 90
    max_tool_parallel: Annotated[int, _setting("Tool calls at once.", ge=1, le=32)] = 4
    interaction_mode: Annotated[
        Literal["engaging", "verbose"],
        _setting("How much the terminal shows while working.", Facets(flag="--interaction-mode")),
    ] = "engaging"
    no_color: Annotated[bool, _setting("Plain text without colour.", Facets(flag="--no-color"))] = False
    no_agents: Annotated[
        bool, _setting("Do not read AGENTS.md into the system prompt.", Facets(flag="--no-agents"))
    ] = False
    sandbox: Annotated[
        bool, _setting("Run commands in a sandbox.", Facets(project="switch_on", flag="--sandbox"))
    ] = False
    llm: LlmSettings = LlmSettings()
    prices: Annotated[
        dict[str, PriceSettings],
        _setting("Model name → price, for the cost in the closing line.", Facets(project="refused")),
    ] = {}
    budget: BudgetSettings = BudgetSettings()
    dangerous: DangerousSettings = DangerousSettings()
    tools: ToolsSettings = ToolsSettings()
    shell: ShellSettings = ShellSettings()
    subagent: SubagentSettings = SubagentSettings()
    memory: MemorySettings = MemorySettings()


UNUSED = frozenset(
    {
        "compaction",
        "embedding",
        "guard",
        "maintenance",
        "mcp_servers",
        "planning",
        "profiles",
        "prompt_caching",
        "sandbox_cpus",
        "sandbox_env",
        "sandbox_image",
        "sandbox_memory",
        "sandbox_network",
        "sandbox_readonly",
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
        "memory.add_threshold",
        "memory.auto_approve_episodes",
        "memory.buffer_enabled",
        "memory.buffer_lines",
        "memory.consolidate_on_end",
        "memory.embedding",
        "memory.episode_dedup_threshold",
        "memory.episode_ttl_days",
        "memory.extended",
        "memory.extract_facts",
        "memory.extract_on_end",
        "memory.llm_consolidate",
        "memory.llm_extract",
        "memory.llm_search",
        "memory.max_episodes",
        "memory.merge_on_write",
        "memory.merge_threshold",
        "memory.min_turns_for_extraction",
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
