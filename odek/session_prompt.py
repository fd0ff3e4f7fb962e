"""The system prompt of a new session, from what is on this machine now. Blocking."""

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
            data = read_file(workspace / AGENTS_FILE, limit_bytes=AGENTS_READ_BYTES)
            instructions = data.decode("utf-8", "replace")
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
