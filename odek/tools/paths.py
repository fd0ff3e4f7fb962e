"""How a path that a model wrote becomes a file on this machine, and back into text."""

import errno
import os
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import msgspec

from odek.errors import TargetChangedError, ToolError
from odek.patterns import late_pattern
from odek.storage.files import describe
from odek.text import clip_line

__all__ = ["Target", "confirm", "locate", "locate_existing", "mode_of", "os_error", "shown_name"]

_UNSAFE = late_pattern("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ALIKE = frozenset(" '\"-")  # of a keyboard, for which there are others of print

_SHOWN_CHARACTERS = 300
"""A longer path is clipped in messages; no measurement behind this."""


class Target(msgspec.Struct, frozen=True):
    """A path as it was asked for and as it is.

    ``spelled`` is absolute, its links not followed. ``resolved`` is free of links.
    ``shown`` is for messages: relative inside the workspace, one line, encodable.
    """

    spelled: Path
    resolved: Path
    shown: str

    @property
    def paths(self) -> tuple[Path, ...]:
        """What a call declares: both forms, or the one when they are equal."""
        return (self.spelled,) if self.spelled == self.resolved else (self.spelled, self.resolved)


def locate(argument: str, workspace: Path, *, any_bytes: bool = False) -> Target:
    """Return what ``argument`` names, seen from ``workspace``. Blocking: follows links.

    The target need not exist. A leading ``~`` is the home directory. ``any_bytes`` takes names
    that are no UTF-8, as a shell gives them; a model cannot mean one.

    Raises:
        ToolError: no path of this system can look like that.
    """
    if not argument.strip():
        raise ToolError("the path is empty; name a file or directory")
    if "\0" in argument:
        raise ToolError(f"the path {_brief(argument)} contains a NUL character; no file can have that name")
    try:
        _ = os.fsencode(argument) if any_bytes else argument.encode()
    except UnicodeEncodeError:
        raise ToolError(f"the path {_brief(argument)} contains half of a surrogate pair") from None
    try:
        spelled = workspace / Path(argument).expanduser()
    except RuntimeError:
        raise ToolError(f"{_brief(argument)}: that home directory is not known; write it out") from None
    inside = spelled.relative_to(workspace) if spelled.is_relative_to(workspace) else spelled
    shown = _brief(str(inside))
    try:
        return Target(spelled, Path(os.path.realpath(spelled)), shown)
    except OSError as error:  # a link that vanishes while it is read
        raise os_error(error, shown) from None


def locate_existing(argument: str, workspace: Path, *, any_bytes: bool = False) -> Target:
    """Return what ``argument`` names, as `locate` does, or else the one thing of nearly that name. Blocking.

    Nearly the same are names with the same letters, composed or not, and with blanks, quotes
    and dashes that look alike: what a person types and a model repeats is not always what a
    system put into a name. For what has to be there alone: what is made gets the very name
    that was given.
    """
    target = locate(argument, workspace, any_bytes=any_bytes)
    twin = None if os.path.lexists(target.spelled) else _named_nearly(target.spelled)
    return target if twin is None else locate(str(twin), workspace, any_bytes=True)


def _named_nearly(path: Path) -> Path | None:
    """Return the path in which whatever is missing is what alone looks so, None if there is none."""
    found = Path(path.anchor)
    for part in path.parts[1:]:
        if not os.path.lexists(found / part):
            if part.isascii() and _ALIKE.isdisjoint(part):
                return None  # as most that are missing: nothing else looks so
            wanted = _as_it_looks(part)
            try:
                alike = [entry.name for entry in found.iterdir() if _as_it_looks(entry.name) == wanted]
            except OSError:
                return None
            if len(alike) != 1:
                return None
            part = alike[0]  # noqa: PLW2901 - from here on the name that is there
        found /= part
    return found


def _as_it_looks(name: str) -> str:
    if name.isascii():
        return name
    from odek.tools.lookalikes import folded

    return folded(unicodedata.normalize("NFC", name))


def mode_of(target: Target, nearby: Callable[[Path], str] = lambda _: "") -> int:
    """Return the mode of what is there. Blocking.

    ``nearby`` says what there is instead of a missing one, as the end of a sentence.

    Raises:
        ToolError: it is missing, or cannot be looked at.
    """
    try:
        return target.resolved.stat().st_mode
    except FileNotFoundError:
        raise ToolError(f"{target.shown} does not exist{nearby(target.resolved)}") from None
    except OSError as error:
        raise os_error(error, target.shown) from None


def confirm(target: Target) -> None:
    """Make sure that ``target`` still leads to where it led when it was located.

    Raises:
        TargetChangedError: a link on the way was planted, changed or removed.
    """
    try:
        now = Path(os.path.realpath(target.spelled))
    except OSError:
        raise TargetChangedError(f"the way to {target.shown} changed since it was checked") from None
    if now != target.resolved:
        raise TargetChangedError(
            f"{target.shown} now leads to {_brief(str(now))}, not to "
            f"{_brief(str(target.resolved))} as when it was checked; nothing was done"
        )


def os_error(error: OSError, shown: str) -> ToolError:
    """Return ``error`` as a sentence about ``shown``."""
    circular = error.errno == errno.ELOOP  # links are resolved before anything is opened
    return ToolError(f"{shown}: {'its symbolic links lead in a circle' if circular else describe(error)}")


def shown_name(name: str) -> str:
    r"""Return ``name`` on one encodable line; bytes that are no UTF-8 appear as ``\xff``."""

    def escape(match: re.Match[str]) -> str:
        code = ord(match[0])
        if 0xDC80 <= code <= 0xDCFF:  # how Python carries an undecodable byte
            code -= 0xDC00
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return _UNSAFE.sub(escape, name)


def _brief(name: str) -> str:
    shown = shown_name(name)
    return shown if len(shown) <= _SHOWN_CHARACTERS else clip_line(shown, _SHOWN_CHARACTERS)
