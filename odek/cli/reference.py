"""The reference pages that are made from the code: commands, tools, events.

``python -m odek.cli.reference cli|tools|events`` writes one to standard output;
``make docs`` writes them all, and a test holds them to the code.
"""

import argparse
import inspect
import sys
import typing
from collections.abc import Iterator, Sequence

from odek.cli.main import COMMANDS, DESCRIPTION, EPILOG, build_parser

__all__ = ["PAGES", "cli_page", "events_page", "tools_page"]

GENERATED = "<!-- Made from the code by `make docs`; change the code instead. -->"

_SubParsers = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it

TOOLS_INTRODUCTION = """\
What the model can do. Each tool declares what a call would do before it runs; approval, provenance
and the fence around outside content follow from that: see [trust](../explanation/trust.md).
`--tool` and `--no-tool` choose among them."""

EVENTS_INTRODUCTION = """\
`odek run --json` prints each event as one line of JSON, its kind in `type`. Fields at their default
may be left out. The last line of a turn is `turn_finished`."""


def cli_page() -> str:
    """Return the reference of all commands."""
    parts = ["# Commands", GENERATED, DESCRIPTION]
    for name in COMMANDS:
        parser = _subparsers(build_parser(name))[name]
        parts += list(_command(f"odek {name}", parser, level=2))
    parts += ["## Environment and exit status", _fenced(EPILOG)]
    return "\n\n".join(parts) + "\n"


def tools_page() -> str:
    """Return the reference of all tools, as the model sees them."""
    import odek.app  # noqa: F401 - loads every tool
    from odek.tools.tool import Tool

    ours = (tool for tool in Tool.__subclasses__() if tool.__module__.startswith("odek."))
    tools = sorted(ours, key=lambda tool: tool.name)
    parts = ["# Tools", GENERATED, TOOLS_INTRODUCTION]
    for tool in tools:
        parts += [f"## `{tool.name}`", tool.description]
        rows = list(_argument_rows(tool.arguments_type))
        parts.append("\n".join(["| argument | type | default | meaning |", "|---|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def events_page() -> str:
    """Return the reference of the events that ``--json`` prints."""
    from odek import events

    parts = ["# Events", GENERATED, EVENTS_INTRODUCTION]
    for kind in typing.get_args(events.Event):
        tag = kind.__struct_config__.tag
        rows = [f"| `{field}` | {_type_name(hint)} |" for field, hint in typing.get_type_hints(kind).items()]
        parts += [f"## `{tag}`", inspect.getdoc(kind) or ""]
        parts.append("\n".join(["| field | type |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


PAGES = {"cli": cli_page, "tools": tools_page, "events": events_page}


def _command(title: str, parser: argparse.ArgumentParser, *, level: int) -> Iterator[str]:
    """Yield the section of a command, and those of the commands inside it."""
    yield f"{'#' * level} `{title}`"
    if parser.description:
        yield parser.description
    rows = [
        f"| {_spelling(action)} | {_escaped(action.help or '')} |"
        for action in parser._actions  # noqa: SLF001 - argparse has no public way to list them
        if action.help is not argparse.SUPPRESS and not isinstance(action, _SubParsers)
    ]
    yield "\n".join(["| argument | meaning |", "|---|---|", *rows])
    if parser.epilog:
        yield _fenced(parser.epilog)
    for name, child in _subparsers(parser).items():
        yield from _command(f"{title} {name}", child, level=level + 1)


def _spelling(action: argparse.Action) -> str:
    """Return how an argument is written on the command line."""
    choices = "|".join(map(str, action.choices)) if action.choices else ""
    value = str(action.metavar or choices or action.dest.upper())
    if not action.option_strings:
        return f"`{_escaped(value)}`"
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    return names if action.nargs == 0 else f"{names} `{_escaped(choices or value)}`"


def _escaped(text: str) -> str:
    return text.replace("%%", "%").replace("|", "\\|")


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list them
        if isinstance(action, _SubParsers):
            found |= action.choices
    return found


def _argument_rows(arguments_type: type) -> Iterator[str]:
    import json

    from odek.tools.tool import argument_schema

    schema = argument_schema(arguments_type)
    for name, field in schema["properties"].items():
        default = "required" if name in schema["required"] else f"`{json.dumps(field.get('default'))}`"
        yield f"| `{name}` | {_schema_type(field)} | {default} | {field.get('description', '')} |"


def _schema_type(field: dict[str, typing.Any]) -> str:
    if "enum" in field:
        return " \\| ".join(f"`{value}`" for value in field["enum"] if value is not None)
    if "anyOf" in field:
        return " \\| ".join(_schema_type(option) for option in field["anyOf"] if option.get("type") != "null")
    if field.get("type") == "array":
        items = field.get("items", {})
        inner = ", ".join(f"`{name}`" for name in items.get("properties", {}))
        return f"list of {{{inner}}}" if inner else f"list of {_schema_type(items)}"
    return str(field.get("type", "any"))


def _type_name(hint: object) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return " \\| ".join(f"`{value}`" for value in typing.get_args(hint))
    text = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
    return f"`{_escaped(text.replace('odek.events.', ''))}`"


def _fenced(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def main(argv: Sequence[str]) -> None:
    """Write the page named on the command line."""
    sys.stdout.write(PAGES[argv[0]]())


if __name__ == "__main__":
    main(sys.argv[1:])
