"""Which of the tools an agent is given, by the configuration."""

from typing import Any

from odek.config.settings import Config
from odek.errors import ConfigError
from odek.subagents import DELEGATE_TASKS
from odek.tools.tool import Tool

__all__ = ["chosen_tools", "unavailable_tools"]


def chosen_tools(offered: list[Tool[Any]], config: Config) -> dict[str, Tool[Any]]:
    """Return the tools that the configuration leaves, in their fixed order.

    Raises:
        ConfigError: it names a tool that does not exist.
    """
    names = [tool.name for tool in offered]
    names += [DELEGATE_TASKS] if DELEGATE_TASKS not in names else []  # known, wherever it may be used
    for key, named in (("tools.enabled", config.tools.enabled), ("tools.disabled", config.tools.disabled)):
        for name in named:
            if name not in names:
                raise ConfigError(f"{key}: there is no tool {name!r}; the tools are: {', '.join(names)}")
    enabled = set(config.tools.enabled or names) - set(config.tools.disabled)
    return {tool.name: tool for tool in offered if tool.name in enabled}


def unavailable_tools(offered: list[Tool[Any]], config: Config, depth: int) -> dict[str, str]:
    """Say of each tool that the agent is not given why that is so."""
    chosen = chosen_tools(offered, config)
    reasons = {
        tool.name: f"{tool.name} is switched off by the configuration"
        for tool in offered
        if tool.name not in chosen
    }
    most = config.subagent.max_depth
    if depth >= most:
        who = f"a subagent at depth {depth}" if depth else "the first agent"
        reasons[DELEGATE_TASKS] = (
            f"{DELEGATE_TASKS} cannot be used here: this is {who}, and subagent.max_depth is {most}"
        )
    return reasons
