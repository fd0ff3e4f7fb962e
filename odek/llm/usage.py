"""Token counts and money in the spellings of many providers."""

from typing import Any

import msgspec

from odek.config.settings import PriceSettings
from odek.events import Usage

__all__ = ["merged", "priced", "read_usage"]

_PROMPT = ("prompt_tokens", "input_tokens", "prompt_token_count", "prompt_eval_count")
_COMPLETION = ("completion_tokens", "output_tokens", "candidates_token_count", "eval_count")
_CACHED = (
    "prompt_tokens_details.cached_tokens",
    "input_tokens_details.cached_tokens",
    "prompt_cache_hit_tokens",
    "cache_read_input_tokens",
    "cached_content_token_count",
    "cached_tokens",
)
_COST = ("cost", "cost.total_cost", "total_cost")

_PLAUSIBLE_TOKENS = 10**12  # beyond any request; a larger figure is damage


def read_usage(report: Any) -> Usage:
    """Return what a provider's ``usage`` object says; what is absent or no count stays None.

    Where the object counts cache writes apart (``cache_creation_input_tokens``), its
    ``input_tokens`` leave out what came from or went to the cache, and both are added.
    """
    if not isinstance(report, dict):
        return Usage()
    prompt = _first_count(report, _PROMPT)
    cached = _first_count(report, _CACHED)
    written = _count(report.get("cache_creation_input_tokens"))
    if written is not None and prompt is not None and "prompt_tokens" not in report:
        prompt += written + (cached or 0)
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=_first_count(report, _COMPLETION),
        cached_tokens=cached,
        cost_usd=next((cost for path in _COST if (cost := _money(_at(report, path))) is not None), None),
    )


def merged(earlier: Usage, later: Usage) -> Usage:
    """Return ``later``, and where it is silent ``earlier``: reports of one answer replace each other."""
    known = {name: value for name, value in msgspec.structs.asdict(later).items() if value is not None}
    return msgspec.structs.replace(earlier, **known)


def priced(usage: Usage, price: PriceSettings | None) -> Usage:
    """Return ``usage`` with its cost worked out from ``price``, unless the provider reported one."""
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    if usage.cost_usd is not None or price is None or prompt is None or completion is None:
        return usage
    cached = min(usage.cached_tokens or 0, prompt)
    cached_price = price.input if price.cached is None else price.cached
    cost = (prompt - cached) * price.input + cached * cached_price + completion * price.output
    return msgspec.structs.replace(usage, cost_usd=cost / 1_000_000)


def _at(report: dict[str, Any], path: str) -> Any:
    value: Any = report
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _first_count(report: dict[str, Any], paths: tuple[str, ...]) -> int | None:
    return next((count for path in paths if (count := _count(_at(report, path))) is not None), None)


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _PLAUSIBLE_TOKENS and value == int(value) else None


def _money(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _PLAUSIBLE_TOKENS else None
