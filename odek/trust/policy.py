"""From what a call would do to whether it may: the class of its effects, and the policy on classes."""

import os
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec

from odek.config.settings import DangerousSettings
from odek.trust import paths
from odek.trust.effects import Effects
from odek.trust.paths import Where
from odek.trust.risk import Part, Risk, Verdict

__all__ = ["DEFAULT_ACTIONS", "Action", "Decision", "action_for", "assess", "decide", "explain"]

Action = Literal["allow", "prompt", "deny"]

DEFAULT_ACTIONS: MappingProxyType[Risk, Action] = MappingProxyType(
    {
        Risk.SAFE: "allow",
        Risk.LOCAL_WRITE: "allow",
        Risk.INSTALL: "prompt",
        Risk.NETWORK_EGRESS: "prompt",
        Risk.CODE_EXECUTION: "prompt",
        Risk.SYSTEM_WRITE: "prompt",
        Risk.UNKNOWN: "deny",
        Risk.DESTRUCTIVE: "deny",
        Risk.BLOCKED: "deny",
    }
)


class Decision(msgspec.Struct, frozen=True):
    """What the policy says about a call, and which of its rules says so."""

    action: Action
    why: str


_STRICTNESS: dict[Action, int] = {"allow": 0, "prompt": 1, "deny": 2}


def assess(effects: Effects, where: Where) -> Verdict:
    """Return the class of what a call would do, part by part.

    Paths count by what they resolve to. Starting other agents is safe: each of their calls
    is decided on its own. Writing memory is a local write; what is written is scanned apart.
    """
    parts: list[Part] = []
    for path in effects.reads:
        place = _place(path, where)
        risk, reason = paths.judge_read(place, where)
        parts.append(Part(str(path), risk, reason, paths.reads_outside(place, where)))
    parts += [Part(str(path), *paths.judge_write(_place(path, where), where)) for path in effects.writes]
    parts += [Part(url, Risk.NETWORK_EGRESS, "sends a request over the network") for url in effects.urls]
    if effects.writes_memory:
        parts.append(Part("memory", Risk.LOCAL_WRITE, "changes what is remembered"))
    if effects.spawns_agents:
        parts.append(Part("agents", Risk.SAFE, "starts agents whose calls are decided one by one"))
    if effects.command is not None:
        from odek.trust.shell import classify

        parts += classify(effects.command, where).parts
    return Verdict.of(tuple(parts))


def _place(path: Path, where: Where) -> paths.Place:
    # The name of a file, not a pattern: its characters stand for themselves.
    return paths.literal(os.fspath(path), os.fspath(where.cwd))


def action_for(risk: Risk, settings: DangerousSettings) -> Action:
    """Return what the policy says about one class; ``blocked`` is always denied."""
    if risk is Risk.BLOCKED:
        return "deny"
    return settings.classes.get(risk.label, DEFAULT_ACTIONS[risk])


def decide(verdict: Verdict, settings: DangerousSettings, command: str | None = None) -> Action:
    """Return the strictest action of any part of ``verdict``; see ``explain``."""
    return explain(verdict, settings, command).action


def explain(verdict: Verdict, settings: DangerousSettings, command: str | None = None) -> Decision:
    """Return what the policy says about ``verdict``, and which rule of it decides.

    An exact ``command`` in the denylist is denied; one in the allowlist is allowed, unless a
    part of it is blocked. White space around a command does not count, nothing else is
    normalised: a rule for one command never covers another.
    """
    if command is not None and _listed(command, settings.denylist):
        return Decision("deny", "the denylist names exactly this command")
    if verdict.risk is Risk.BLOCKED:
        return Decision("deny", "what is blocked never runs")
    if command is not None and _listed(command, settings.allowlist):
        return Decision("allow", "the allowlist names exactly this command")
    risks = {part.risk for part in verdict.parts} or {verdict.risk}
    strictest = max(risks, key=lambda risk: (_STRICTNESS[action_for(risk, settings)], risk))
    action = action_for(strictest, settings)
    rule = "dangerous.classes says" if strictest.label in settings.classes else "the default is"
    return Decision(action, f"{rule} `{action}` for {strictest.label}")


def _listed(command: str, commands: tuple[str, ...]) -> bool:
    return command.strip() in {listed.strip() for listed in commands}
