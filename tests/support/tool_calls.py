"""Calling a tool as the loop does: JSON in, prepared call, output."""

import json
from typing import Any

from odek.tools.tool import CallScope, PreparedCall, Tool, ToolOutput

__all__ = ["SCOPE", "call", "prepare"]

SCOPE = CallScope("call-1", lambda _line: None)


async def prepare(tool: Tool[Any], **arguments: object) -> PreparedCall:
    """Prepare a call from its arguments."""
    return await tool.prepare_json(json.dumps(arguments))


async def call(tool: Tool[Any], **arguments: object) -> ToolOutput:
    """Prepare and run a call."""
    prepared = await prepare(tool, **arguments)
    return await prepared.run(SCOPE)
