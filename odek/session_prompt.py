"""The system prompt of a new session, from what is on this machine now. Blocking."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from odek.config.settings import Config
from odek.errors import StoreError
from odek.prompt import PromptParts, system_prompt
from odek.storage.files import read_file
from odek.trust.fence import FENCE_RULE

__all__ = ["session_prompt"]

AGENTS_FILE = "AGENTS.md"
AGENTS_READ_BYTES = 1024 * 1024
"""Far more than is kept of it; a larger file is something else."""


def session_prompt(config: Config, workspace: Path, memory_block: str) -> tuple[str, str]:
    """Return the prompt, and a line for the person about instructions that could not be read."""
    instructions, notice = "", ""
    if not config.no_agents:
        try:
            instructions = _project_instructions(workspace).decode("utf-8", "replace")
        except FileNotFoundError:
            pass
        except StoreError as error:
            notice = f"the project's instructions are left out: {error}"
    parts = PromptParts(
        workspace=str(workspace),
        platform=f"{platform.system()} {platform.machine()}",
        started_on=datetime.now(UTC).astimezone().date().isoformat(),
        rules=FENCE_RULE,
        replacement=config.system,
        project_instructions=instructions,
        memory=memory_block,
    )
    return system_prompt(parts), notice


def _project_instructions(workspace: Path) -> bytes:
    """Return what the workspace tells agents.

    Many projects link one name of that file to another, such as CLAUDE.md. No other link is
    followed: it could show the model a private file, or be changed by a write that nobody is
    asked about.

    Raises:
        FileNotFoundError: it tells nothing.
        StoreError: there is something that cannot be read, or leads elsewhere.
    """
    path = workspace / AGENTS_FILE
    if not path.is_symlink():
        return read_file(path, limit_bytes=AGENTS_READ_BYTES)
    from odek.trust.guards import is_obeyed

    root, real = (Path(os.path.realpath(place)) for place in (workspace, path))
    parts = real.relative_to(root).parts if real.is_relative_to(root) else ()
    if real.suffix != ".md" or not is_obeyed(parts, str(root)):
        raise StoreError(f"{path} is a link to {real}, which is no file of instructions in the workspace")
    return read_file(real, limit_bytes=AGENTS_READ_BYTES)
