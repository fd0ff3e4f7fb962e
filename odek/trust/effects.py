"""What a tool call does to the world, declared once by the tool itself.

Approval, provenance, audit and the fence around outside content all derive from
this declaration; nothing else knows tools by name.
"""

from pathlib import Path

import msgspec

__all__ = ["Effects"]


class Effects(msgspec.Struct, frozen=True):
    """The effects of one prepared call.

    Paths are absolute but not resolved: what they resolve to is for the policy to
    find out.

    Attributes:
        reads: Files and directories that are read; beyond the workspace their content is from outside.
        writes: Files and directories that are made, changed or removed.
        command: A shell command line, classified part by part by its grammar.
        urls: Addresses that a request is sent to; what comes back is from outside.
        writes_memory: Something is remembered or forgotten, which is scanned on its own.
        needs_person: A person alone may allow it, whatever the policy or an earlier answer says.
        spawns_agents: Other agents are started, whose calls are decided one by one.
        outside: The result carries text from beyond the trust boundary whatever the other
            fields say (another agent, a foreign server).
    """

    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    command: str | None = None
    urls: tuple[str, ...] = ()
    writes_memory: bool = False
    needs_person: bool = False
    spawns_agents: bool = False
    outside: bool = False
