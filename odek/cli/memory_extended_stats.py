"""What ``odek memory extended stats`` says: how much there is, and which steps are active."""

from typing import TYPE_CHECKING

from odek.cli.memory_stores import shown_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odek.config.extended_settings import ExtendedSettings
    from odek.extended_wiring import ExtendedLayer
    from odek.memory.extended.memory_model import Spent
    from odek.memory.extended.tally import Counted
    from odek.memory.extended.upkeep import Stats

__all__ = ["stats_lines", "steps"]

_ON = "on"


def steps(layer: "ExtendedLayer") -> dict[str, str]:
    """Return for each step of the layer "on", or why it is not active."""
    settings = layer.settings
    model = "" if layer.model is not None else "no model"
    own = model or (
        "" if layer.model is not None and layer.model.is_dedicated else "memory.extended.llm unset"
    )

    def state(setting: str, *, is_on: bool, lacks: str = "") -> str:
        return f"off ({setting})" if not is_on else f"off ({lacks})" if lacks else _ON

    foresees = bool(settings.predictive_intents) and settings.follow_up_anticipation_enabled
    return {
        "recall": state("semantic_search_top_k", is_on=bool(settings.semantic_search_top_k)),
        "extraction": state("auto_extract_per_turn", is_on=settings.auto_extract_per_turn, lacks=model),
        "rerank": state("semantic_search_rerank", is_on=settings.semantic_search_rerank, lacks=own),
        "anticipation": state("predictive_intents", is_on=foresees, lacks=own),
        "follow-ups": state(
            "follow_up_suggestions_enabled",
            is_on=settings.follow_up_suggestions_enabled,
            lacks=own or ("" if foresees else "predictive_intents"),
        ),
        "user model": state("infer_user_state", is_on=settings.infer_user_state, lacks=model),
        "style": state("style_mirroring_enabled", is_on=settings.style_mirroring_enabled),
        "anaphora": state("anaphora_resolution_enabled", is_on=settings.anaphora_resolution_enabled),
        "associations": state("associations_enabled", is_on=settings.associations_enabled),
        "return after break": state(
            "proactive_return_after_break", is_on=settings.proactive_return_after_break
        ),
        "nudges": state("proactive_nudges_enabled", is_on=settings.proactive_nudges_enabled),
    }


def stats_lines(
    stats: "Stats",
    active: dict[str, str],
    spent: "Spent | None",
    settings: "ExtendedSettings",
    counted: "Mapping[str, Counted]",
) -> list[str]:
    """Return the lines for a person."""
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(stats.reasons.items()))
    types = ", ".join(f"{count} {kind}" for kind, count in sorted(stats.types.items()))
    lines = [
        f"live         {stats.live}" + (f" ({types})" if types else ""),
        f"pinned       {stats.pinned}",
        f"quarantined  {stats.quarantined}" + (f" ({reasons})" if reasons else ""),
        f"on disk      {stats.size_bytes:,} of {stats.limit_bytes:,} bytes",
        f"index        {stats.index}, {stats.indexed:,} atoms",
    ]
    if spent is not None:
        lines.append(
            f"spent today  {spent.calls} of {settings.daily_call_budget} calls, "
            f"{spent.tokens:,} of {settings.daily_token_budget:,} tokens"
        )
    lines += ["", "steps"]
    lines += [f"  {name:<19} {state}" for name, state in active.items()]
    if counted:
        lines += ["", "counted, by all processes"]
    lines += [
        f"  {name.replace('_', ' '):<19} {each.count}, last {shown_time(each.last)}"
        for name, each in sorted(counted.items())
    ]
    lines += [f"not recalled: {line}" for line in stats.unreadable]
    return lines
