"""Where the attacks are tried: the person's configuration, and rooms of a scratch directory."""

import shlex
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

    def command(self, text: str) -> str:
        """Return a command line of an attack, with the names of this place as a shell reads them."""
        return _with_names(text, shlex.quote(str(self.home)), shlex.quote(self.home.name))

    def path(self, text: str) -> Path:
        """Return a path of an attack."""
        return expanded(_with_names(text, str(self.home), self.home.name))


def _with_names(text: str, home: str, home_name: str) -> str:
    return text.replace("{odek}", home).replace("{odek_name}", home_name)


async def never(_: CallScope) -> ToolOutput:
    """Stand for a call that is only judged."""
    raise AssertionError("the drill runs nothing")
