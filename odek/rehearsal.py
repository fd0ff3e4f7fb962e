"""What the template of the subagents does before it forks: what all of them need and no task changes.

What is loaded and computed here costs a subagent nothing, and the memory for it is
shared. Nothing here starts a thread, an event loop or a process, keeps a file open, or
learns a secret.
"""

import encodings.idna  # noqa: F401 - loaded by looking up any host
import platform

import msgspec

from odek.config.settings import Config
from odek.delegation import Credentials, DelegatedTask, WorkOrder
from odek.llm.client import ChatModel  # noqa: F401 - loaded by the first who has an endpoint
from odek.llm.transport import load_http
from odek.memory.fact_file import FactFile
from odek.tools.tool import Tool, argument_schema
from odek.trust.secrets import mask
from odek.worker import request_text

__all__ = ["rehearse"]


def rehearse() -> None:
    """Go through the motions of a subagent as far as they need no event loop.

    What they leave behind are loaded modules, compiled patterns and other caches.
    """
    load_http()
    for tool in Tool.__subclasses__():
        argument_schema(tool.arguments_type)
    order = WorkOrder(name="", task=DelegatedTask("rehearse"), config=Config(), home="/", workspace="/")
    msgspec.convert(msgspec.to_builtins(order), WorkOrder)
    msgspec.json.decode(b"{}", type=Credentials)
    mask(request_text(order))
    FactFile.parse(b"one\n\xc2\xa7\ntwo\n")
    platform.uname()
