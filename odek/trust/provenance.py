"""Where a call's result comes from, and what a session that took it in may not do by itself.

Two taints are kept apart. The narrow one makes the memory of a session untrusted: content
came from beyond the workspace. The wide one, ``untrusted_ingested``, counts reading the
workspace as well; it bounds what may be handed to other agents.
"""

import os

from odek.trust import paths
from odek.trust.effects import Effects
from odek.trust.paths import Where
from odek.trust.risk import Risk, Verdict

__all__ = ["TAINT_SOURCES", "ingests_untrusted", "needs_fence", "taints"]

TAINT_SOURCES = (
    "read_outside_workspace",
    "network",
    "shell_network",
    "shell_outside_workspace",
    "shell_unknown",
    "agent",
    "outside_content",
)
"""The names that ``taints`` may return, in its order."""

_NETWORK = frozenset({Risk.NETWORK_EGRESS, Risk.INSTALL})


def taints(effects: Effects, verdict: Verdict, where: Where) -> tuple[str, ...]:
    """Return the reasons why a call's result makes the session's memory untrusted; none is trusted.

    ``verdict`` is that of ``assess(effects, where)``. A shell command that reads a file it
    names only when it runs counts as reading outside.
    """
    risks = {part.risk for part in verdict.parts}
    found = {
        "read_outside_workspace": any(_outside(path, where) for path in effects.reads),
        "network": bool(effects.urls),
        "shell_network": effects.command is not None and bool(risks & _NETWORK),
        "shell_outside_workspace": effects.command is not None
        and any(part.reads_outside for part in verdict.parts),
        "shell_unknown": effects.command is not None and bool(risks & {Risk.UNKNOWN}),
        "agent": effects.spawns_agents,
        "outside_content": effects.outside,
    }
    return tuple(source for source in TAINT_SOURCES if found[source])


def _outside(path: os.PathLike[str], where: Where) -> bool:
    return paths.reads_outside(paths.literal(os.fspath(path), os.fspath(where.cwd)), where)


def ingests_untrusted(effects: Effects) -> bool:
    """Whether the result may hold text that the person did not write: any read, command or answer."""
    return bool(effects.reads or effects.urls or effects.command or effects.spawns_agents or effects.outside)


def needs_fence(effects: Effects, verdict: Verdict, where: Where) -> bool:
    """Whether the result must be fenced before the model reads it."""
    return bool(taints(effects, verdict, where))
