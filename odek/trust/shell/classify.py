"""The risk class of a shell command line, found over a real bash grammar.

The command has the highest class of all its parts. What the grammar cannot read with
certainty is ``unknown``. Nothing is executed; paths are resolved on disk, symlinks
included.
"""

import os
import re

from odek.trust.paths import Where
from odek.trust.risk import Part, Risk, Verdict
from odek.trust.shell.evaluator import unknown
from odek.trust.shell.grammar import DECEIVING, readings
from odek.trust.shell.journey import Journey
from odek.trust.shell.marks import ACTIVE_CHARACTERS
from odek.trust.shell.scope import Scope
from odek.trust.shell.walker import Walker

__all__ = ["classify"]

# Beyond this a command is not one that a person could read.
_LENGTH_LIMIT = 256 * 1024

# A subscript that runs a command: wherever such text ends up in arithmetic, bash runs it, and
# by what way a text gets there cannot be followed.
_RUNNING_SUBSCRIPT = re.compile(r"\w\[[^\]\n]{0,200}?(\$\(|`)")


def classify(command: str, where: Where) -> Verdict:
    """Return the class of ``command`` and of each of its parts.

    ``where.cwd`` is the directory in which it would run.
    """
    text = command.replace("\r\n", "\n")
    if DECEIVING.search(text) or ACTIVE_CHARACTERS.search(text):
        return Verdict.of(
            (*_best_effort(text, where), unknown(text, "holds control or invisible characters"))
        )
    if len(text) > _LENGTH_LIMIT:
        return Verdict.of((unknown(text, "is too long to be read with certainty"),))
    parts = _classify_text(text, where)
    if match := _RUNNING_SUBSCRIPT.search(text):
        parts.append(Part(match[0][:200], Risk.CODE_EXECUTION, "is a subscript that runs a command"))
    return Verdict.of(tuple(parts))


def _classify_text(text: str, where: Where) -> list[Part]:
    journey = Journey()
    parts: list[Part] = []
    for number, reading in enumerate(readings(text)):
        known = {(part.risk, part.reason, part.program) for part in parts}
        # The commands of each reading have numbers of their own.
        found = _read(reading, where, journey, outer=-number)
        parts += [part for part in found if (part.risk, part.reason, part.program) not in known or not number]
    return parts


def _read(text: str, where: Where, journey: Journey, *, outer: int) -> list[Part]:
    scope = Scope(os.fspath(where.cwd), os.fspath(where.home), os.fspath(where.workspace))
    try:
        return list(dict.fromkeys(Walker(where, scope, journey, outer=outer).code(text)))
    except RecursionError:  # the limits of the walk count on a stack that the caller left room on
        return [unknown(text, "is nested too deeply")]


def _best_effort(text: str, where: Where) -> list[Part]:
    """Judge what is left without the deceiving characters: it may be worse than unknown."""
    bare = ACTIVE_CHARACTERS.sub("", DECEIVING.sub("", text))
    if len(bare) > _LENGTH_LIMIT:
        return []
    return _classify_text(bare, where)
