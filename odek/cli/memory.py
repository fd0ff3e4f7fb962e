"""``odek memory``: what is remembered, for a person to read and change."""

import argparse
from importlib import import_module
from typing import Protocol, cast

__all__ = ["ACTIONS", "add_arguments", "run"]

ACTIONS: dict[str, tuple[str, str]] = {
    "facts": ("odek.cli.memory_facts", "the facts that every session begins with"),
    "list": ("odek.cli.memory_episodes", "the episodes, and whether each may be recalled"),
    "show": ("odek.cli.memory_episodes", "print an episode"),
    "search": ("odek.cli.memory_recall", "find facts and episodes"),
    "why": ("odek.cli.memory_recall", "what the model was given in a turn, what not, and why"),
    "consolidate": ("odek.cli.memory_recall", "let the model merge related facts"),
    "promote": ("odek.cli.memory_episodes", "let an untrusted episode be recalled"),
    "reject": ("odek.cli.memory_episodes", "remove an episode"),
    "log": ("odek.cli.memory_history", "what was changed, when, and on whose behalf"),
    "blame": ("odek.cli.memory_history", "where each entry of a fact file comes from"),
    "undo": ("odek.cli.memory_history", "take back the last change, or a named one"),
    "extended": ("odek.cli.memory_extended", "atoms and inferences, where Extended Memory is on"),
    "check": ("odek.cli.memory_upkeep", "look whether everything is in order, and mend it"),
    "drill": ("odek.cli.memory_drill", "try attacks on the memory against this configuration"),
    "stats": ("odek.cli.memory_upkeep", "how much is remembered"),
    "jobs": ("odek.cli.memory_jobs", "sessions that are still to be remembered"),
    "export": ("odek.cli.memory_transfer", "print everything as one JSON object"),
    "import": ("odek.cli.memory_transfer", "add what was exported"),
}
"""Each action's module, and what it does; a module may carry out several."""

CHANGES_EPISODES = frozenset({"promote", "reject", "undo", "import", "check"})
"""After these the index is told."""


class ActionModule(Protocol):
    """What the module of an action offers, as plain functions."""

    def add_arguments(self, action: str, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of one of its actions."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Carry out ``arguments.memory_action`` and return the exit status."""
        ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(
        title="actions", dest="memory_action", metavar="ACTION", required=True, prog=parser.prog
    )
    for action, (module_name, summary) in ACTIONS.items():
        child = actions.add_parser(action, help=summary, description=f"odek memory {action}: {summary}.")
        _load(module_name).add_arguments(action, child)


def run(arguments: argparse.Namespace) -> int:
    """Carry out the action."""
    status = _load(ACTIONS[arguments.memory_action][0]).run(arguments)
    if arguments.memory_action in CHANGES_EPISODES:
        from odek.cli.memory_stores import tell_index

        tell_index()
    return status


def _load(module_name: str) -> ActionModule:
    return cast("ActionModule", import_module(module_name))
