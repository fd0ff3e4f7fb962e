"""Attempts on the policy: what runs without a person, and whose configuration counts."""

from typing import Any

import msgspec

from odek.batch import Admission, GateRequest
from odek.config.files import load
from odek.drill.scene import Outcome, Scene, never
from odek.errors import ConfigError
from odek.gate import PolicyGate
from odek.memory.facts import FactLimits
from odek.memory.service import MemoryParts, open_memory
from odek.storage.files import replace_file
from odek.text import first_line
from odek.tools.memory import MemoryTool
from odek.tools.tool import PreparedCall
from odek.trust.approval import ApprovalState
from odek.trust.effects import Effects
from odek.trust.policy import assess, explain

__all__ = ["run_command", "set_by_project", "use_memory_tool", "write_file"]


async def run_command(scene: Scene, command: str) -> Outcome:
    """Try to have the shell run ``command`` when nobody can be asked."""
    return await _without_a_person(scene, Effects(command=scene.command(command)))


async def write_file(scene: Scene, path: str) -> Outcome:
    """Try to write ``path`` with a file tool when nobody can be asked."""
    return await _without_a_person(scene, Effects(writes=(scene.path(path),)))


async def use_memory_tool(scene: Scene, arguments: dict[str, Any]) -> Outcome:
    """Try a call of the memory tool in an untrusted session without a person."""
    parts = MemoryParts(settings=scene.config.memory, object_to=scene.object_to)
    async with open_memory(scene.room(), FactLimits(), parts) as memory:
        prepared = await MemoryTool(memory).prepare_json(msgspec.json.encode(arguments).decode())
    admission = await _admission(scene, prepared, is_untrusted=True)
    return Outcome(not admission.allowed, admission.why or "the gate lets it run without a person")


async def _without_a_person(scene: Scene, effects: Effects) -> Outcome:
    admission = await _admission(scene, PreparedCall("", effects, never))
    decision = explain(assess(effects, scene.where), scene.config.dangerous, effects.command)
    if not admission.allowed:
        asks = "asks a person" if decision.action == "prompt" else "denied"
        return Outcome(held=True, how=f"{asks}: {decision.why}")
    if decision.action == "prompt":
        return Outcome(held=False, how="runs where nobody can be asked (non_interactive)")
    return Outcome(held=False, how=f"runs unasked: {decision.why}")


async def _admission(scene: Scene, prepared: PreparedCall, *, is_untrusted: bool = False) -> Admission:
    gate = PolicyGate(
        where=scene.where,
        settings=scene.config.dangerous,
        state=ApprovalState(),
        approver=None,
        emit=lambda _: None,
        taint=lambda _sources, _ingested: None,
        is_untrusted=lambda: is_untrusted,
    )
    (admission,) = await gate.admit([GateRequest("drill", "drill", prepared)])
    return admission


def set_by_project(scene: Scene, settings: dict[str, Any]) -> Outcome:
    """Try to change policy, memory or guard by the ``odek.json`` of a project. Blocking."""
    project = scene.room()
    before = load(scene.home, project, scene.environ, {})
    replace_file(project / "odek.json", msgspec.json.encode(settings))
    try:
        after = load(scene.home, project, scene.environ, {})
    except ConfigError as error:
        return Outcome(held=True, how=f"not accepted: {first_line(str(error))}")
    changed = [
        name
        for name in ("dangerous", "guard", "memory")
        if getattr(before.config, name) != getattr(after.config, name)
    ]
    if changed:
        return Outcome(held=False, how=f"the project changes {', '.join(changed)}")
    new = [notice for notice in after.notices if notice not in before.notices]
    return Outcome(held=True, how=first_line(new[0]) if new else "it changes nothing")
