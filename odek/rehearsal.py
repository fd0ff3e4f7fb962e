"""What the template of the subagents does before it forks: what all of them need and no task changes.

What is loaded and computed here costs a subagent nothing, and the memory for it is
shared. Nothing here starts a thread, an event loop or a process, keeps a file open, or
learns a secret.
"""

import encodings.idna  # noqa: F401 - loaded by looking up any host
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import msgspec

from odek.config.settings import Config
from odek.context import estimate_tools, fit
from odek.delegation import Credentials, DelegatedTask, WorkOrder
from odek.llm.client import ChatModel  # noqa: F401 - loaded by the first who has an endpoint
from odek.llm.model import ModelRequest, ToolSpec
from odek.llm.profiles import profile_of
from odek.llm.transport import rehearse_http, trusting_context
from odek.llm.wire import encode_request
from odek.memory.extract import without_outside
from odek.memory.fact_file import FactFile
from odek.messages import SystemMessage, UserMessage
from odek.patterns import compile_patterns
from odek.session_prompt import session_prompt
from odek.sessions.unsaved import unsaved_session
from odek.tools.tool import Tool, argument_schema
from odek.trust.divergence import find_divergences  # noqa: F401 - loaded when a turn is over
from odek.trust.effects import Effects
from odek.trust.fence import fenced
from odek.trust.paths import Where
from odek.trust.policy import assess
from odek.trust.secrets import mask
from odek.worker import request_text

__all__ = ["prepare", "rehearse"]


TOOL_MODULES = (
    "difflib",
    "odek.tools.command_output",
    "odek.tools.directory_listing",
    "odek.tools.edit_plans",
    "odek.tools.line_ranges",
    "odek.tools.search_run",
)
"""What the tools for files and commands load with their first calls."""


def prepare() -> None:
    """Be ready to fork: rehearse, and have at hand what most subagents will come to.

    That is what judges and runs their first calls, every pattern, and the trusted certificates.
    """
    rehearse()
    for name in TOOL_MODULES:
        import_module(name)
    root = Path("/")
    assess(Effects(command="ls | head -n 1"), Where(root, root, root, root))
    compile_patterns()
    with suppress(OSError):  # whoever needs them will say what is wrong
        trusting_context()


def rehearse() -> None:
    """Go through the motions of a subagent, from its order to its request, without an event loop.

    What they leave behind are loaded modules, compiled patterns and other caches.
    """
    rehearse_http()
    order = WorkOrder(name="", task=DelegatedTask("rehearse"), config=Config(), home="/", workspace="/")
    order = msgspec.convert(msgspec.to_builtins(order), WorkOrder)
    msgspec.json.decode(b"{}", type=Credentials)
    FactFile.parse(b"one\n\xc2\xa7\ntwo\n")
    request = mask(request_text(order))
    without_outside(request)
    list(fenced(request))
    tools = tuple(
        ToolSpec(tool.name, tool.description, argument_schema(tool.arguments_type))
        for tool in Tool.__subclasses__()
    )
    prompt, _ = session_prompt(Config(no_agents=True), Path("/"), "")
    session = unsaved_session("", request)
    session.append(SystemMessage(prompt), UserMessage(request))
    fitted = fit(session.messages, window=None, reserved_tokens=estimate_tools(tools))
    encode_request(ModelRequest(fitted.messages, tools), model="", profile=profile_of(""))
