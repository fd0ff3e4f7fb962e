"""Which files the agent knows, and as of when: what somebody changed since is not written over unseen."""

from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from odek.errors import ToolError
from odek.messages import AssistantMessage, Message
from odek.timestamps import moment_of

__all__ = ["SeenFiles", "Stamp", "seen_before", "stamp_of"]

Stamp = tuple[int, int, int]
"""Inode, size and time of the last change: another state of a file has another one."""


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of what is at ``path`` now, None for nothing. Blocking."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


class SeenFiles:
    """The files whose content the agent was shown or wrote, by their paths free of links.

    The tools of one agent share it. Its methods may be called from several threads.
    """

    def __init__(self) -> None:
        self._stamps: dict[Path, Stamp] = {}

    def note(self, path: Path, stamp: Stamp | None) -> None:
        """Remember that the agent knows what ``path`` held when it had this stamp."""
        if stamp is not None:
            self._stamps[path] = stamp

    def knows(self, path: Path) -> bool:
        """Tell whether the agent knows what ``path`` holds now. Blocking."""
        return self._stamps.get(path, ()) == stamp_of(path)

    def changed_since(self, path: Path) -> bool:
        """Tell whether the agent knew what ``path`` held, and something else is there now. Blocking."""
        now = stamp_of(path)
        return path in self._stamps and now is not None and now != self._stamps[path]


_OTHER: Stamp = (-1, -1, -1)
"""Of a file as it was, where nothing but that it was another is known."""


class _Named(msgspec.Struct, frozen=True):
    path: str


def seen_before(
    messages: Iterable[Message], tools: Collection[str], workspace: Path, until: str
) -> SeenFiles:
    """Return what an agent knows that goes on with a conversation. Blocking: looks at each file.

    A conversation does not say when a file was seen, only when it was saved last: what changed
    between two turns before that is taken for known.

    Args:
        messages: The conversation.
        tools: Those whose calls name a file, by ``path``, that was shown whole or written.
        workspace: What relative paths are seen from.
        until: When it was last saved, in RFC 3339; a file that changed later is another now.
    """
    from odek.tools.paths import locate_existing

    seen, saved = SeenFiles(), moment_of(until)
    if saved is None:
        return seen
    until_ns = int(saved.timestamp() * 10**9)
    calls = [call for each in messages if isinstance(each, AssistantMessage) for call in each.tool_calls]
    for arguments in dict.fromkeys(call.arguments for call in calls if call.name in tools):
        try:
            path = locate_existing(msgspec.json.decode(arguments, type=_Named).path, workspace).resolved
        except (msgspec.MsgspecError, ToolError):
            continue
        if (stamp := stamp_of(path)) is not None:
            seen.note(path, stamp if stamp[2] <= until_ns else _OTHER)
    return seen
