"""Where the attacks are tried: the person's configuration, and rooms of a scratch directory."""

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import msgspec

from odek.config.layers import Resolved
from odek.events import Event
from odek.guard import SecondOpinion, guard_of
from odek.home import expanded, person_home
from odek.storage.files import ensure_directory
from odek.tools.tool import CallScope, ToolOutput
from odek.trust.paths import Where

__all__ = ["Outcome", "Scene", "never"]


class Outcome(msgspec.Struct, frozen=True):
    """Whether an attack was ``held``, and what held it or how it got through."""

    held: bool
    how: str


class Scene:
    """What every attempt works with.

    ``home`` is the directory of the configuration, of which nothing else is read; memory,
    sessions and projects are made in rooms below ``scratch``.
    """

    def __init__(
        self,
        resolved: Resolved,
        home: Path,
        environ: Mapping[str, str],
        scratch: Path,
        emit: Callable[[Event], None],
    ) -> None:
        self.config = resolved.config
        self.home = home
        self.environ = environ
        self.emit = emit
        guard = guard_of(self.config.guard, emit)
        self.object_to: SecondOpinion | None = None if guard is None else guard.object_to
        self._scratch = scratch.resolve()
        self._numbers = count(1)
        workspace = self.room()
        self.where = Where(workspace, workspace, person_home(), home)

    def room(self) -> Path:
        """Return a new, empty directory."""
        room = self._scratch / f"room-{next(self._numbers)}"
        ensure_directory(room)
        return room

    def named(self, text: str) -> str:
        """Return ``text`` of an attack with the names of this place."""
        return text.replace("{odek}", str(self.home)).replace("{odek_name}", self.home.name)

    def path(self, text: str) -> Path:
        """Return a path of an attack."""
        return expanded(self.named(text))


async def never(_: CallScope) -> ToolOutput:
    """Stand for a call that is only judged."""
    raise AssertionError("the drill runs nothing")
