"""The stores of the memory as the commands open them: with the configured limits, without an agent."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odek.config.memory_settings import MemorySettings
    from odek.memory.facts import FactStore

__all__ = ["memory_directory", "memory_settings", "open_facts"]


def memory_directory() -> Path:
    """Return the directory of the memory; it need not exist."""
    from odek.home import home_directory

    return home_directory(os.environ) / "memory"


def memory_settings() -> "MemorySettings":
    """Return the settings that apply here."""
    from odek.config.files import load
    from odek.home import home_directory

    return load(home_directory(os.environ), Path.cwd(), os.environ, {}).config.memory


def open_facts() -> "FactStore":
    """Return the facts."""
    from odek.memory.facts import FactLimits, FactStore

    settings = memory_settings()
    return FactStore(memory_directory(), FactLimits(settings.facts_limit_user, settings.facts_limit_env))
