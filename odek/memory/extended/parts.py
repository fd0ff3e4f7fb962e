"""What Extended Memory works with, and what a turn is given of it. Values alone."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import msgspec

from odek.config.extended_settings import ExtendedSettings
from odek.embedding.embedder import Embedder
from odek.events import Event
from odek.guard import SecondOpinion
from odek.memory.extended.find import Passed
from odek.memory.extended.scoring import Scored
from odek.memory.extended.write import AtomIndex

__all__ = ["ExtendedParts", "RecalledAtoms"]


class ExtendedParts(msgspec.Struct, frozen=True, kw_only=True):
    """What Extended Memory works with.

    ``memory`` is the memory's directory. ``index`` is used in threads, one at a time; ``reader``, of
    the same files, in the loop's own. ``project`` is the directory the person works in.
    ``emit`` takes what happens and never waits; ``mask`` hides secrets; ``now`` tells the time.
    ``object_to`` is a second opinion on statements, asked after the scan. ``counters`` takes how often
    something was done without.
    """

    memory: Path
    settings: ExtendedSettings
    index: AtomIndex
    reader: AtomIndex
    embedder: Embedder
    project: str
    emit: Callable[[Event], None]
    mask: Callable[[str], str]
    now: Callable[[], datetime]
    object_to: SecondOpinion | None = None
    counters: Counter[str] = msgspec.field(default_factory=Counter)


class RecalledAtoms(msgspec.Struct, frozen=True):
    """The atoms of a turn, best first, and what was found and not given."""

    atoms: tuple[Scored, ...] = ()
    over_budget: tuple[Scored, ...] = ()
    passed: tuple[Passed, ...] = ()
