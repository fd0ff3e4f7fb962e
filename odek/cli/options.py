"""The flags that every command with an agent shares, and what they set."""

import argparse
from collections.abc import Callable
from typing import Any

__all__ = [
    "FileName",
    "add_agent_options",
    "add_session_option",
    "add_task",
    "flag_values",
    "session_reference",
    "whole_number",
]


class FileName(str):
    """The name of a file, or several, as it was given: its bytes need not be UTF-8."""

    __slots__ = ()


def add_agent_options(parser: argparse.ArgumentParser) -> None:
    """Declare the common flags. A flag that is not given leaves None, and the setting alone."""
    model = parser.add_argument_group("model")
    model.add_argument("--model", metavar="NAME", help="model to ask; `offline` is the built-in one")
    model.add_argument("--base-url", metavar="URL", help="root of a chat-completions endpoint")
    model.add_argument(
        "--thinking",
        metavar="LEVEL",
        choices=("disabled", "enabled", "low", "medium", "high"),
        help="reasoning: disabled, enabled, low, medium or high",
    )
    model.add_argument("--system", metavar="TEXT", help="replace the built-in system prompt")
    work = parser.add_argument_group("work")
    work.add_argument(
        "-c",
        "--ctx",
        metavar="FILES",
        type=FileName,
        action="append",
        help="attach files, separated by commas; repeatable",
    )
    work.add_argument(
        "--max-iter", metavar="N", type=whole_number(1), help="at most N requests to the model (90)"
    )
    work.add_argument("--tool", metavar="NAME", action="append", help="offer only this tool; repeatable")
    work.add_argument("--no-tool", metavar="NAME", action="append", help="do not offer this tool; repeatable")
    work.add_argument(
        "--no-agents", action="store_true", default=None, help="leave AGENTS.md of the directory unread"
    )
    work.add_argument(
        "--sandbox", action="store_true", default=None, help="run commands in a sandbox, or not at all"
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--interaction-mode",
        metavar="MODE",
        choices=("engaging", "verbose"),
        help="engaging, or verbose: tool output and reasoning too",
    )
    output.add_argument("--json", action="store_true", help="print every event as a line of JSON")
    output.add_argument(
        "--no-color", action="store_true", default=None, help="no colour; so does the variable NO_COLOR"
    )


def add_task(parser: argparse.ArgumentParser) -> None:
    """Declare the task, which may come from stdin."""
    alone, behind = (
        "`-` alone, or nothing, reads it from stdin",
        "behind words `-` waits for what is piped in",
    )
    parser.add_argument("task", nargs="*", metavar="TASK", help=f"what to do; {alone}; {behind}")


def add_session_option(parser: argparse.ArgumentParser) -> None:
    """Declare which session to go on with."""
    parser.add_argument(
        "--id",
        metavar="ID",
        type=session_reference,
        help="session to go on with, or the start of its id",
    )


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return what reads a number from ``least`` to ``most`` on a command line."""
    bounds = f"from {least} to {most}" if most is not None else f"of at least {least}"

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least or (most is not None and number > most):
            raise argparse.ArgumentTypeError(f"expected a whole number {bounds}, got {text!r}")
        return number

    return read


def session_reference(text: str) -> str:
    """Check the reference to a session on a command line: an empty one is an unset variable, not the newest.

    Raises:
        argparse.ArgumentTypeError: it is empty.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("the id is empty; `odek session list` shows the sessions")
    return text


def flag_values(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that the flags give, by key path; None stands for a flag not given."""
    return {
        "model": arguments.model,
        "base_url": arguments.base_url,
        "thinking": arguments.thinking,
        "system": arguments.system,
        "max_iterations": arguments.max_iter,
        "tools.enabled": arguments.tool,
        "tools.disabled": arguments.no_tool,
        "no_agents": arguments.no_agents,
        "sandbox": arguments.sandbox,
        "interaction_mode": arguments.interaction_mode,
        "no_color": arguments.no_color,
    }
