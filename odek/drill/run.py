"""The drill: every attack is tried, one after the other, and nothing of the person's is touched."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import assert_never

import msgspec
import trio

from odek.config.layers import Resolved
from odek.drill.attacks import (
    Attack,
    CommandAttack,
    IndexAttack,
    ProjectAttack,
    SessionAttack,
    TextAttack,
    ToolAttack,
    WriteAttack,
)
from odek.drill.memory_attempts import control, overwrite_provenance, recall_session, remember_text
from odek.drill.policy_attempts import run_command, set_by_project, use_memory_tool, write_file
from odek.drill.scene import Outcome, Scene
from odek.errors import StoreError
from odek.events import Event

__all__ = ["Result", "run_drill"]


class Result(msgspec.Struct, frozen=True):
    """An attack and what became of it."""

    attack: Attack
    outcome: Outcome


async def run_drill(
    attacks: Sequence[Attack],
    resolved: Resolved,
    *,
    home: Path,
    environ: Mapping[str, str],
    emit: Callable[[Event], None],
) -> list[Result]:
    """Try ``attacks`` against a configuration.

    Args:
        attacks: What is tried.
        resolved: The configuration, which ``home`` and ``environ`` gave.
        home: The directory of odek; only the configuration in it is read.
        environ: The variables that the configuration was made from.
        emit: Takes what a person should know, such as that the guard cannot be asked.

    Raises:
        StoreError: the scratch directory cannot be used, or the drill could not tell.
    """
    with TemporaryDirectory(prefix="odek-drill-") as scratch:
        scene = Scene(resolved, home, environ, Path(scratch), emit)
        if not await control(scene):
            raise StoreError("memory drill: not even a trusted episode is recalled; see `odek memory check`")
        return [Result(attack, await _try(scene, attack)) for attack in attacks]


async def _try(scene: Scene, attack: Attack) -> Outcome:
    match attack:
        case TextAttack():
            return await remember_text(scene, attack.input)
        case SessionAttack():
            return await recall_session(scene, attack.input)
        case IndexAttack():
            return await overwrite_provenance(scene, attack.input)
        case CommandAttack():
            return await run_command(scene, attack.input)
        case WriteAttack():
            return await write_file(scene, attack.input)
        case ProjectAttack():
            return await trio.to_thread.run_sync(set_by_project, scene, attack.input)
        case ToolAttack():
            return await use_memory_tool(scene, attack.input)
        case _:
            assert_never(attack)
